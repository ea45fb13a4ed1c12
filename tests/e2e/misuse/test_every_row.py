"""Every row of the op table with every wrong value in the place of each argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.e2e.misuse.judging import fault_of
from tests.e2e.misuse.wrong_values import WRONG, made
from tests.e2e.ops.every_op import calls_of
from tests.e2e.ops.samples import Call
from tritonfuser import FusionDefinition, TritonFuserError
from tritonfuser.ops.registry import OPS

UNSAMPLED = {
    "nv_block_quantize": ([3, 32], {}),
    "nv_grouped_block_quantize": ([32, 32], {}),
}
"""Rows that no CPU runs, on a tensor of a shape."""
SHAPES_ONLY = ("[0, 0]", "[7]", "[-7]", "99", "[]", "a tensor [2, 3, 5, 7]", "a 0-dim tensor")
"""Values that are tried on operands of open sizes too."""


def sampled(name: str) -> list[dict[str, Any]]:
    """Up to three right calls of a row, of as many kinds, by parameter."""
    try:
        calls = calls_of(name)
    except KeyError:
        return []
    kinds: dict[object, Call] = {}
    for call in calls:
        ranks = tuple(x.dim() for x in call.args if isinstance(x, torch.Tensor))
        kinds.setdefault((len(call.args), tuple(sorted(call.kwargs)), ranks), call)
    names = [p.name for p in OPS[name].params if not p.keyword_only]
    return [
        {**dict(zip(names, call.args, strict=False)), **call.kwargs}
        for call in list(kinds.values())[:3]
    ]


def recorded(fd: FusionDefinition, given: dict[str, Any], static: bool) -> dict[str, Any]:
    """The arguments with tensors as inputs of a definition."""

    def handle(arg: Any) -> Any:
        if isinstance(arg, torch.Tensor):
            return fd.from_pytorch(arg, static_sizes=static)
        lists = isinstance(arg, list) and arg and isinstance(arg[0], torch.Tensor)
        return [handle(item) for item in arg] if lists else arg

    return {key: handle(arg) for key, arg in given.items()}


def faults(name: str, given: dict[str, Any], static: bool) -> Iterator[str]:
    """What is wrong with the refusals of one call's arguments, changed one at a time."""
    for param in OPS[name].params:
        for what in WRONG if static else SHAPES_ONLY:
            with FusionDefinition() as fd:
                right = recorded(fd, given, static)
                changed = {**right, param.name: made(WRONG[what], fd)}
                fault = fault_of_call(fd, name, right, changed)
            if fault is not None:
                yield f"{name}({param.name}={what}): {fault}"


def fault_of_call(
    fd: FusionDefinition, name: str, right: dict[str, Any], changed: dict[str, Any]
) -> str | None:
    """What is wrong with a changed call, where it is refused, and with the right one after it."""
    before = str(fd.fusion.ir)
    try:
        getattr(fd.ops, name)(**changed)
    except TritonFuserError as error:
        fault = fault_of(error, [name])
        if fault is None and str(fd.fusion.ir) != before:
            fault = "it left something behind"
        getattr(fd.ops, name)(**right)
        return fault
    except Exception as error:
        return fault_of(error, [name])
    if any(handle.container is not fd.fusion for handle in used(changed)):
        return "it took a value of another definition"
    return None


def used(given: dict[str, Any]) -> Iterator[Any]:
    """The handles among the arguments."""
    for arg in given.values():
        for item in arg if isinstance(arg, list | tuple) else (arg,):
            # Constants belong to nobody.
            if hasattr(item, "home") and item.is_symbolic():
                yield item


@pytest.mark.parametrize("name", [name for name in OPS if sampled(name)])
def test_wrong_arguments_are_refused_whole(name):
    found = [
        fault
        for given in sampled(name)
        for static in (True, False)
        for fault in faults(name, given, static)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", OPS)
def test_wrong_signatures_are_refused(name):
    """Too few, too many, twice, unknown: a TypeError at the call."""
    params = OPS[name].params
    calls = {
        "none": lambda ops: getattr(ops, name)(),
        "too many": lambda ops: getattr(ops, name)(*[1] * (len(params) + 1)),
        "unknown": lambda ops: getattr(ops, name)(nonsense=1),
        "twice": lambda ops: getattr(ops, name)(1, **{params[0].name: 1}),
    }
    for what, call in calls.items():
        with FusionDefinition() as fd:
            with pytest.raises(TypeError) as caught:
                call(fd.ops)
            assert fault_of(caught.value, [f"{name}()"]) is None, what
            assert not fd.fusion.ir.nodes


@pytest.mark.parametrize("name", OPS)
def test_closed_definitions_take_no_ops(name):
    with FusionDefinition() as fd:
        fd.add_output(fd.define_tensor([3]))
    with pytest.raises(RuntimeError) as caught:
        getattr(fd.ops, name)(*fd.fusion.inputs())
    assert fault_of(caught.value, [name]) is None
