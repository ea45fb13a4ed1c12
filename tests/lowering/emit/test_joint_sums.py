"""Two sums of which neither needs the other are exchanged between warps together."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser import DataType
from tritonfuser.lowering.emit.lines import Line, Summed
from tritonfuser.lowering.emit.reductions.joint_sums import sums_together


def backward(fd: Any, grad: Any, x: Any) -> Any:
    """Of a norm: two sums of each row."""
    grad, x = (fd.ops.cast(each, DataType.Float) for each in (grad, x))
    first = fd.ops.sum(grad, [1], keepdim=True)
    second = fd.ops.sum(fd.ops.mul(grad, x), [1], keepdim=True)
    return fd.ops.sub(fd.ops.sub(grad, first), fd.ops.mul(x, second))


def chained(fd: Any, grad: Any, x: Any) -> Any:
    """The second sum needs the first one."""
    grad, x = (fd.ops.cast(each, DataType.Float) for each in (grad, x))
    first = fd.ops.sub(grad, fd.ops.sum(grad, [1], keepdim=True))
    return fd.ops.mul(x, fd.ops.sum(fd.ops.mul(first, x), [1], keepdim=True))


def of_columns(fd: Any, grad: Any, x: Any) -> Any:
    """Three sums of each column, of which two are exchanged together."""
    grad, x = (fd.ops.cast(each, DataType.Float) for each in (grad, x))
    return [fd.ops.sum(each, [0]) for each in (grad, x, fd.ops.mul(grad, x))]


def exact(body: Any, grad: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    grad, x = grad.double(), x.double()
    if body is of_columns:
        return [grad.sum(0), x.sum(0), (grad * x).sum(0)]
    if body is backward:
        return [grad - grad.sum(1, True) - x * (grad * x).sum(1, True)]
    return [x * ((grad - grad.sum(1, True)) * x).sum(1, True)]


def scheduled(body: Any, columns: int, warps: int, **fields: Any) -> tuple[Any, Any]:
    """The definition, and a schedule of rows in registers."""
    given = [torch.empty(64, columns, dtype=torch.bfloat16, device="meta") for _ in "ab"]
    fd = record(body, given)
    data = fd.schedule(given, arch="sm_90").to_dict()
    own = {"block_x": 1, "persistent": True, "tails": [], "align": 1, "staged": False}
    data["segments"][0]["params"].update(own | {"num_warps": warps} | fields)
    return fd, data


def kernel(body: Any, columns: int, warps: int, **fields: Any) -> Any:
    fd, data = scheduled(body, columns, warps, **fields)
    given = [torch.empty(64, columns, dtype=torch.bfloat16, device="meta") for _ in "ab"]
    return fd.compile_for("sm_90", given, schedule=data)[0]


def barriers(report: Any) -> int:
    return int(report.asm["ptx"].count("bar.sync"))


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        (2048, {"block_r": 2048}),
        (1100, {"block_r": 2048}),
        (2064, {"block_r": 2048, "tails": [16]}),
        (5120, {"block_r": 4096, "tails": [1024]}),
    ],
)
def test_sums_of_a_row_share_their_barriers(columns, fields):
    both, one = kernel(backward, columns, 8, **fields), kernel(chained, columns, 8, **fields)
    cross_thread_reductions = 1 + (columns == 2064)
    assert both.source.count("= reduce_sums(") == cross_thread_reductions
    assert one.source.count("= reduce_sums(") == 0
    assert barriers(both) < barriers(one)


def test_one_warp_has_nothing_to_exchange():
    assert "reduce_sums(" not in kernel(backward, 512, 1, block_r=512).source


def test_rows_of_several_in_a_program_keep_their_dims():
    text = kernel(backward, 512, 4, block_r=512, block_x=4).source
    first, second = (line for line in text.splitlines() if "_sum[:, None]" in line)
    assert f"{first.split('= ')[1][:-9]}, {second.split('= ')[1][:-9]} = reduce_sums(" in text


@pytest.mark.parametrize(("ahead", "joint"), [({"prefetch": True}, 0), ({"num_stages": 3}, 1)])
def test_a_loop_that_prefetches_into_registers_exchanges_its_sums_separately(ahead, joint):
    """H200, a backward of layer norms of rows of 8194: 119 us, 146 with one exchange."""

    def body(fd, grad, x):
        back = backward(fd, grad, x)
        return back, fd.ops.sum(back, [0])

    given = [torch.empty(4096, 2048, dtype=torch.bfloat16, device="meta") for _ in "ab"]
    fd = record(body, given)
    data = fd.schedule(given, arch="sm_90").to_dict()
    params = data["segments"][0]["params"]
    assert data["segments"][0]["scheduler"] == "inner_outer_persistent" and params["num_warps"] > 1
    params.update({"num_stages": 1, "prefetch": False, "max_registers": 0} | ahead)
    text = fd.kernels(given, arch="sm_90", schedule=data)[0].text
    assert text.count("= reduce_sums(") == joint


def summed(name: str, block: str, shape: str = "[R]", depth: int = 1) -> Line:
    text = f"tl.sum({block}, 0)"
    blocks = (Summed(text, block, shape, DataType.Float, 0),)
    return Line(f"{name} = {text}", depth=depth, sums=blocks)


def lines(*texts: str) -> list[Line]:
    return [Line(text, depth=1) for text in texts]


JOINT = "a, b = reduce_sums(x, y, 0)"


def test_what_stands_between_sums_stays_before_them():
    given = [summed("a", "x"), *lines("y = x * x"), summed("b", "y"), *lines("c = a + b")]
    assert [line.text for line in sums_together(given)] == ["y = x * x", JOINT, "c = a + b"]


@pytest.mark.parametrize(
    ("between", "second"),
    [
        (lines("y = x * a"), summed("b", "y")),
        (lines("x = x + y"), summed("b", "y")),
        ([Line("for m in range(4):")], summed("b", "y")),
        ([], summed("b", "y", shape="[1]")),
        ([], summed("b", "y", depth=2)),
        ([], *lines("b = tl.sum(y, 0) / 4")),
    ],
)
def test_sums_are_exchanged_separately_if_they_differ_or_depend_on_one_another(between, second):
    given = [summed("a", "x"), *between, second]
    assert sums_together(given) == given


def test_sums_of_a_row_and_of_a_weight_are_exchanged_separately():
    """Of rows and of a weight that they share threads have blocks of other shapes."""

    def body(fd, x, weight):
        x, weight = (fd.ops.cast(each, DataType.Float) for each in (x, weight))
        wide = fd.ops.broadcast_in_dim(weight, [64, 5120], [1])
        first, second = (fd.ops.sum(each, [1], keepdim=True) for each in (x, wide))
        return fd.ops.mul(fd.ops.sub(x, first), second)

    kind = {"dtype": torch.bfloat16, "device": "meta"}
    given = [torch.empty(64, 5120, **kind), torch.empty(5120, **kind)]
    fd = record(body, given)
    data = fd.schedule(given, arch="sm_90").to_dict()
    own = {"block_x": 2, "num_warps": 4, "persistent": True, "block_r": 4096, "tails": [1024]}
    data["segments"][0]["params"].update(own | {"align": 1, "staged": False})
    (report,) = fd.compile_for("sm_90", given, schedule=data)
    assert "by_thread(" in report.source and "reduce_sums(" not in report.source


@pytest.mark.parametrize("body", [backward, chained, of_columns])
@pytest.mark.parametrize("columns", [96, 700, 2100])
def test_numbers_are_those_of_torch(body, columns):
    torch.manual_seed(columns)
    grad, x = (torch.randn(33, columns, dtype=torch.bfloat16) for _ in "ab")
    grad[3, 5], x[4, 0] = float("inf"), float("nan")
    found = record(body, [grad, x]).run([grad, x])
    for got, wanted in zip(found, exact(body, grad, x), strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=2e-3, equal_nan=True)
