"""Rows that several programs share, on a real device: they wait for one another."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.harness import record
from tests.lowering.tile.test_shared_rows import inputs_of, layer_norm
from tritonfuser import LoweringError

pytestmark = pytest.mark.gpu

CASES = ("layernorm_bwd", "rmsnorm_residual_bwd", "dropout_rmsnorm_bwd")


def of_case(name, size, dtype):
    case = BY_NAME[name]
    return case.record(size, dtype), case.inputs(size, dtype, "cuda")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "size", [(1024, 20480), (256, 73728), (128, 262144), (1021, 20484), (1021, 25134), (397, 60001)]
)
@pytest.mark.parametrize("name", CASES)
def test_long_rows(name, size, dtype):
    fd, inputs = of_case(name, size, dtype)
    first, *_ = fd.heuristics(inputs)
    assert first.parts > 1
    found = fd.run(inputs)
    rtol, atol = (2e-2, 5e-2) if dtype is torch.bfloat16 else (1e-4, 1e-3)
    expected = BY_NAME[name].reference(inputs)
    for one, true in zip(found, expected, strict=False):
        scale = true.square().mean().sqrt()  # sums over rows grow with the rows
        torch.testing.assert_close(one.double() / scale, true / scale, rtol=rtol, atol=atol)
    for _ in range(20):
        for one, same in zip(found, fd.run(inputs), strict=True):
            assert torch.equal(one, same)


def test_in_a_graph_and_on_two_streams_at_a_time():
    fd, inputs = of_case("layernorm_bwd", (1021, 25134), torch.bfloat16)
    expected = fd.run(inputs)
    plan = fd.plan(inputs)
    graph = plan.graph(inputs)
    for _ in range(3):
        for one, same in zip(graph(), expected, strict=True):
            assert torch.equal(one, same)
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    found = []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(fd.run(inputs))
    torch.cuda.synchronize()
    for outs in found:
        for one, same in zip(outs, expected, strict=True):
            assert torch.equal(one, same)


def test_a_nan_that_looks_like_nothing_told():
    x, dy, *rest = (t.cuda() for t in inputs_of(512, 20480, torch.float32))
    dy[3, 7] = torch.tensor(-1, dtype=torch.int32, device="cuda").view(torch.float32)
    fd = record(layer_norm, [x, dy, *rest])
    assert fd.heuristics([x, dy, *rest])[0].parts > 1
    dx, *_ = fd.run([x, dy, *rest])
    assert dx[3].isnan().all()
    assert dx[[0, 1, 2, 4, 511]].isfinite().all()


def test_other_params():
    # 128 groups of 8 programs at most, of which 8 run on a multiprocessor at a time.
    inputs = [t.cuda() for t in inputs_of(512, 1024, torch.float64)]
    fd = record(layer_norm, inputs)
    first, *rest = fd.heuristics(inputs)
    expected = fd.run(inputs)
    for parts, stages, delay in ((2, 1, 1), (4, 2, 2), (8, 3, 4), (8, 1, 3), (3, 2, 2), (7, 3, 1)):
        block, tails = {3: (256, (128,)), 7: (128, (32,))}.get(parts, (1024 // parts, ()))
        changes = {"parts": parts, "block_r": block, "tails": tails, "delay": delay}
        changes |= {"block_m": 1, "num_stages": stages, "num_warps": 4, "max_registers": 64}
        changes |= {"prefetch": False}
        chosen = replace(first, **changes)
        for one, same in zip(fd.run(inputs, params=[chosen, *rest]), expected, strict=True):
            torch.testing.assert_close(one, same)


def test_programs_that_do_not_fit_the_device():
    fd, inputs = of_case("rmsnorm_bwd", (4096, 20480), torch.bfloat16)
    first, *rest = fd.heuristics(inputs)
    parts = {"parts": 16, "block_r": 1024, "tails": (256,), "prefetch": False}
    chosen = replace(first, max_registers=0, num_warps=16, **parts)
    with pytest.raises(LoweringError, match="programs wait for one another, and only"):
        fd.run(inputs, params=[chosen, *rest])
