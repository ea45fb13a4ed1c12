"""Loops of which the last step is behind them: a tail as wide as a step."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest
import torch

from tests.lowering.sass import disassembled, loops
from tritonfuser import DataType, FusionDefinition, Schedule

KINDS = ("sum", "max", "min", "prod")
COLUMNS = 40


def columns(fd: Any, x: Any) -> list[Any]:
    return [getattr(fd.ops, kind)(x, [0]) for kind in KINDS]


def gelu_and_bias_gradient(fd: Any, x: Any) -> list[Any]:
    """A result along the columns is stored by all steps."""
    made = fd.ops.mul(x, fd.ops.sigmoid(x))
    return [made, fd.ops.sum(made, [0])]


def definition(body: Any, x: torch.Tensor) -> FusionDefinition:
    with FusionDefinition() as fd:
        for out in body(fd, fd.from_pytorch(x)):
            fd.add_output(out)
    return fd


def with_steps(fd: FusionDefinition, x: torch.Tensor, **fields: Any) -> Schedule:
    """The schedule of one kernel whose loop has these steps."""
    found = fd.schedule([x], arch="sm_90").to_dict()
    found["splits"] = []
    found = fd.schedule([x], arch="sm_90", schedule={**found, "segments": [one(found)]}).to_dict()
    found["segments"][0]["params"] |= {"persistent": False, "block_x": 16, **fields}
    return Schedule.from_dict(found)


def one(found: dict[str, Any]) -> dict[str, Any]:
    (segment,) = found["segments"]
    assert segment["scheduler"] == "reduction"
    return segment


@pytest.mark.parametrize("body", [columns, gelu_and_bias_gradient])
@pytest.mark.parametrize("rows", [17, 33, 40, 63])
def test_the_bits_are_those_of_a_loop_with_masks(body, rows):
    x = torch.randn(rows, COLUMNS).clamp(-3, 3)
    x[rows - 1, 3], x[0, 5], x[rows - 1, 6] = float("nan"), float("inf"), -0.0
    fd = definition(body, x)
    masked, peeled = (
        fd.run([x], schedule=with_steps(fd, x, block_r=8, tails=tails)) for tails in ([], [8])
    )
    for one_result, other in zip(masked, peeled, strict=True):
        assert torch.equal(one_result.view(torch.int32), other.view(torch.int32))
    torch.testing.assert_close(peeled[-1], fd.run([x])[-1], equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("rows", [17, 40, 63])
def test_moments_are_as_accurate_as_float32_can_be(rows, shift):
    x = torch.randn(rows, COLUMNS) + shift
    fd = definition(lambda fd, x: fd.ops.var_mean(x, [0], correction=0), x)
    schedule = with_steps(fd, x, block_r=8, tails=[8])
    var, mean = fd.run([x], schedule=schedule)
    (kernel,) = fd.kernels([x], schedule=schedule)
    assert kernel.text.count("tl.sum(") == 2
    exact, last = x.double(), 1e-5 + torch.finfo(torch.float32).eps * shift
    torch.testing.assert_close(mean.double(), exact.mean(0), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(var.double(), exact.var(0, correction=0), rtol=last, atol=0)


def sum_of_products(fd: Any, x: Any) -> list[Any]:
    y = fd.ops.cast(x, DataType.Float)
    return [fd.ops.sum(fd.ops.mul(y, y), [0]), fd.ops.sum(fd.ops.mul(fd.ops.add(y, 1.0), y), [0])]


def source(rows: int, **fields: Any) -> Any:
    x = torch.empty(rows, 4096, dtype=torch.bfloat16, device="meta")
    fd = definition(sum_of_products, x)
    schedule = with_steps(fd, x, block_x=64, num_warps=4, **fields)
    (report,) = fd.compile_for("sm_90", [x], schedule=schedule)
    return report


def test_no_step_of_the_loop_has_a_mask():
    text = source(392, block_r=32, tails=[32]).source
    assert "    for r_start in range(0, 384, RBLOCK)" in text
    behind_header = text.split("    for r_start in ")[1].split("\n")[1:]
    loop = list(takewhile(lambda line: line.startswith("        "), behind_header))
    assert any("tl.load(" in line for line in loop)
    assert not any("mask" in line for line in loop)
    # The rest is added to what each element of a step has, and there is one reduction of both sums.
    assert text.count("reduce_sums(") == 1 == text.count("_acc + ") - 3


def test_what_is_behind_the_loop_is_loaded_before_what_is_reduced():
    behind = source(392, block_r=32, tails=[32]).source.split("t_mask")[1:]
    text = "".join(behind)
    assert text.rindex("tl.load(") < text.index("reduce_sums(")


def test_a_step_has_fewer_instructions(tmp_path):
    """One chooses what is added, and a product is added by the instruction that computes it."""
    binaries = [source(392, block_r=32, tails=tails).asm["cubin"] for tails in ([], [32])]
    (masked, *_), (peeled, *_) = (loops(disassembled(b, tmp_path))[1] for b in binaries)
    each = [
        loop.total() / sum(n for name, n in loop.items() if name.startswith("LDG"))
        for loop in (masked, peeled)
    ]
    assert each[1] < 0.9 * each[0]


@pytest.mark.parametrize(("tail", "sums"), [(32, 1), (16, 2)])
def test_tails_of_other_widths_are_reduced_apart(tail, sums):
    assert source(400, block_r=32, tails=[tail]).source.count("reduce_sums(") == sums
