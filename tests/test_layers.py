"""Who imports whom: every import of the package points down, and stands at the top of its file.

The order, lowest first: what a module may import is in its own layer or in a lower one.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tritonfuser

ROOT = Path(next(iter(tritonfuser.__path__)))
PACKAGE = "tritonfuser"

LAYERS = (
    {"errors", "options", "dtypes", "device"},
    {"symbolic"},
    {"ir"},
    {"shapes"},
    {"ops"},
    {"heuristics"},
    {"lowering"},
    {"cache"},
    {"frontend"},
    {"compat", "integrations", "__init__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def layer_of(module):
    """The part of the house a dotted module name is in; the package itself is ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def imported(node, module, is_package):
    """The dotted names of this package that an import statement loads."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        return [name for name in names if name.split(".")[0] == PACKAGE]
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        here = parts[: len(parts) - node.level + is_package]
        base = ".".join([*here, *([base] if base else [])])
    if base.split(".")[0] != PACKAGE:
        return []
    # ``from . import x``: x is a module of the folder, or a name of its __init__.
    return [f"{base}.{alias.name}" for alias in node.names] if base == PACKAGE else [base]


def faults(text, module, is_package=False):
    """What is wrong with a file's imports: (line, complaint)."""
    tree = ast.parse(text)
    level = LEVEL[layer_of(module)]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported(node, module, is_package):
                # What is no part of the house is a name of the package's own __init__.
                if LEVEL.get(layer_of(name), LEVEL["__init__"]) > level:
                    found.append((node.lineno, f"imports {name}, which is above it"))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found += [(inner.lineno, "imports inside a function") for inner in hidden(node)]
    return sorted(set(found))


def hidden(function):
    """Imports, by statement or by call, below a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called in ("import_module", "__import__"):
                yield node


def test_every_part_of_the_house_has_a_layer():
    parts = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert parts <= set(LEVEL), f"no layer is given for {sorted(parts - set(LEVEL))}"


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_imports_point_down(path):
    found = faults(path.read_text(), module_of(path), path.name == "__init__.py")
    assert not found, "\n".join(f"{path}:{line}: {what}" for line, what in found)


# --- the checker itself --------------------------------------------------------------------------

FAULTY = [
    ("from .frontend import x", "tritonfuser.ir"),
    ("from .. import cache", "tritonfuser.ops.table"),
    ("from ..lowering.build import load_module", "tritonfuser.heuristics.params"),
    ("import tritonfuser.cache.plan.execution_plan", "tritonfuser.lowering.build"),
    ("import tritonfuser", "tritonfuser.frontend.definition"),
    ("from tritonfuser import FusionDefinition", "tritonfuser.cache.plan.execution_plan"),
    ("from tritonfuser.ops import table", "tritonfuser.shapes"),
    ("from ..shapes import Index", "tritonfuser.symbolic.index_expr"),
    ("def f():\n    import os", "tritonfuser.ir"),
    ("async def f():\n    from .errors import x", "tritonfuser.ir"),
    ("class A:\n    def f(self):\n        if 1:\n            import os", "tritonfuser.ir"),
    ("f = lambda: __import__('os')", "tritonfuser.ir"),
    ("def f():\n    return importlib.import_module('os')", "tritonfuser.ir"),
    ("if TYPE_CHECKING:\n    from .frontend import x", "tritonfuser.ir"),
]

FINE = [
    ("from .errors import x\nfrom . import options", "tritonfuser.device"),
    ("from ..ir import Value\nfrom .kernel import x", "tritonfuser.lowering.build"),
    ("from .. import options", "tritonfuser.lowering.build"),
    ("from . import cache", "tritonfuser.ops.table"),
    ("from tritonfuser import FusionDefinition", "tritonfuser.integrations.thunder"),
    ("import os\nfrom torch import nn", "tritonfuser.ir"),
    ("import tritonfuser", "tritonfuser.integrations.thunder"),
    ("from ..frontend import x", "tritonfuser.compat.nvfuser_direct"),
    ("try:\n    import thunder\nexcept ImportError:\n    thunder = None", "tritonfuser.compat"),
]


@pytest.mark.parametrize(("text", "module"), FAULTY)
def test_faults_are_found(text, module):
    assert len(faults(text, module)) == 1


@pytest.mark.parametrize(("text", "module"), FINE)
def test_what_is_fine(text, module):
    assert faults(text, module) == []


def test_relative_imports_of_a_package_file():
    assert faults("from .build import x", "tritonfuser.lowering", is_package=True) == []
    assert faults("from ..cache import x", "tritonfuser.lowering", is_package=True)
    assert faults("from .frontend import x", "tritonfuser", is_package=True) == []
