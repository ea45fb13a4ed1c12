"""Steps of a loop over a row in one pass of its body are the params' to say."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tests.schedules.test_loads_first import LONG, changed, check, made, text
from tritonfuser import ParamsError
from tritonfuser.heuristics.search.rows import rows_space

LOOP = {"persistent": False, "block_x": 1, "block_r": 64, "tails": [], "align": 1}


@pytest.mark.parametrize("name", ["softmax", "sums"])
@pytest.mark.parametrize("unroll", [2, 4, 8])
def test_a_pass_of_the_loop_takes_several_steps(name: str, unroll: int) -> None:
    """Of nine steps, the last with a mask."""
    fd, inputs, data = made(name, LONG)
    data = changed(data, **LOOP)
    given = changed(data, unroll=unroll)
    check(fd, inputs, given)
    loops = re.findall(r"for .*range.*", text(fd, inputs, given))
    assert loops and all(f"RBLOCK, loop_unroll_factor={unroll}):" in line for line in loops)
    assert "loop_unroll_factor" not in text(fd, inputs, data)


def test_columns_moments_and_backwards_loops() -> None:
    def body(fd: Any, x: Any) -> Any:
        var, mean = fd.ops.var_mean(x, [0], correction=0)
        return fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))

    inputs = [torch.randn(300, 40)]
    fd = record(body, inputs)
    data = fd.schedule([x.to("meta") for x in inputs], arch="sm_90").to_dict()
    assert data["segments"][0]["scheduler"] == "outer_persistent"
    loop = {"persistent": False, "block_x": 16, "block_r": 32, "tails": [], "backwards": True}
    check(fd, inputs, changed(data, **loop, unroll=4))


def test_sizes_that_vary() -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.sum(fd.ops.exp(x), [1])

    first, other = torch.rand(5, 400), torch.rand(5, 800)
    fd = record(body, [first])
    data = changed(fd.schedule([first.to("meta")], arch="sm_90").to_dict(), **LOOP, unroll=2)
    for x in (first, other, torch.rand(5, 130)):
        torch.testing.assert_close(fd.run([x], schedule=data)[0], x.exp().sum(1))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_stages": 2}, r"\(num_stages=2\) or by steps in one pass of a loop \(unroll=2\)"),
        ({"persistent": True, "block_r": 1024}, "rows in registers, unroll=2 would change nothing"),
        (
            {"block_r": 512, "tails": [8]},
            r"rows of 520 elements with tails=\(8,\) in fewer than 2 steps",
        ),
        ({"block_r": 256, "tails": [512]}, r"with tails=\(512,\) in fewer than 2 steps of 256"),
        ({"tails": [256], "unroll": 8}, r"with tails=\(256,\) in fewer than 8 steps of 64"),
        ({"unroll": 16}, r"with tails=\(\) in fewer than 16 steps of 64"),
    ],
)
def test_what_would_change_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    fd, inputs, data = made("sums", LONG)
    given = changed(data, **{**LOOP, "unroll": 2, **fields})
    with pytest.raises(ParamsError, match=message):
        fd.run(inputs, schedule=given)
    reason = fd.is_legal(given, [torch.empty_like(x, device="meta") for x in inputs], arch="sm_90")
    assert not reason and re.search(message, str(reason))


@pytest.mark.parametrize("wrong", [0, 3, 32, True, "2"])
def test_a_wrong_number_of_steps_is_refused(wrong: object) -> None:
    fd, inputs, data = made("sums", LONG)
    with pytest.raises(ParamsError, match=r"segments\[0\]\.params\.unroll"):
        fd.run(inputs, schedule=changed(data, **LOOP, unroll=wrong))


def test_a_search_tries_it_where_there_are_as_many_steps() -> None:
    fd, inputs, data = made("sums", (64, 9000))
    segments = fd.segments([x.to("meta") for x in inputs], arch="sm_90").segments
    space = rows_space("reduction", segments[0].problem)
    loops = [p for p in space if not p.persistent]
    tried = {(p.num_stages, p.unroll) for p in loops}
    assert tried == {(1, 4), (1, 2), (1, 1), (2, 1), (3, 1), (4, 1)}
    assert max(p.block_r for p in loops if p.unroll == 4) == 2048
    assert max(p.block_r for p in loops) == 8192
    # The rules leave it to the compiler.
    assert data["segments"][0]["params"]["unroll"] == 1
