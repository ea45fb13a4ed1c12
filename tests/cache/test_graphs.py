"""What a captured graph copies into its tensors before a replay, and what it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tests.lowering.graphs import noise
from tritonfuser.cache.calls import cuda_graphs
from tritonfuser.cache.calls.cuda_graphs import CapturedGraph, same_number
from tritonfuser.cache.plan.copies import put, without_stride_0
from tritonfuser.errors import CaptureError, InputError


class Graph:
    """A CUDA graph that counts its replays."""

    count = 0

    def replay(self):
        self.count += 1


@pytest.fixture
def captured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)

    def make(*inputs, static=None, look=list):
        return CapturedGraph(inputs, inputs if static is None else static, look)

    return make


def test_without_inputs_it_is_replayed_as_it_is(captured):
    x = noise(4)
    graph = captured(x, 2.0)
    assert graph() is graph.outputs
    graph.replay()
    assert graph.graph.count == 2
    assert torch.equal(x, noise(4))


def test_other_tensors_are_copied(captured):
    x, y = noise(4), noise(3, 4)
    graph = captured(x, y, 2.0)
    graph([noise(4, seed=1), y, 2.0])
    assert torch.equal(x, noise(4, seed=1))
    assert torch.equal(y, noise(3, 4))
    assert graph.graph.count == 1


def test_scalars_of_the_cpu_are_copied_to_where_kernels_read_them(captured):
    x, held = torch.tensor(2.0), torch.tensor(2.0)
    graph = captured(x, static=[held])
    graph([torch.tensor(5.0)])
    assert (x.item(), held.item()) == (2, 5)
    x.fill_(7)
    graph([x])
    assert held.item() == 7


def test_numbers_stay(captured):
    graph = captured(noise(4), 2.0, float("nan"))
    graph([noise(4), 2.0, float("nan")])
    for numbers in ([3.0, float("nan")], [2, float("nan")], [2.0, 2.0]):
        with pytest.raises(InputError, match="when the graph was captured, got"):
            graph([noise(4), *numbers])
    assert graph.graph.count == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1, False),
        (0.0, -0.0, False),
        (float("nan"),) * 2 + (True,),
        (True, 1, False),
        (3, 3, True),
    ],
)
def test_the_same_number(one, other, same):
    assert same_number(one, other) is same


def test_inputs_are_looked_at_first(captured):
    x = noise(4)

    def look(inputs):
        raise InputError("shape")

    graph = captured(x, look=look)
    with pytest.raises(InputError, match="shape"):
        graph([noise(5)])
    assert graph.graph.count == 0


def test_shared_memory_cannot_be_copied_into(captured):
    whole = noise(8)
    graph = captured(noise(4), whole[:4], 1.0, whole[2:6])
    with pytest.raises(InputError, match="inputs 1 and 3 of the graph share memory"):
        graph([noise(4), noise(4), 1.0, noise(4)])
    assert torch.equal(whole, noise(8))
    graph()
    graph(list(graph.inputs))
    assert graph.graph.count == 2
    columns = captured(*noise(4, 9).chunk(3, 1))
    columns([noise(4, 9, seed=1)[:, :3], *columns.inputs[1:]])
    assert torch.equal(columns.inputs[0], noise(4, 9, seed=1)[:, :3])


def test_captured_tensors_may_be_given_for_one_another(captured):
    x, y = noise(4), noise(4, seed=1)
    graph = captured(x, y)
    graph([y, x])
    assert torch.equal(x, noise(4, seed=1))
    assert torch.equal(y, noise(4))


def test_elements_that_share_memory_are_copied_once(captured):
    x = noise(4).expand(3, 4)
    graph = captured(x)
    graph([noise(4, seed=1).expand(3, 4)])
    assert torch.equal(x, noise(4, seed=1).expand(3, 4))
    assert without_stride_0(x).shape == (1, 4)
    assert without_stride_0(torch.empty(0, 3)).shape == (0, 3)


def test_put_records_nothing_for_autograd():
    given, made = torch.empty(4), noise(4).requires_grad_()
    assert put(given, made) is given
    assert not given.requires_grad
    assert torch.equal(given, noise(4))
    assert put(made, made) is made


def bound(device, writes_to_cpu=False):
    plan = SimpleNamespace(device=torch.device(device))
    return SimpleNamespace(plan=plan, writes_to_cpu=writes_to_cpu)


def test_what_cannot_be_captured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    with pytest.raises(CaptureError, match="runs on cpu"):
        cuda_graphs.capture(bound("cpu"), [], None, list)
    with pytest.raises(CaptureError, match="written into a 0-dim tensor on the CPU"):
        cuda_graphs.capture(bound("cuda:0", True), [], None, list)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(CaptureError, match="inside the capture"):
        cuda_graphs.capture(bound("cuda:0"), [], None, list)
