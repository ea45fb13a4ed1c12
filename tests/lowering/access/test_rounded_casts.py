"""Casts to bfloat16 whose results are widened again: two numbers an instruction, the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, record
from tests.lowering.sass import disassembled, instructions
from tritonfuser import DataType

Body = Callable[..., Any]
ROUND, NARROW = "round_to_bfloat16(", " to_bfloat16("


def wide(fd: Any, x: Any) -> Any:
    return fd.ops.cast(x, DataType.Float)


def narrow(fd: Any, x: Any) -> Any:
    return fd.ops.cast(x, DataType.BFloat16)


def rounded(fd: Any, x: Any) -> Any:
    return wide(fd, narrow(fd, x))


def directly(fd: Any, x: Any) -> Any:
    return narrow(fd, fd.ops.sin(rounded(fd, fd.ops.exp(wide(fd, x)))))


def stored_too(fd: Any, x: Any) -> Any:
    half = narrow(fd, fd.ops.exp(wide(fd, x)))
    return half, fd.ops.sin(wide(fd, half))


def behind_a_concatenation(fd: Any, x: Any) -> Any:
    half = narrow(fd, fd.ops.exp(wide(fd, x)))
    both = wide(fd, fd.ops.cat([half, x], 1))
    return fd.ops.sum(fd.ops.sin(both), [1])


def before_a_sum_of_halves(fd: Any, x: Any) -> Any:
    """LLVM adds two bfloat16 numbers in bfloat16, if it sees that they are."""
    half = narrow(fd, fd.ops.exp(wide(fd, x)))
    return narrow(fd, fd.ops.add(wide(fd, half), wide(fd, x)))


def chain_of_halves(fd: Any, x: Any) -> Any:
    """No number is converted at all."""
    return narrow(fd, fd.ops.add(rounded(fd, fd.ops.add(wide(fd, x), wide(fd, x))), wide(fd, x)))


def statistics(fd: Any, x: Any) -> Any:
    total = rounded(fd, fd.ops.sum(wide(fd, x), [1]))
    return fd.ops.sub(wide(fd, x), fd.ops.broadcast(total, [False, True]))


BODIES: dict[str, tuple[Body, str]] = {
    "directly": (directly, ROUND),
    "stored too": (stored_too, ROUND),
    "behind a concatenation": (behind_a_concatenation, NARROW),
    "before a sum of halves": (before_a_sum_of_halves, NARROW),
    "chain of halves": (chain_of_halves, ""),
    "statistics of rows": (statistics, ""),
}
CASES = pytest.mark.parametrize(("body", "function"), BODIES.values(), ids=BODIES)


@CASES
def test_which_casts_are_functions(body: Body, function: str) -> None:
    given = [torch.empty(1024, 512, dtype=torch.bfloat16, device="meta")]
    text = "".join(kernel.text for kernel in record(body, given).kernels(given, arch="sm_90"))
    for each in (ROUND, NARROW):
        assert (each in text) is (each == function)


@CASES
def test_results_are_those_of_the_casts(body: Body, function: str) -> None:
    x = noise(12, 40).bfloat16()
    x[0, :5] = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-40])
    check(body, x)


@CASES
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_no_number_is_converted_by_itself(
    body: Body, function: str, arch: str, tmp_path: Path
) -> None:
    given = [torch.empty(4096, 1024, dtype=torch.bfloat16, device="meta")]
    (report,) = record(body, given).compile_for(arch, given)
    found = instructions(disassembled(report.asm["cubin"], tmp_path))
    # Those of statistics are one for each row that a thread has.
    assert found["F2F.BF16.F32"] <= (body is statistics) * 8


@pytest.mark.parametrize("elements", [1, 2, 3, 127, 1000])
@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_few_elements_compile(arch: str, elements: int) -> None:
    given = [torch.empty(elements, 1, dtype=torch.bfloat16, device="meta")]
    (report,) = record(directly, given).compile_for(arch, given)
    assert report.spill_bytes == 0


@pytest.mark.gpu
@pytest.mark.parametrize("elements", [1, 3, 127, 4099, 1 << 20])
def test_bits_on_a_gpu(elements: int) -> None:
    def body(fd: Any, x: Any) -> Any:
        half = narrow(fd, x)
        # Twice a bfloat16 number is one: nothing is rounded behind the cast.
        return fd.ops.mul(fd.ops.maximum(wide(fd, half), -math.inf), 2.0), half

    bits = torch.randint(-(1 << 31), (1 << 31) - 1, (elements,), device="cuda")
    x = bits.int().view(torch.float32)
    doubled, half = record(body, [x]).run([x])
    assert torch.equal(half.isnan(), x.isnan())
    there = ~x.isnan()
    assert torch.equal(half[there], x.bfloat16()[there])
    assert torch.equal(doubled[there], 2 * x.bfloat16().float()[there])
