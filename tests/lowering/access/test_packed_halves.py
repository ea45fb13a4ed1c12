"""Sums and products of 16-bit floats: half an instruction each where nothing needs float32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tests.lowering.sass import disassembled, instructions
from tritonfuser import DataType
from tritonfuser.lowering.cost import segment_element_work

ELEMENTS, EACH = 1 << 20, 8
HALVES = {torch.bfloat16: DataType.BFloat16, torch.float16: DataType.Half}
Op = Callable[..., Any]

PACKED: dict[str, Op] = {
    "add": lambda fd, a, b: fd.ops.add(a, b),
    "sub": lambda fd, a, b: fd.ops.sub(a, b),
    "mul": lambda fd, a, b: fd.ops.mul(a, b),
    "a short constant": lambda fd, a, b: fd.ops.mul(a, 0.125),
}
WHOLE: dict[str, Op] = {
    "maximum": lambda fd, a, b: fd.ops.maximum(a, b),
    "a constant of many digits": lambda fd, a, b: fd.ops.mul(a, 0.1),
    "two ops": lambda fd, a, b: fd.ops.add(fd.ops.mul(a, b), b),
}


def chain(op: Op, count: int, kind: torch.dtype) -> Op:
    """``count`` ops, each of which is rounded to 16 bits."""

    def body(fd: Any, *given: Any) -> Any:
        x, y = (fd.ops.cast(value, dtype=DataType.Float) for value in given)
        found = x
        for _ in range(count):
            half = fd.ops.cast(op(fd, found, y), dtype=HALVES[kind])
            found = fd.ops.cast(half, dtype=DataType.Float)
        return fd.ops.cast(fd.ops.maximum(found, y), dtype=HALVES[kind])

    return body


def counted(body: Op, kind: torch.dtype) -> float:
    """Instructions of an element by the cost model, in those of the integer pipe."""
    given = [torch.empty(ELEMENTS, dtype=kind, device="meta")] * 2
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    work = segment_element_work(piece)
    return work.before + work.after


def compiled(body: Op, kind: torch.dtype, folder: Path) -> float:
    """Instructions of an element as compiled."""
    given = [torch.empty(ELEMENTS, dtype=kind, device="meta")] * 2
    fd = record(body, given)
    data = fd.schedule(given, arch="sm_90").to_dict()
    data["segments"][0]["params"].update(block_x=128 * EACH, num_warps=4)
    (report,) = fd.compile_for("sm_90", given, schedule=data)
    return instructions(disassembled(report.asm["cubin"], folder)).total() / EACH


@pytest.mark.covering
@pytest.mark.parametrize("kind", HALVES, ids=str)
@pytest.mark.parametrize("name", PACKED)
def test_the_compiler_makes_one_instruction_of_two(name: str, kind: torch.dtype, tmp_path: Path):
    one, four = (chain(PACKED[name], count, kind) for count in (1, 4))
    assert counted(four, kind) - counted(one, kind) == pytest.approx(3 * 0.5)
    more = compiled(four, kind, tmp_path) - compiled(one, kind, tmp_path)
    assert more == pytest.approx(3 * 0.5, abs=0.3)


@pytest.mark.covering
@pytest.mark.parametrize("kind", HALVES, ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_what_needs_float32_is_computed_in_it(name: str, kind: torch.dtype, tmp_path: Path):
    one, four = (chain(WHOLE[name], count, kind) for count in (1, 4))
    assert counted(four, kind) - counted(one, kind) >= 3 * 1.5
    more = compiled(four, kind, tmp_path) - compiled(one, kind, tmp_path)
    assert more >= 3 * 1.5


def test_a_result_that_is_used_as_float32_too_is_not_packed():
    def body(fd: Any, *given: Any) -> Any:
        x, y = (fd.ops.cast(value, dtype=DataType.Float) for value in given)
        total = fd.ops.add(x, y)
        half = fd.ops.cast(total, dtype=DataType.BFloat16)
        return fd.ops.maximum(fd.ops.cast(half, dtype=DataType.Float), fd.ops.exp(total))

    def packed(fd: Any, *given: Any) -> Any:
        x, y = (fd.ops.cast(value, dtype=DataType.Float) for value in given)
        half = fd.ops.cast(fd.ops.add(x, y), dtype=DataType.BFloat16)
        found = fd.ops.cast(half, dtype=DataType.Float)
        return fd.ops.maximum(found, fd.ops.exp(found))

    assert counted(body, torch.bfloat16) > counted(packed, torch.bfloat16) + 1


def test_what_is_broadcast_is_packed_too():
    def body(fd: Any, x: Any, bias: Any) -> Any:
        wide = fd.ops.broadcast(fd.ops.cast(bias, dtype=DataType.Float), [True, False])
        total = fd.ops.add(fd.ops.cast(x, dtype=DataType.Float), wide)
        return fd.ops.cast(total, dtype=DataType.BFloat16)

    shapes = [(4096, 512), (512,)]
    given = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    assert segment_element_work(piece).after == pytest.approx(0.5)
