"""Products that a definition rounds to 16 bits are not contracted with a sum of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser import DataType
from tritonfuser.lowering.passes.arithmetic.rounded_products import round_products

SHAPE = (64, 1024)
HALVES = {torch.bfloat16: DataType.BFloat16, torch.float16: DataType.Half}
CONTRACTED = re.compile(r"fma\.rn\.b?f16|v_(?:pk_)?fma(?:c|mk|ak)?_f16")
"""PTX of Hopper, and AMDGCN. Ampere sums bfloat16 by an fma with 1."""

Ops = Any
Body = Callable[[Ops, Callable[[Any], Any], Any, Any, Any], Any]
SUMS: dict[str, Body] = {
    "add": lambda ops, rounded, a, b, c: ops.add(rounded(ops.mul(a, b)), c),
    "sub": lambda ops, rounded, a, b, c: ops.sub(c, rounded(ops.mul(a, b))),
    "two products": lambda ops, rounded, a, b, c: ops.add(
        rounded(ops.mul(a, b)), rounded(ops.mul(b, c))
    ),
    "a square": lambda ops, rounded, a, b, c: ops.add(rounded(ops.mul(a, a)), c),
    "a number": lambda ops, rounded, a, b, c: ops.add(rounded(ops.mul(a, 1.5)), c),
    "a sum with a number": lambda ops, rounded, a, b, c: ops.add(rounded(ops.mul(a, b)), 1.5),
    "a negative": lambda ops, rounded, a, b, c: ops.add(
        rounded(ops.neg(rounded(ops.mul(a, b)))), c
    ),
    "times 1": lambda ops, rounded, a, b, c: ops.add(ops.mul(rounded(ops.mul(a, b)), 1.0), c),
    "less 0": lambda ops, rounded, a, b, c: ops.add(ops.sub(rounded(ops.mul(a, b)), 0.0), c),
    "plus -0": lambda ops, rounded, a, b, c: ops.add(ops.add(rounded(ops.mul(a, b)), -0.0), c),
    "to the power of 1": lambda ops, rounded, a, b, c: ops.add(
        ops.pow(rounded(ops.mul(a, b)), 1.0), c
    ),
    "a row": lambda ops, rounded, a, b, c: ops.add(
        rounded(ops.mul(a, ops.expand(ops.slice(b, [0, 0], [1, SHAPE[1]]), SHAPE))), c
    ),
    "a cat": lambda ops, rounded, a, b, c: ops.add(
        ops.cat([rounded(ops.mul(_half(ops, a), _half(ops, b))), _half(ops, b)], 1), c
    ),
    "halves": lambda ops, rounded, a, b, c: ops.add(
        rounded(ops.mul(_rotated(ops, a), b)), rounded(ops.mul(a, c))
    ),
}
KEPT: dict[str, Body] = {
    "no sum": lambda ops, rounded, a, b, c: ops.maximum(rounded(ops.mul(a, b)), c),
    "no rounding": lambda ops, rounded, a, b, c: ops.add(ops.mul(a, b), c),
    "a long number": lambda ops, rounded, a, b, c: ops.add(rounded(ops.mul(a, 1.1)), c),
    "a product of a sum": lambda ops, rounded, a, b, c: ops.mul(rounded(ops.add(a, b)), c),
}


def _half(ops: Ops, x: Any) -> Any:
    return ops.slice(x, [0, 0], [SHAPE[0], SHAPE[1] // 2])


def _rotated(ops: Ops, x: Any) -> Any:
    low = _half(ops, x)
    high = ops.slice(x, [0, SHAPE[1] // 2], list(SHAPE))
    return ops.cat([ops.neg(high), low], 1)


def recorded(body: Body, kind: torch.dtype, *inputs: torch.Tensor) -> Any:
    def rounded_to_kind(fd: Any, *given: Any) -> Any:
        def wide(x: Any) -> Any:
            return fd.ops.cast(x, dtype=DataType.Float)

        def narrow(x: Any) -> Any:
            return fd.ops.cast(x, dtype=HALVES[kind])

        return narrow(body(fd.ops, lambda x: wide(narrow(x)), *map(wide, given)))

    return record(rounded_to_kind, inputs)


def absent(kind: torch.dtype) -> list[torch.Tensor]:
    return [torch.empty(SHAPE, dtype=kind, device="meta") for _ in range(3)]


@pytest.mark.covering
@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", SUMS)
def test_rounds_before_a_sum(name: str, kind: torch.dtype, arch: str) -> None:
    inputs = absent(kind)
    for report in recorded(SUMS[name], kind, *inputs).compile_for(arch, inputs):
        text = report.asm["ptx" if arch == "sm_90" else "amdgcn"]
        assert "mul_rn(" in report.source
        assert not CONTRACTED.search(text)


@pytest.mark.parametrize("name", KEPT)
def test_others_are_plain_products(name: str) -> None:
    inputs = absent(torch.bfloat16)
    for report in recorded(KEPT[name], torch.bfloat16, *inputs).compile_for("sm_90", inputs):
        assert "mul_rn(" not in report.source
        assert not CONTRACTED.search(report.asm["ptx"])


@pytest.mark.covering
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", SUMS)
def test_values_are_those_of_torch(name: str, kind: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(SHAPE, generator=generator).to(kind) for _ in range(3)]
    fd = recorded(SUMS[name], kind, *inputs)
    fd.validate(inputs)


def test_a_long_chain_between() -> None:
    """Of more nodes than Python calls functions within one another."""

    def body(ops: Ops, rounded: Any, a: Any, b: Any, c: Any) -> Any:
        found = rounded(ops.mul(a, b))
        for _ in range(1201):
            found = ops.neg(found)
        for _ in range(1200):
            found = ops.permute(found, [1, 0])
        return ops.add(found, c)

    fusion = recorded(body, torch.bfloat16, *absent(torch.bfloat16)).fusion.ir
    assert [node.op for node in round_products(fusion).nodes].count("mul_rn") == 1
