"""The op table against the contract: each op is there, called as nvFuser's, printed, and right."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from tests.contract import (
    COUNT,
    LIBRARY,
    NARROW,
    NO_DEFAULT,
    OPTIONAL_HERE,
    Form,
    signatures,
)
from tests.e2e.checking import assert_same, copied
from tests.e2e.ops import calls as many
from tests.e2e.ops.every_op import calls_of
from tests.e2e.ops.samples import DRAWN, SCALARS
from tests.e2e.ops.test_narrow_precision import example, narrow_calls
from tritonfuser import DataType, FusionDefinition, TensorView, Val
from tritonfuser.errors import UnsupportedDeviceError
from tritonfuser.frontend.record.operators import Operators
from tritonfuser.ops import registry
from tritonfuser.ops.arguments import bind
from tritonfuser.ops.table import Library

CONTRACT = signatures()
by_name = pytest.mark.parametrize("name", CONTRACT)
GENERATED = [name for name in CONTRACT if name not in NARROW | SCALARS | DRAWN]


def test_the_contract_is_whole() -> None:
    assert len(CONTRACT) == COUNT


# --- declared ------------------------------------------------------------------------------------


@by_name
def test_every_op_is_declared(name: str) -> None:
    assert name in registry.OPS, f"fd.ops has no {name}"
    text = inspect.getdoc(getattr(Operators, name))
    assert text and text.splitlines()[0].endswith(".")
    assert all(param in text for form in CONTRACT[name] for param in names_here(form))


def names_here(form: Form) -> list[str]:
    """Its parameters as ours are called: one dim and several are one parameter."""
    dims = {"dim": "dims"} if form.name in ("sum", "prod", "max", "min") else {}
    return [dims.get(name, name) for name, _ in form.params]


@by_name
def test_parameters_have_the_same_names_and_defaults(name: str) -> None:
    """Of several forms: the first that leaves a parameter out makes it one with a default."""
    found = inspect.signature(getattr(FusionDefinition().ops, name)).parameters
    wanted: dict[str, object] = {}
    forms = CONTRACT[name]
    for form in forms:
        for ours, (_, default) in zip(names_here(form), form.params, strict=True):
            wanted.setdefault(ours, default)
    everywhere = set.intersection(*(set(names_here(form)) for form in forms))
    assert set(found) == set(wanted)
    for ours, default in wanted.items():
        may_be_left_out = ours not in everywhere or ours in OPTIONAL_HERE.get(name, ())
        if may_be_left_out and default is NO_DEFAULT:
            default = "None"
        assert default_text(found[ours]) == default, ours


def default_text(param: inspect.Parameter) -> object:
    if param.default is inspect.Parameter.empty:
        return NO_DEFAULT
    text = repr(param.default)
    return text.removeprefix("DataType.")


@by_name
def test_parameters_stand_in_the_same_places(name: str) -> None:
    """Of each form: by place, and the last by its name alone where it says so."""
    found = inspect.signature(getattr(Operators, name)).parameters.values()
    ours = [p.name for p in list(found)[1:] if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    for form in CONTRACT[name]:
        places = names_here(form)[: len(form.positional)]
        # A DataType in the place of the dims is the dtype.
        if places == ["arg", "dtype"] and "dims" in ours:
            continue
        assert ours[: len(places)] == places
        assert {p.name for p in found if p.kind is p.KEYWORD_ONLY} == form.keyword_only


REDUCTIONS = [name for name, forms in CONTRACT.items() if len(forms) == 3]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_forms_of_a_reduction(name: str) -> None:
    """A dtype, a dim or dims come second, under their own names too."""
    op = registry.get(name)
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1]).value
    same = (
        (bind(op, (x, DataType.Double), {}), bind(op, (x,), {"dtype": DataType.Double})),
        (bind(op, (x, 1, True), {}), bind(op, (x,), {"dim": 1, "keepdim": True})),
        (bind(op, (x, [1]), {}), bind(op, (x,), {"dims": (1,)})),
        (bind(op, (x, 1), {}), bind(op, (x,), {"dims": [1]})),
    )
    for one, other in same:
        assert (one.args, one.attrs) == (other.args, other.attrs)


# --- run -----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(11)


@pytest.mark.parametrize("name", GENERATED)
def test_every_op_gives_torchs_numbers(name: str) -> None:
    """Its calls, against the row's oracle; recorded from what is printed they give the same."""
    calls = calls_of(name)
    assert calls, f"{name} has no call to try"
    recorded = many.record(name, calls)
    assert set(recorded.counts) == {len(CONTRACT[name][0].results)}
    found = recorded.fd.run(copied(recorded.inputs), device="cpu")
    wanted = many.reference(name, calls, double=name not in ("nextafter", *LIBRARY, "scatter"))
    many.assert_close(found, wanted, recorded, times=8, signs=False)
    assert_printed(recorded.fd, recorded.inputs, found)
    assert_generated(name, recorded.fd, recorded.inputs)


def assert_printed(fd: FusionDefinition, inputs: list[Any], found: list[torch.Tensor]) -> None:
    """The printed definition, run in a scope of these names alone, gives the same."""
    scope: dict[str, Any] = {
        "FusionDefinition": FusionDefinition,
        "DataType": DataType,
        "TensorView": TensorView,
        "torch": torch,
    }
    exec(repr(fd), scope)
    with FusionDefinition() as again:
        scope["nvfuser_fusion"](again)
    torch.manual_seed(11)
    assert_same(again.run(copied(inputs), device="cpu"), found)


def assert_generated(name: str, fd: FusionDefinition, inputs: list[Any]) -> None:
    """Torch runs what the contract lets it run, and nothing else."""
    used = {s.scheduler for s in fd.segments(inputs, arch="sm_90").segments}
    assert "expr_eval" not in used or name in LIBRARY, f"torch runs {name}"
    assert not isinstance(registry.get(name).form, Library) or name in LIBRARY


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_every_op_that_gives_numbers(name: str) -> None:
    """As factors of a tensor, which can be an output."""
    (call,) = calls_of(name)
    x = call.args[0]
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        made = getattr(fd.ops, name)(t, *call.args[1:])
        sizes = made if isinstance(made, list) else [made]
        assert all(isinstance(size, Val) and not size.is_tensor() for size in sizes)
        for size in sizes:
            fd.add_output(fd.ops.mul(t, size))
    found = fd.run([x])
    extents = list(x.shape) if name == "shape" else [x.shape[call.args[1]]]
    assert [torch.equal(one, x * n) for one, n in zip(found, extents, strict=True)]
    assert_printed(fd, [x], found)
    assert_generated(name, fd, [x])


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_every_op_that_draws(name: str) -> None:
    """Shape and dtype of the operand; the same numbers of the same seed."""
    (call,) = calls_of(name)
    recorded = many.record(name, [call])
    found = recorded.fd.run(recorded.inputs)
    assert found[0].shape == call.args[0].shape and found[0].dtype is call.args[0].dtype
    assert len(found[0].unique()) > 6
    assert_printed(recorded.fd, recorded.inputs, found)
    assert_generated(name, recorded.fd, recorded.inputs)


@pytest.mark.parametrize("name", sorted(NARROW))
def test_every_op_of_narrow_numbers_refuses(name: str) -> None:
    """Recorded and printed like any other; a run says which device it would need."""
    with FusionDefinition() as fd:
        made = narrow_calls(fd)[name]()
        results = made if isinstance(made, tuple) else (made,)
        assert len(results) == len(CONTRACT[name][0].results)
        for out in results:
            fd.add_output(out)
    scope: dict[str, Any] = {"FusionDefinition": FusionDefinition, "DataType": DataType}
    exec(repr(fd), scope)
    with FusionDefinition() as again:
        scope["nvfuser_fusion"](again)
    assert repr(again) == repr(fd)
    inputs = [example(value) for value in fd.fusion.ir.inputs]
    for definition in (fd, again):
        with pytest.raises(UnsupportedDeviceError, match=rf"(?s){name}: .*sm_100"):
            definition.run(inputs)
