"""Short reductions along memory are unrolled where kernels that have them are slow."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import SLOW, check, lowered, record, schedulers
from tritonfuser import DataType
from tritonfuser.ir import Node
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.passes.unrolled_reductions import MOST_OF_ANY, is_short

ORDER = 3


def splines(fd: Any, x: Any, grad: Any) -> Any:
    """Weighted sums over B-splines of each number, of all orders: each has one spline less."""
    rows, features, count = grad.shape()
    wide = [rows, features, count]
    steps = fd.ops.cast(fd.ops.iota(count + 1, -3, 1), DataType.Float)
    knots = fd.ops.sub(fd.ops.mul(steps, 0.4), 1.0)

    def knot(first: int, splines: int) -> Any:
        cut = fd.ops.slice(knots, [first], [first + splines])
        return fd.ops.broadcast_in_dim(cut, [rows, features, splines], [2])

    def shifted(y: Any, first: int, splines: int) -> Any:
        return fd.ops.slice(y, [0, 0, first], [rows, features, first + splines])

    place = fd.ops.broadcast_in_dim(x, wide, [0, 1])
    inside = fd.ops.logical_and(fd.ops.ge(place, knot(0, count)), fd.ops.lt(place, knot(1, count)))
    found, total = fd.ops.cast(inside, DataType.Float), None
    for order in range(1, ORDER + 1):
        left = count - order
        at = fd.ops.broadcast_in_dim(x, [rows, features, left], [0, 1])
        rise = fd.ops.div(
            fd.ops.sub(at, knot(0, left)), fd.ops.sub(knot(order, left), knot(0, left))
        )
        fall = fd.ops.sub(knot(order + 1, left), at)
        fall = fd.ops.div(fall, fd.ops.sub(knot(order + 1, left), knot(1, left)))
        both = (
            fd.ops.mul(rise, shifted(found, 0, left)),
            fd.ops.mul(fall, shifted(found, 1, left)),
        )
        found = fd.ops.add(*both)
        part = fd.ops.sum(fd.ops.mul(found, shifted(grad, 0, left)), [2])
        total = part if total is None else fd.ops.add(total, part)
    return total


def given(rows: int, features: int, count: int) -> list[torch.Tensor]:
    return [noise(rows, features), noise(rows, features, count, seed=1)]


def unfilled(rows: int, features: int, count: int) -> list[torch.Tensor]:
    sizes = (rows, features), (rows, features, count)
    return [torch.empty(size, dtype=torch.bfloat16, device="meta") for size in sizes]


def reducers(found: Any) -> list[Node]:
    return [n for s in found.segmented.segments for n in s.nodes if n.op in ("sum", "max")]


@pytest.fixture(params=[0, 1], ids=["chosen", "computed"])
def always(request: Any, monkeypatch: Any) -> None:
    """One of the ways to cut the unrolled fusion is taken, whatever time it takes."""
    monkeypatch.setattr(
        segment_choice,
        "with_short_unrolled",
        lambda first, short, device, ways: ways()[request.param],
    )


@pytest.mark.parametrize("count", [8, 11, 16])
def test_sums_of_several_lengths_are_one_kernel(count: int) -> None:
    found = lowered(splines, unfilled(8192, 512, count))
    assert len(schedulers(found)) == 1 and not reducers(found)


def test_long_ones_stay() -> None:
    inputs = unfilled(2048, 512, MOST_OF_ANY + ORDER + 1)
    assert len(reducers(lowered(splines, inputs))) == ORDER


def test_those_of_memory_bound_kernels_stay() -> None:
    def body(fd: Any, x: Any, grad: Any) -> Any:
        return fd.ops.sum(grad, [2])

    (node,) = reducers(lowered(body, unfilled(8192, 512, 8)))
    assert is_short(node)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("count", [5, 8, 11])
def test_values_are_those_of_torch(count: int) -> None:
    found = check(splines, *given(7, 5, count), facts=SLOW)
    assert not reducers(found)


@pytest.mark.usefixtures("always")
def test_numbers_that_are_not_finite() -> None:
    x, grad = given(7, 5, 8)
    x[1, 2], x[2, 3], grad[3, 3, 2], grad[4] = torch.nan, torch.inf, -torch.inf, -0.0
    check(splines, x, grad, facts=SLOW)


def test_the_schedule_has_no_reductions_and_gives_the_same_kernels() -> None:
    inputs = unfilled(8192, 512, 8)
    fd = record(splines, inputs)
    schedule = json.loads(json.dumps(fd.schedule(inputs, arch="sm_90").to_dict()))
    assert [segment["computes"] for segment in schedule["segments"]] == [[]]
    (kernel,) = fd.kernels(inputs, arch="sm_90")
    (again,) = fd.kernels(inputs, arch="sm_90", schedule=schedule)
    assert kernel.text == again.text
