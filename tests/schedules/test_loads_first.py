"""Whether loads come first, and cache hints of reductions and scans, are the params' to say."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser import ParamsError


def flat(fd: Any, x: Any, y: Any) -> Any:
    return fd.ops.add(fd.ops.exp(x), fd.ops.neg(y))


def softmax(fd: Any, x: Any, y: Any) -> Any:
    made = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    return fd.ops.mul(fd.ops.div(made, fd.ops.sum(made, [1], keepdim=True)), y)


def sums(fd: Any, x: Any, y: Any) -> Any:
    return fd.ops.sum(fd.ops.mul(fd.ops.exp(x), y), [1])


def scan(fd: Any, x: Any, y: Any) -> Any:
    return fd.ops.cumsum(fd.ops.mul(x, y), 1)


BODIES = {body.__name__: body for body in (flat, softmax, sums, scan)}
LOOP = {"persistent": False, "block_x": 1, "block_r": 256, "tails": [], "align": 1}
LONG = (6, 520)


def made(name: str, shape: tuple[int, int] = (6, 300)) -> tuple[Any, list[torch.Tensor], Any]:
    inputs = [noise(*shape, seed=n) for n in range(2)]
    fd = record(BODIES[name], inputs)
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    return fd, inputs, fd.schedule(meta, arch="sm_90").to_dict()


def changed(data: Any, **params: Any) -> Any:
    found = copy.deepcopy(data)
    found["segments"][0]["params"].update(params)
    return found


def text(fd: Any, inputs: list[torch.Tensor], data: Any) -> str:
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    found: str = fd.kernels(meta, arch="sm_90", schedule=data)[0].text
    return found


def check(fd: Any, inputs: list[torch.Tensor], data: Any) -> None:
    for one, other in zip(fd.run(inputs, schedule=data), fd.run(inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["flat", "softmax", "sums"])
def test_loads_come_first_or_where_they_are_needed(name: str) -> None:
    fd, inputs, data = made(name)
    assert data["segments"][0]["params"]["loads_first"] is None
    texts = {}
    for value in (None, False, True):
        given = changed(data, loads_first=value)
        check(fd, inputs, given)
        texts[value] = text(fd, inputs, given)
    # One row a program: all of them run at once.
    assert texts[None] == texts[True] != texts[False]
    exp = "exp_nonpositive" if name == "softmax" else "exp"
    for value, behind in ((True, True), (False, False)):
        lines = texts[value].partition("@triton.jit")[2]
        assert (lines.rindex("tl.load") < lines.index(f"{exp}(")) == behind


@pytest.mark.parametrize("name", ["softmax", "sums"])
def test_loads_of_a_step_come_first_in_a_loop(name: str) -> None:
    fd, inputs, data = made(name, LONG)
    texts = {}
    for value in (None, False, True):
        given = changed(data, **LOOP, loads_first=value)
        check(fd, inputs, given)
        texts[value] = text(fd, inputs, given)
    assert texts[None] == texts[True] != texts[False]
    for value in (True, False):
        body = texts[value].rpartition("    for r_start in ")[2]
        exp = "exp_nonpositive(" if name == "softmax" else "exp("
        assert (body.rindex("evict_first") < body.index(exp)) == value


def test_loads_that_are_begun_steps_ahead_cannot_come_first() -> None:
    fd, inputs, data = made("sums")
    with pytest.raises(ParamsError, match=r"segments\[0\]\.params: .*begun steps ahead"):
        fd.run(inputs, schedule=changed(data, **LOOP, num_stages=2, loads_first=True))
    check(fd, inputs, changed(data, **LOOP, num_stages=2, loads_first=False))


@pytest.mark.parametrize("name", ["softmax", "sums", "scan"])
def test_cache_hints_of_loops(name: str) -> None:
    fd, inputs, data = made(name, LONG)
    loop = {"block_r": 256} if name == "scan" else LOOP
    with_hints, without = (changed(data, **loop, evict_hints=value) for value in (True, False))
    assert "eviction_policy" in text(fd, inputs, with_hints)
    assert "eviction_policy" not in text(fd, inputs, without)
    check(fd, inputs, without)


def test_short_steps_have_no_hint_to_be_evicted_first() -> None:
    """The next step loads the lines at both ends of what a step loads of a row."""
    fd, inputs, data = made("sums", LONG)
    assert "evict_first" in text(fd, inputs, changed(data, **LOOP))
    assert "evict" not in text(fd, inputs, changed(data, **{**LOOP, "block_r": 128}))
