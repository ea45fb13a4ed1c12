"""Segment in, KernelSource out: a whole runnable module around the kernel's body."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from typing import Any

from ...dtypes import DataType
from ...errors import SourceLoc
from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.table import View
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atoms_in, computed
from ..access.index_dims import indexes
from ..device_lib import functions
from ..kernel_source import Argument, CooperativeWorkspace, KernelArg, KernelSource, SizeArg
from ..passes.random_seeds import Seeds
from ..segments import Segment
from ..tile.cooperative_nest import CooperativeNest
from ..tile.nest import Nest
from ..tile.product_nest import ProductNest
from ..tile.tiled_segment import TiledSegment
from ..tile.vector_width import unvectorized
from .cooperative_body import CooperativeBody
from .kernel_body import KernelBody
from .kernel_writers import KernelFacts
from .lines import Line, place_text
from .matmul_body import ProductBody

_LIBRARY = frozenset(n for n, f in vars(functions).items() if type(f).__name__ == "JITFunction")


def emit(
    fusion: Fusion,
    tiled: TiledSegment,
    misaligned: frozenset[Value] = frozenset(),
    seeds: Seeds = (),
    env: ShapeEnv | None = None,
    check_bounds: bool = False,
) -> KernelSource:
    """The kernel of a segment.

    Parameters
    ----------
    misaligned : frozenset of Value
        Buffers that do not start at a multiple of 16 bytes.
    seeds : tuple of (Value, Value)
        Seeds and offsets that a run draws; in a captured graph the kernel fetches them.
    env : ShapeEnv, optional
        Of sizes that vary: those in the text become arguments.
    check_bounds : bool
        Whether it asserts that indices read at run time are of their dims.
    """
    segment, nest, wide = tiled.segment, tiled.nest, tiled.wide_index
    if isinstance(nest, CooperativeNest):
        # Its workspace is filled right before it, and all its programs start together.
        segment = replace(segment, follows=False)
    if check_bounds and any(map(indexes, segment.nodes)):
        # Triton's pipelining of loops, on AMD, takes no assertions in them.
        segment = replace(segment, params=replace(segment.params, num_stages=1))
    facts = KernelFacts(
        fusion=fusion,
        segment=segment,
        stored=tiled.inputs,
        outputs=tiled.outputs,
        wide_index=wide,
        misaligned=misaligned,
        check_bounds=check_bounds,
    )
    writer = _body(facts, nest)
    body = [*_overlap(segment), *_fetched(segment, seeds), *writer.write()]
    args = _args(segment)
    name = kernel_name(segment)
    params = segment.params
    sizes = _sizes(body, wide, env)
    workspace = writer.workspace if isinstance(writer, CooperativeBody) else None
    passed = (*args, *sizes, *((workspace,) if workspace else ()))
    text, placed = _module(name, segment, nest, passed, body, env)
    narrow = unvectorized(writer.loaded, tiled.inputs, nest.tiles)
    return KernelSource(
        name=name,
        text=text,
        args=args,
        constants=nest.constants,
        grid=_grid(nest),
        num_warps=params.num_warps,
        num_stages=params.num_stages,
        lines=tuple((number, line.loc) for number, line in placed if line.loc is not None),
        index_ops=tuple((number, line.op) for number, line in placed if line.op),
        sizes=sizes,
        follows=segment.follows,
        workspace=workspace,
        max_registers=params.max_registers,
        unaligned=frozenset(f"{value.name}_ptr" for value in narrow),
        asserts=any(line.asserts for line in body),
    )


def _body(facts: KernelFacts, nest: Nest) -> KernelBody | CooperativeBody | ProductBody:
    if isinstance(nest, ProductNest):
        return ProductBody(facts, nest)
    if isinstance(nest, CooperativeNest):
        return CooperativeBody(facts, nest)
    return KernelBody(facts, nest)


def _overlap(segment: Segment) -> list[Line]:
    """Start while the kernel before this one ends; let the one behind it do the same.

    To wait is to wait for all of that kernel, and so for all that it has waited for.
    """
    lines = [Line("let_next_start()")] if segment.followed else []
    return [*lines, *([Line("wait_for_previous()")] if segment.follows else [])]


def _sizes(body: list[Line], wide: bool, env: ShapeEnv | None) -> tuple[SizeArg, ...]:
    dtype = DataType.Int if wide else DataType.Int32
    text = "\n".join(line.code for line in body)
    found = () if env is None else atoms_in(env, text)
    return tuple(SizeArg(atom.name, dtype, atom.multiple) for atom in found)


def _fetched(segment: Segment, seeds: Seeds) -> list[Line]:
    pairs = [f"{s.name}, {o.name}" for s, o in seeds if s in segment.inputs]
    return [Line(f"{pair} = drawn({pair})") for pair in pairs]


def _grid(nest: Nest) -> tuple[int, int, int]:
    counts = [count for _, count in nest.grid] + [1, 1]
    return counts[0], counts[1], counts[2]


def _args(segment: Segment) -> tuple[KernelArg, ...]:
    return tuple(
        KernelArg(f"{v.name}_ptr" if v.is_tensor else v.name, v, v.is_tensor)
        for v in (*segment.inputs, *segment.outputs)
    )


def kernel_name(segment: Segment) -> str:
    """``s0_inner_persistent_max_sub_exp_sum``: scheduler and the first few telling ops."""
    ops = [n.op for n in segment.nodes if not isinstance(as_call(n).op.form, View)]
    telling = list(dict.fromkeys(op for op in ops if op != "cast"))[:4]
    return "_".join([segment.name, segment.scheduler, *telling]).lower()


def _module(
    name: str,
    segment: Segment,
    nest: Nest,
    args: tuple[Argument, ...],
    body: list[Line],
    env: ShapeEnv | None,
) -> tuple[str, list[tuple[int, Line]]]:
    """The text, and the number of each line of the body in it."""
    used = set(re.findall(r"[a-z_]\w*", "\n".join(line.code for line in body)))
    parameters = [*(a.name for a in args), *(f"{c}: tl.constexpr" for c, _ in nest.constants)]
    text = [f'"""{segment.scheduler}: {segment.reason}."""', ""]
    if _makes_descriptors(body) or any(isinstance(a, CooperativeWorkspace) for a in args):
        text.append("import torch")
    text += ["import triton", "import triton.language as tl"]
    if "libdevice" in used:
        text.append("from triton.language.extra import libdevice")
    helpers = sorted(used & _LIBRARY)
    if helpers:
        text += ["", *_imported("tritonfuser.lowering.device_lib.functions", helpers)]
    text += ["", "", "@triton.jit", *_signature(name, parameters)]
    placed: list[tuple[int, Line]] = []
    shown: SourceLoc | None = None
    for line in body:
        indent = "    " * (line.depth + 1)
        if line.loc is not None and line.loc != shown:
            shown = line.loc
            text.append(f"{indent}# {place_text(shown)}")
        text.append(indent + line.text)
        placed.append((len(text), line))
    text += ["", "", *_launch(name, nest, args, segment, body, env)]
    return "\n".join(text) + "\n", placed


def _imported(module: str, names: list[str]) -> list[str]:
    """``from module import ...`` on one line, or one name a line where that is too long."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _signature(name: str, parameters: list[str]) -> list[str]:
    """``def name(...):`` on one line, or one parameter a line where that is too long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= 100:
        return [line]
    return [f"def {name}(", *(f"    {p}," for p in parameters), "):"]


def _launch(
    name: str,
    nest: Nest,
    args: tuple[Argument, ...],
    segment: Segment,
    body: list[Line],
    env: ShapeEnv | None,
) -> list[str]:
    memory = []
    if _makes_descriptors(body):
        memory = [
            "    # Where Triton puts the descriptors.",
            "    triton.set_allocator(lambda n, *_: "
            'torch.empty(n, dtype=torch.int8, device="cuda"))',
        ]
    for workspace in (a for a in args if isinstance(a, CooperativeWorkspace)):
        memory += [f"    # {_WORKSPACE_NOTE}", "    workspace = " + workspace.made.format('"cuda"')]
    given = [a.name.removesuffix("_ptr") if a.is_tensor else a.name for a in args]
    constants = [f"{key}={value}" for key, value in nest.constants]
    options = [f"num_warps={segment.params.num_warps}", f"num_stages={segment.params.num_stages}"]
    options += ["launch_pdl=True"] if segment.follows else []
    if any(isinstance(a, CooperativeWorkspace) for a in args):
        options.append("launch_cooperative_grid=True")
    if segment.params.max_registers:
        options.append(f"maxnreg={segment.params.max_registers}")
    if any(line.asserts for line in body):
        options += ["debug=True", "sanitize_overflow=False"]
    grid = ", ".join(repr(count) for count in _grid(nest))
    tensors = [
        n for n, a in zip(given, args, strict=True) if not isinstance(a, CooperativeWorkspace)
    ]
    symbols: list[str] = []
    lines: list[str] = []
    if env is not None:
        words = [a.name for a in args if isinstance(a, SizeArg)]
        words += [atom.name for atom in atoms_in(env, grid)]
        symbols, lines = computed(env, words)
        tensors = tensors[: len(tensors) - sum(isinstance(a, SizeArg) for a in args)]
    taken = ", ".join([*tensors, *symbols])
    return [
        f"def launch({taken}):",
        f'    """Run the kernel on tensors: {taken}."""',
        *memory,
        *(f"    {line}" for line in lines),
        f"    {name}[({grid})](",
        *textwrap.wrap(", ".join([*given, *constants, *options]), 100, **_INDENTED),
        "    )",
    ]


_INDENTED: dict[str, Any] = {"initial_indent": " " * 8, "subsequent_indent": " " * 8}


_WORKSPACE_NOTE = "Where programs publish what they reduced; all of them run at a time."


def _makes_descriptors(body: list[Line]) -> bool:
    return any("tl.make_tensor_descriptor" in line.code for line in body)
