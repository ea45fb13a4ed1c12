"""The values that hold what is computed before them in the fewest bytes."""

from __future__ import annotations

from typing import Any

import torch

from tests.lowering.harness import H200, lowered, record
from tritonfuser import DataType
from tritonfuser.lowering.refine.bottlenecks import bottlenecks
from tritonfuser.ops.builder import as_call
from tritonfuser.ops.forms import Random

SHAPE = (1436, 37, 2018)


def dropped(fd: Any, x: Any) -> Any:
    kept = fd.ops.lt(fd.ops.uniform(0.0, 1.0, list(SHAPE), dtype=DataType.Float), 0.9)
    return fd.ops.mul(fd.ops.mul(x, fd.ops.cast(kept, DataType.Float)), 1 / 0.9)


def normed_columns(fd: Any, x: Any) -> Any:
    """A norm over the middle dim of what a dropout leaves."""
    left = dropped(fd, fd.ops.cast(x, DataType.Float))
    spread, mean = fd.ops.var_mean(left, [1], 0, True)
    scaled = fd.ops.mul(fd.ops.sub(left, mean), fd.ops.rsqrt(fd.ops.add(spread, 1e-5)))
    return fd.ops.cast(
        fd.ops.mul(fd.ops.exp(left), fd.ops.sum(scaled, [2], True)), DataType.BFloat16
    )


def test_what_a_dropout_keeps_is_narrower_than_its_random_numbers() -> None:
    fusion = lowered(dropped, [torch.empty(SHAPE, device="meta")], H200).segmented.fusion
    (kept,) = (node.out for node in fusion.nodes if node.op == "lt")
    assert kept in [*bottlenecks(fusion)]


def test_numbers_that_several_ops_use_are_in_memory_themselves() -> None:
    def body(fd: Any, x: Any) -> Any:
        noise = fd.ops.uniform(0.0, 1.0, list(SHAPE), dtype=DataType.Float)
        return fd.ops.mul(x, noise), fd.ops.lt(noise, 0.5)

    fusion = lowered(body, [torch.empty(SHAPE, device="meta")], H200).segmented.fusion
    (drawn,) = (n.out for n in fusion.nodes if isinstance(as_call(n).op.form, Random))
    assert drawn in [*bottlenecks(fusion)]


def test_a_dropout_that_kernels_draw_again_is_one_byte_an_element() -> None:
    """Its rows begin between Philox counters, so that each kernel draws most words twice."""
    inputs = [torch.empty(SHAPE, dtype=torch.bfloat16, device="meta")]
    fd = record(normed_columns, inputs)
    names = fd.segments(inputs, arch="sm_90").rewrites.invariants
    (kept,) = (node.out.name for node in fd.fusion.ir.nodes if node.op == "lt")
    assert kept in names
