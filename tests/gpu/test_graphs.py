"""CUDA graphs on a real device: ours, and runs inside of somebody else's."""

from __future__ import annotations

import pytest
import torch

from tests.gpu.test_bound import TWO, add, assert_results, noise, several
from tests.lowering.harness import record
from tritonfuser import CaptureError, DataType, FusionDefinition, InputError

pytestmark = pytest.mark.gpu

# --- graphs of ours ------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [False, True])
def test_a_graph(given):
    x, y = noise(64, 64), noise(64, 64, seed=1)
    before = y.clone()
    plan = record(several, [x, y]).plan([x, y])
    out = plan.allocate() if given else None
    graph = plan.graph([x, y], out)
    assert torch.equal(y, before)  # captured, not run
    assert_results(graph(), x, before)
    assert torch.equal(y, before * 2)
    for seed in range(3):
        u, v = noise(64, 64, seed=seed + 5), noise(64, 64, seed=seed + 20)
        found = graph([u, v])
        assert found is graph.outputs
        assert_results(found, u, v)
        assert torch.equal(y, v * 2)
        assert torch.equal(x, u)
    x.copy_(noise(64, 64, seed=40))
    mine = y.clone()
    assert_results(graph(), x, mine)
    if out is not None:
        assert all(a is b for a, b in zip(graph.outputs, out, strict=True))


def test_other_inputs_of_a_graph_are_refused():
    x = noise(64)
    plan = record(lambda fd, x, s: fd.ops.mul(x, s), [x, 2.0]).plan([x, 2.0])
    graph = plan.graph([x, 2.0])
    assert torch.equal(graph()[0], x * 2)
    with pytest.raises(InputError, match="shape"):
        graph([x[:3], 2.0])
    with pytest.raises(InputError, match=r"input 1 was 2\.0 when the graph was captured, got 3\.0"):
        graph([x, 3.0])


def test_inputs_that_share_memory_stay_as_they_are():
    x = noise(64)
    plan = record(add, [x, x[:]]).plan([x, x[:]])
    graph = plan.graph([x, x])
    assert torch.equal(graph()[0], x + x)
    with pytest.raises(InputError, match="inputs 0 and 1 of the graph share memory"):
        graph([noise(64, seed=1), noise(64, seed=2)])


def test_inputs_stretched_by_expand():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=[None, True])
        fd.add_output(fd.ops.exp(x))
    x, other = noise(1, 64).expand(8, 64), noise(1, 64, seed=2).expand(8, 64)
    graph = fd.plan([x]).graph([x])
    torch.testing.assert_close(graph([other])[0], other.exp())


def test_scalars_on_the_cpu_are_read_when_they_are_given():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        s = fd.define_tensor(shape=[], contiguity=[], is_cpu=True)
        fd.add_output(fd.ops.mul(x, s))
        fd.add_output(s)
    x, s = noise(64), torch.tensor(2.0)
    plan = fd.plan([x, s])
    graph = plan.graph([x, s])
    assert torch.equal(graph()[0], x * 2)
    assert graph.outputs[1] is s
    assert torch.equal(graph([x, torch.tensor(5.0)])[0], x * 5)


def random_numbers(fd, x):
    for _ in range(2):
        x = fd.ops.add(x, fd.ops.uniform(0.0, 1.0, [256], dtype=DataType.Float))
    return x, fd.ops.uniform(0.0, 1.0, [256], dtype=DataType.Float)


def test_each_replay_draws_new_numbers():
    x = torch.zeros(256, device="cuda")
    graph = record(random_numbers, [x]).plan([x]).graph([x])

    def replays():
        return [torch.stack([t.clone() for t in graph()]) for _ in range(3)]

    torch.cuda.manual_seed(7)
    one, two, three = replays()
    torch.cuda.manual_seed(7)
    for again, first in zip(replays(), (one, two, three), strict=True):
        assert torch.equal(again, first)
    assert not torch.equal(one, two)
    assert not torch.equal(two, three)
    for found in (one, two, three):
        assert found.min() >= 0
        assert found.max() <= 2
        assert 0.3 < found[1].mean() < 0.7
        assert not torch.equal(found[0], 2 * found[1])


def test_a_graph_takes_nothing_from_the_generator_when_it_is_made():
    x = torch.zeros(256, device="cuda")
    plan = record(random_numbers, [x]).plan([x])
    torch.cuda.manual_seed(7)
    first = plan([x])
    torch.cuda.manual_seed(7)
    plan.graph([x])
    for one, other in zip(plan([x]), first, strict=True):
        assert torch.equal(one, other)


@TWO
def test_a_graph_on_another_device_than_the_current():
    x, y = noise(64, 64, device="cuda:1"), noise(64, 64, seed=1, device="cuda:1")
    plan = record(several, [x, y]).plan([x, y])
    before = y.clone()
    graph = plan.graph([x, y])
    assert torch.cuda.current_device() == 0
    assert_results(graph(), x, before)


# --- graphs of others ----------------------------------------------------------------------------


def test_after_one_run_it_can_be_captured():
    x, y = noise(64, 64), noise(64, 64, seed=1)
    fd = record(several, [x, y])
    fd.run([x, y])
    plan = fd.plan([x, y])
    for run in (fd.run, plan):
        y.copy_(noise(64, 64, seed=1))
        before = y.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = run([x, y])
        graph.replay()
        assert_results(found, x, before)


def test_the_first_run_cannot():
    x = noise(64)
    fd = record(add, [x, x[:]])
    graph = torch.cuda.CUDAGraph()
    with (
        pytest.raises(CaptureError, match="Run it once with inputs like these before"),
        torch.cuda.graph(graph),
    ):
        fd.run([x, x])
    assert torch.equal(fd.run([x, x])[0], x + x)


def test_scalars_on_the_cpu_cannot():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        s = fd.define_tensor(shape=[], contiguity=[], is_cpu=True)
        fd.add_output(fd.ops.mul(x, s))
    inputs = [noise(64), torch.tensor(2.0)]
    fd.run(inputs)
    with (
        pytest.raises(CaptureError, match="cannot be read inside the capture"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        fd.run(inputs)
    assert torch.equal(fd.run(inputs)[0], inputs[0] * 2)


def test_random_numbers_are_new_in_each_replay():
    x = torch.zeros(256, device="cuda")
    fd = record(random_numbers, [x])
    fd.run([x])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fd.run([x])
    torch.cuda.manual_seed(3)
    graph.replay()
    first = found[1].clone()
    graph.replay()
    assert not torch.equal(found[1], first)
    torch.cuda.manual_seed(3)
    graph.replay()
    assert torch.equal(found[1], first)


def test_our_graph_is_not_made_inside_another():
    x = noise(64)
    plan = record(add, [x, x[:]]).plan([x, x[:]])
    with (
        pytest.raises(CaptureError, match="inside the capture"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        plan.graph([x, x[:]])
