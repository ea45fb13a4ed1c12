"""The order of the house: which module may import which, and how that is read off the files.

An import counts wherever it stands: at the top, in a function, under ``TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "tritonfuser"

HOUSE = (
    {"calibration", "device", "devices", "disk", "dtypes", "errors", "forks", "options"},
    {"lazy", "pickling"},
    {"symbolic"},
    {"ir_types"},
    {"ir"},
    {"ir_graph"},
    {"shapes"},
    {"ops"},
    {"heuristics"},
    {"lowering"},
    {"cache"},
    {"frontend"},
    {"compat", "integrations", "multidevice", "exports", "cli", "__main__", "__init__"},
)
"""The rooms, lowest first: what a module imports is in its own room or in a lower one."""

LAZY = (PACKAGE, f"{PACKAGE}.cli.main", f"{PACKAGE}.symbolic.extents")
"""What imports when it is asked: a public name, a subcommand, sympy."""

ROOMS = {
    "symbolic": (
        {"extents", "loaded_index", "polynomials"},
        {"guards", "symbols"},
        {"shape_env"},
        {"size_text"},
        {"sizes"},
        {"evaluation", "queries"},
        {"choices", "index_expr"},
        {"row_major", "substitution"},
    ),
    "ops": (
        {"accuracy", "complex", "parameters"},
        {"forms"},
        {"table"},
        {"arguments", "param_docs"},
        {"shape_rules", "typing_rules"},
        {"creation", "library", "materialize", "mma", "pointwise", "reductions", "views"},
        {"registry"},
        {"builder"},
    ),
    "heuristics": (
        {"integers", "streams"},
        {"plain_data"},
        {"bounds", "params", "problem", "product"},
        {"cost"},
        {"schedule"},
        {"programs"},
        {"one_wave"},
        {"columns", "interpreter_tiles", "row_tiling"},
        {"rows_in_registers"},
        {"long_row_loops"},
        {"looped_rows", "requirements"},
        {"cooperative_rows"},
        {
            "inner_outer_persistent",
            "inner_persistent",
            "matmul",
            "no_op",
            "outer_persistent",
            "pointwise",
            "reduction",
            "scan",
            "transpose",
        },
        {"product_gain", "schedulers"},
        {"search"},
    ),
    "lowering": (
        {
            "access",
            "device_lib",
            "kernel_source",
            "library_kernels",
            "memo",
            "problem_sizes",
            "product_policy",
            "run_options",
        },
        {"passes", "segments"},
        {"axis_order", "graph_passes", "lowered", "schedules", "work"},
        {"tile"},
        {"groups"},
        {"legality"},
        {"cost"},
        {"fuse"},
        {"refine", "register_room"},
        {"segment_choice"},
        {"emit"},
        {"backend", "emission"},
        {"interpreter"},
        {"build"},
        {"pipeline"},
        {"register_feedback"},
    ),
    "cache": (
        {"keys", "lru", "tuned"},
        {"kernels"},
        {"register_feedback"},
        {"plan"},
        {"calls", "open_variant", "size_uses"},
        {"variant_family"},
        {"hot_sizes"},
        {"variants"},
        {"abstract_run", "dry_run"},
        {"schedule_queries", "stored_schedules"},
        {"run_queries"},
        {"executor"},
        {"kernel_executor"},
    ),
    "frontend": (
        {"vocabulary"},
        {"record"},
        {"inspect", "multidevice"},
        {"serialization"},
        {"tune"},
        {"calibrate"},
        {"run"},
        {"definition"},
        {"nvfuser"},
    ),
    "cli": (
        {"error_text", "op_examples", "sizes"},
        {"user_file"},
        {"calibrate", "doctor", "explain", "ops", "params", "schema", "tune"},
        {"main"},
    ),
}
"""The order inside the large rooms: sub-rooms and modules, lowest first."""


def level_in(order: Iterable[Iterable[str]], name: str) -> int | None:
    """The place of a room or module in an order; None where it has none."""
    return next((place for place, names in enumerate(order) if name in names), None)


def module_of(path: Path, root: Path) -> str:
    """The dotted name of a file below the package's folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def imports(text: str, module: str, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """``(line, dotted name)`` of everything of this package that a file imports.

    A name behind ``from x import`` is given as ``x.name``: a module of ``x``, or a symbol in it.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield node.lineno, alias.name
        if isinstance(node, ast.ImportFrom):
            base = _base(node, module, is_package)
            if base.split(".")[0] == PACKAGE:
                for alias in node.names:
                    yield node.lineno, f"{base}.{alias.name}"


def _base(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """What stands between ``from`` and ``import``, without dots in front."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    here = parts[: len(parts) - node.level + is_package]
    return ".".join([*here, *([node.module] if node.module else [])])


def upward(module: str, name: str) -> bool:
    """Whether ``module`` lies below what it imports."""
    mine, other = module.split(".")[1:], name.split(".")[1:]
    here = level_in(HOUSE, mine[0] if mine else "__init__")
    # What is no room is a name of the package's own __init__.
    there = level_in(HOUSE, other[0] if other else "__init__")
    top = len(HOUSE) - 1
    here, there = top if here is None else here, top if there is None else there
    if here != there or not mine or not other or mine[0] != other[0]:
        return there > here
    return _upward_inside(ROOMS.get(mine[0], ()), mine[1:2], other[1:2])


def _upward_inside(order: Iterable[Iterable[str]], mine: list[str], other: list[str]) -> bool:
    """The same inside one room; a symbol of the room's own ``__init__`` has no place."""
    order = tuple(order)
    if not order or not mine or not other:
        return False
    here, there = level_in(order, mine[0]), level_in(order, other[0])
    return here is not None and there is not None and there > here


def hidden(text: str) -> Iterator[int]:
    """The lines of imports, by statement or by call, inside functions.

    ``LAZY`` modules are not asked.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from (inner.lineno for inner in ast.walk(node) if _is_import(inner))


def _is_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", None))
        return called in ("import_module", "__import__")
    return isinstance(node, ast.Import | ast.ImportFrom)


def faults(text: str, module: str, is_package: bool = False) -> list[tuple[int, str]]:
    """What is wrong with a file's imports: ``(line, complaint)``."""
    found = {
        (line, "imports what is above it")
        for line, name in imports(text, module, is_package)
        if upward(module, name)
    }
    lines = [] if module in LAZY else hidden(text)
    return sorted(found | {(line, "imports inside a function") for line in lines})


def circle(texts: Mapping[str, tuple[str, bool]]) -> list[str]:
    """Modules that import one another in a circle, or none.

    Parameters
    ----------
    texts : mapping
        Dotted name -> (text, whether it is an ``__init__``).
    """
    graph: dict[str, set[str]] = {}
    for module, (text, is_package) in texts.items():
        names = (name for _, name in imports(text, module, is_package))
        known = {n if n in texts else n.rpartition(".")[0] for n in names} & texts.keys()
        # ``from . import x`` in x's own package loads x, not the package again.
        graph[module] = known - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []
