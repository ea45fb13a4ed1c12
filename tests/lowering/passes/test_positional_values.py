"""What is computed of positions alone has the size of the dims that it lies along."""

from __future__ import annotations

from typing import Any

import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record
from tritonfuser import DataType

ROWS, KNOTS = 20, 6


def knots(fd: Any) -> Any:
    """The distances of knots, each expanded to all rows before it is inverted."""
    steps = fd.ops.cast(fd.ops.iota(KNOTS, 1, 1), DataType.Float)
    wide = fd.ops.broadcast_in_dim(fd.ops.mul(steps, 0.4), [ROWS, KNOTS], [1])
    return fd.ops.reciprocal(wide)


def spline(fd: Any, x: Any) -> Any:
    return fd.ops.mul(x, knots(fd))


def returned(fd: Any, x: Any) -> Any:
    """A result has an element in memory for each of its positions."""
    wide = knots(fd)
    return fd.ops.mul(x, wide), fd.ops.permute(wide, [1, 0])


def sizes_of(body: Any, op: str) -> list[tuple[int, ...]]:
    x = noise(ROWS, KNOTS)
    ir = lowered(record(body, [x]), [x]).segmented.fusion
    return [tuple(node.out.tensor.sizes) for node in ir.nodes if node.op == op]


def test_they_are_computed_before_they_are_expanded() -> None:
    assert sizes_of(spline, "coarse_reciprocal") + sizes_of(spline, "reciprocal") == [(1, KNOTS)]
    check(spline, noise(ROWS, KNOTS))


def test_results_stay_whole() -> None:
    assert (ROWS, KNOTS) in sizes_of(returned, "reciprocal")
    found = check(returned, noise(ROWS, KNOTS))
    assert found is not None


def test_what_is_loaded_stays_as_it_is() -> None:
    def scaled(fd: Any, x: Any, weight: Any) -> Any:
        wide = fd.ops.broadcast_in_dim(weight, [ROWS, KNOTS], [1])
        return fd.ops.mul(x, fd.ops.exp(wide))

    given = [noise(ROWS, KNOTS), noise(KNOTS, seed=1)]
    ir = lowered(record(scaled, given), given).segmented.fusion
    (node,) = (node for node in ir.nodes if node.op == "exp")
    assert tuple(node.out.tensor.sizes) == (ROWS, KNOTS)
    check(scaled, *given)


def test_masks_of_positions() -> None:
    """A causal mask that is compared for all heads is compared once."""

    def body(fd: Any, x: Any) -> Any:
        place = fd.ops.iota(KNOTS, 0, 1)
        rows = fd.ops.broadcast_in_dim(place, [3, KNOTS, KNOTS], [1])
        columns = fd.ops.broadcast_in_dim(place, [3, KNOTS, KNOTS], [2])
        return fd.ops.where(fd.ops.ge(rows, columns), x, float("-inf"))

    x = noise(3, KNOTS, KNOTS)
    ir = lowered(record(body, [x]), [x]).segmented.fusion
    (mask,) = (node for node in ir.nodes if node.op == "ge")
    assert tuple(mask.out.tensor.sizes) == (1, KNOTS, KNOTS)
    (found,) = record(body, [x]).run([x])
    mask = torch.ones(KNOTS, KNOTS).tril().bool()
    assert torch.equal(found, torch.where(mask, x, -torch.inf))
