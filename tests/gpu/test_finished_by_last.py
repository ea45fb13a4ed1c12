"""Second steps that the last programs of a kernel compute, on a real device."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.tile.test_finished_by_last import CASES, apart, define, exported
from tritonfuser.cache.plan.counters import counters_on

pytestmark = pytest.mark.gpu

LAUNCHES = 10_000
DEVICE = torch.device("cuda", 0)


def made(name):
    body, shapes = CASES[name]
    fd = define(body, *(len(shape) for shape in shapes))
    torch.manual_seed(1)
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]
    return fd, inputs, exported(fd, inputs)


def different(outs, expected):
    """Of a run how many results have other bits, on the device."""
    parts = [(a != b).any() for a, b in zip(outs, expected, strict=True)]
    return torch.stack(parts).sum()


def assert_counters_at_zero():
    torch.cuda.synchronize()
    counters = counters_on(DEVICE)
    assert not counters.left()


@pytest.mark.parametrize("name", CASES)
def test_right_and_near_that_of_two_kernels(name):
    fd, inputs, data = made(name)
    (kernel, *_) = fd.kernels(inputs, schedule=data)
    assert kernel.arrivals is not None
    found = fd.run(inputs, schedule=data)
    torch.testing.assert_close(found, fd.run(inputs), rtol=1e-4, atol=1e-3)
    for one, two in zip(found, fd.run(inputs, schedule=apart(data)), strict=True):
        torch.testing.assert_close(one, two)
    assert_counters_at_zero()


@pytest.mark.parametrize("name", ["columns", "of all", "two and a result"])
def test_the_same_bits_in_every_run(name):
    fd, inputs, data = made(name)
    plan = fd.plan(inputs, schedule=data)
    expected = plan(inputs)
    wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(LAUNCHES):
        wrong += different(plan(inputs), expected)
    assert not int(wrong)
    assert_counters_at_zero()


def test_two_streams_at_a_time():
    fd, inputs, data = made("columns")
    plan = fd.plan(inputs, schedule=data)
    expected = plan(inputs)
    streams = [torch.cuda.Stream() for _ in range(2)]
    wrong = [torch.zeros((), dtype=torch.int64, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    for _ in range(LAUNCHES // 4):
        for stream, count in zip(streams, wrong, strict=True):
            with torch.cuda.stream(stream):
                count += different(plan(inputs), expected)
    assert_counters_at_zero()
    assert not any(map(int, wrong))


def test_graphs_in_two_streams_at_a_time():
    """A graph has counters of its own: another one, and plain calls, run beside it."""
    fd, inputs, data = made("columns")
    plan = fd.plan(inputs, schedule=data)
    expected = [t.clone() for t in plan(inputs)]
    graphs = []
    for _ in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outs = [plan(inputs) for _ in range(10)]
        graphs.append((graph, outs))
    streams = [torch.cuda.Stream() for _ in graphs]
    wrong = [torch.zeros((), dtype=torch.int64, device="cuda") for _ in graphs]
    torch.cuda.synchronize()
    for _ in range(LAUNCHES // 100):
        for stream, (graph, outs), count in zip(streams, graphs, wrong, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
                for found in outs:
                    count += different(found, expected)
        assert all(torch.equal(a, b) for a, b in zip(plan(inputs), expected, strict=True))
    assert_counters_at_zero()
    assert not any(map(int, wrong))


def test_a_graph_of_a_plan():
    fd, inputs, data = made("of all")
    plan = fd.plan(inputs, schedule=data)
    expected = plan(inputs)
    graph = plan.graph(inputs)
    for _ in range(100):
        assert all(torch.equal(a, b) for a, b in zip(graph(), expected, strict=True))
    assert_counters_at_zero()


def test_one_launch():
    """What the profiler sees: one kernel, and no fill before it."""
    fd, inputs, data = made("columns")
    fd.run(inputs, schedule=data)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        fd.run(inputs, schedule=data)
        torch.cuda.synchronize()
    names = [event.name for event in profile.events() if "_then_" in event.name]
    others = [event.name for event in profile.events() if "Memset" in event.name]
    assert len(names) == 1 and not others
