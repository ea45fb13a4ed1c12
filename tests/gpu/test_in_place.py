"""Outputs that replace an input, where threads and programs run at once."""

from __future__ import annotations

import pytest
import torch

from tests.cache.in_place import (
    adam,
    adam_inputs,
    assert_replaces,
    drawn,
    recorded,
    running_statistics,
    statistics_inputs,
)
from tests.e2e.checking import copied
from tritonfuser import FusionDefinition

pytestmark = pytest.mark.gpu


def test_an_optimizer_takes_no_memory():
    inputs = adam_inputs(512, 1024, device="cuda")
    fd = recorded(adam, inputs, replaces=True)
    fd.run(copied(inputs))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        fd.run(inputs)
    assert torch.cuda.max_memory_allocated() == before


@pytest.mark.parametrize("sizes", [(7,), (1000, 33), (512, 4096), (3, 5, 77)])
def test_an_optimizer_is_right(sizes):
    assert_replaces(adam, adam_inputs(*sizes, device="cuda"))


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_definitions(first):
    """Whatever thread loads an element, it is loaded before it is stored."""
    for seed in range(first, first + 20):
        torch.manual_seed(seed)
        inputs = [torch.randn(24, 24, device="cuda") for _ in range(3)]
        assert_replaces(drawn(seed), inputs)


@pytest.mark.parametrize("size", [520, 1024, 2047])
def test_random_definitions_of_many_programs(size):
    for seed in range(12):
        torch.manual_seed(seed)
        inputs = [torch.randn(size, size, device="cuda") * 0.01 for _ in range(3)]
        assert_replaces(drawn(seed, size=size), inputs)


@pytest.mark.parametrize("sizes", [(64, 100), (4096, 64), (100000, 300), (512, 70000)])
def test_running_statistics(sizes):
    assert_replaces(running_statistics, statistics_inputs(*sizes, device="cuda"))


def test_in_a_captured_graph():
    inputs = adam_inputs(64, 100, device="cuda")
    expected = copied(inputs)
    fd = recorded(adam, inputs, replaces=True)
    for _ in range(3):
        fd.run(expected)
    graph = fd.plan(inputs).graph(inputs)
    for _ in range(3):
        graph.replay()
    torch.testing.assert_close(inputs, expected)


@pytest.mark.parametrize("shape", [(), (64,)])
def test_a_count_that_all_programs_load(shape):
    """One of them stores the next count while others load it."""
    count, x = torch.zeros(shape, dtype=torch.int64, device="cuda"), torch.randn(1 << 16, 64)
    inputs = [count, x.cuda()]
    with FusionDefinition() as fd:
        given = [fd.from_pytorch(each) for each in inputs]
        fd.add_output(fd.ops.add(given[0], 1), given[0])
        fd.add_output(fd.ops.exp(given[1]))
    for _ in range(100):
        (made,) = fd.run(inputs)
    assert count.tolist() == torch.full(shape, 100).tolist()
    torch.testing.assert_close(made, inputs[1].exp())
