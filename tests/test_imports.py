"""What ``import tritonfuser`` loads and offers."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import inspect
import os
import pydoc
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import tritonfuser
from tritonfuser.errors import TritonFuserError
from tritonfuser.exports import GROUPS, MODULES, ORIGINS

ROOT = Path(tritonfuser.__file__).parents[1]


def loaded_by(statement):
    """The modules of a new process after a statement."""
    text = f"{statement}\nimport sys; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", text]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return set(found.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_by("import tritonfuser")
    for heavy in ("torch", "triton", "sympy", "numpy", "tabulate", "click"):
        assert heavy not in loaded
    assert {name for name in loaded if name.startswith("tritonfuser.")} == {"tritonfuser.exports"}


KNOWN = """
from tritonfuser import FusionDefinition
with FusionDefinition() as fd:
    fd.add_output(fd.ops.exp(fd.define_tensor([4, 8], contiguity=True)))
"""


def test_sympy_is_loaded_where_a_size_is_not_known():
    """Beyond what torch imports itself."""

    def ours(text):
        loaded = loaded_by(text) - loaded_by("import torch")
        return {name.split(".")[0] for name in loaded} & {"sympy", "mpmath", "click"}

    assert not ours(KNOWN)
    assert "sympy" in loaded_by(KNOWN.replace("[4, 8]", "[-1, 8]"))


@pytest.mark.parametrize("name", tritonfuser.__all__)
def test_every_name_is_there(name):
    found = getattr(tritonfuser, name)
    assert name == "multidevice" or getattr(found, "__name__", name) == name
    assert getattr(tritonfuser, name) is found


def test_nothing_else_is():
    assert set(tritonfuser.__all__) == {*ORIGINS, "multidevice"}
    assert len(set(tritonfuser.__all__)) == sum(map(len, GROUPS.values())) + 1
    with pytest.raises(AttributeError, match=r"tritonfuser.*no attribute 'FusionDefintion'"):
        tritonfuser.FusionDefintion  # noqa: B018
    for name in MODULES:
        assert inspect.ismodule(getattr(tritonfuser, name))


def test_star_gives_all_names():
    scope = {}
    exec("from tritonfuser import *", scope)
    assert set(tritonfuser.__all__) <= scope.keys()


def test_ops_are_those_to_record_whatever_is_imported():
    program = (
        "import tritonfuser.ops.registry\n"
        "import tritonfuser, tritonfuser.ops\n"
        "from tritonfuser import ops\n"
        "from tritonfuser.ops.registry import OPS\n"
        "assert callable(ops.add) and tritonfuser.ops is ops and 'add' in OPS"
    )
    loaded_by(program)


def test_help_is_short():
    text = pydoc.render_doc(tritonfuser, renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 80
    for name in ("FusionDefinition", "Operators", "doctor", "GROUPS"):
        assert name in text


def test_the_stub_is_up_to_date():
    spec = importlib.util.spec_from_file_location("docs_exports", ROOT / "docs" / "exports.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.STUB.read_text() == script.stub(), "run: python docs/exports.py"


# --- what public calls return and raise ----------------------------------------------------------


def public_functions():
    for name in tritonfuser.__all__:
        thing = getattr(tritonfuser, name)
        if inspect.isclass(thing) and thing.__module__.startswith("tritonfuser."):
            for key, member in inspect.getmembers(thing):
                function = member.fget if isinstance(member, property) else member
                if inspect.isfunction(function) and not key.startswith("_"):
                    yield f"{name}.{key}", function
        elif inspect.isfunction(thing):
            yield name, thing


FUNCTIONS = dict(public_functions())


def classes_in(annotation):
    if inspect.isclass(annotation) and not typing.get_args(annotation):
        yield annotation
    for part in typing.get_args(annotation):
        yield from classes_in(part)


def returned_by(function):
    try:
        return list(classes_in(typing.get_type_hints(function).get("return")))
    except NameError:
        return []


@pytest.mark.parametrize("name", ["FusionDefinition"])
def test_what_methods_return_can_be_imported(name):
    exported = {getattr(tritonfuser, key) for key in tritonfuser.__all__ if key != "multidevice"}
    asked = {key: f for key, f in FUNCTIONS.items() if key.startswith(f"{name}.")}
    returned = {c for f in asked.values() for c in returned_by(f)}
    own = {c for c in returned if c.__module__.startswith("tritonfuser.")}
    assert tritonfuser.BoundPlan in own and tritonfuser.KernelReport in own
    assert {c.__qualname__ for c in own - exported} == set()


def test_what_docstrings_say_is_raised_can_be_imported():
    said = {
        word
        for function in FUNCTIONS.values()
        for part in (inspect.getdoc(function) or "").split("Raises\n------")[1:]
        for word in re.findall(r"^\s{0,4}(\w+(?:Error|Mismatch))$", part, re.MULTILINE)
    }
    assert len(said) > 6
    assert said - set(dir(builtins)) - set(tritonfuser.__all__) == set()


def error_classes(of=TritonFuserError):
    for found in of.__subclasses__():
        yield found
        yield from error_classes(found)


def test_every_error_can_be_imported():
    [getattr(tritonfuser, name) for name in tritonfuser.__all__]
    ours = {c for c in error_classes() if c.__module__.startswith("tritonfuser.")}
    assert {c.__name__ for c in ours} <= set(tritonfuser.__all__)
    assert {"InputMismatch", "NoReferenceError", "CacheDirectoryError"} <= set(tritonfuser.__all__)


def test_multidevice_is_one_module_under_two_names():
    from tritonfuser.frontend import multidevice

    imported = importlib.import_module("tritonfuser.multidevice")
    assert tritonfuser.multidevice is imported is multidevice
    stub = (ROOT / "tritonfuser" / "multidevice.py").read_text()
    assert all(f'"{name}"' in stub for name in multidevice.__all__)
