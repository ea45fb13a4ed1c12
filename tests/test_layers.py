"""Who imports whom: every import of the package points down, and none makes a circle."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

import tritonfuser
from tests.layers import HOUSE, ROOMS, circle, faults, level_in, module_of

ROOT = Path(next(iter(tritonfuser.__path__)))
FILES = sorted(ROOT.rglob("*.py"))
REPOSITORY = Path(__file__).parents[1]
MOST = 25
"""Modules in a folder."""


def test_every_room_has_a_place():
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert {room for room in rooms if level_in(HOUSE, room) is None} == set()


@pytest.mark.parametrize("room", ROOMS)
def test_everything_in_a_room_has_a_place(room):
    inside = {path.relative_to(ROOT / room).parts[0] for path in (ROOT / room).rglob("*.py")}
    names = {name.removesuffix(".py") for name in inside} - {"__init__"}
    assert names == set().union(*ROOMS[room])


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_imports_point_down(path):
    found = faults(path.read_text(), module_of(path, ROOT), path.name == "__init__.py")
    assert not found, "\n".join(f"{path}:{line}: {what}" for line, what in found)


def test_no_imports_make_a_circle():
    texts = {module_of(p, ROOT): (p.read_text(), p.name == "__init__.py") for p in FILES}
    assert circle(texts) == []


def folders(name):
    """The folders of the repository's top-level folder that have modules, largest first."""
    return Counter(path.parent for path in (REPOSITORY / name).rglob("*.py")).most_common()


@pytest.mark.parametrize("name", ["tritonfuser", "bench", "tests"])
def test_folders_are_small(name):
    for folder, count in folders(name):
        modules = count - (folder / "__init__.py").exists()
        assert modules <= MOST, f"{folder} has {modules} modules"


def test_the_page_of_modules_is_up_to_date():
    page = REPOSITORY / "docs" / "modules.py"
    spec = importlib.util.spec_from_file_location("docs_modules", page)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text() == script.page(), "run: python docs/modules.py"


@pytest.mark.parametrize("name", ["tritonfuser", "bench"])
def test_packages_say_what_they_hold(name):
    for folder, _ in folders(name):
        first = folder / "__init__.py"
        assert first.exists() and first.read_text().startswith('"""'), folder


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
    ("from ..emit.lines import Line", "tritonfuser.lowering.tile.nest"),
    ("from .. import emit", "tritonfuser.lowering.tile.nest"),
    ("from .index_expr import Axis", "tritonfuser.symbolic.sizes"),
    ("def f():\n    import os", "tritonfuser.ir"),
    ("async def f():\n    from .errors import x", "tritonfuser.ir"),
    ("class A:\n    def f(self):\n        if 1:\n            import os", "tritonfuser.ir"),
    ("f = lambda: __import__('os')", "tritonfuser.ir"),
    ("def f():\n    return importlib.import_module('os')", "tritonfuser.ir"),
    ("if TYPE_CHECKING:\n    from .frontend import x", "tritonfuser.ir"),
]

FINE = [
    ("from .errors import x\nfrom . import options", "tritonfuser.device"),
    ("from ..ir import Value\nfrom .kernel_source import x", "tritonfuser.lowering.build"),
    ("from .. import options", "tritonfuser.lowering.build"),
    ("from ..tile.nest import Nest", "tritonfuser.lowering.emit.kernel_body"),
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


CIRCLES = [
    ("from .b import x", "from .a import y"),
    ("from . import b", "from tritonfuser.lowering.emit import a"),
    ("from .b import x", "if TYPE_CHECKING:\n    from .a import y"),
    ("def f():\n    from .b import x", "from .a import y"),
]


@pytest.mark.parametrize(("a", "b"), CIRCLES)
def test_circles_are_found(a, b):
    room = f"{tritonfuser.__name__}.lowering.emit"
    assert set(circle({f"{room}.a": (a, False), f"{room}.b": (b, False)})) == {
        f"{room}.a",
        f"{room}.b",
    }
    assert circle({f"{room}.a": (a, False), f"{room}.b": ("import os", False)}) == []
