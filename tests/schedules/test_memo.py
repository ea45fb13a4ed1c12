"""Lowerings that share a memo make the same kernels, and refuse the same schedules."""

from __future__ import annotations

import random

import pytest
import torch

from bench.random_graphs.growing import entry
from bench.recorded.definitions import make_inputs, record
from tritonfuser import FusionDefinition
from tritonfuser.cache.dry_run import lower_for
from tritonfuser.cache.lru import LRU
from tritonfuser.errors import TritonFuserError
from tritonfuser.frontend.tune.candidates import candidates, neighbours
from tritonfuser.lowering.memo import no_memo
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.schedules import schedule_of

COUNT = 12


def _graph(number):
    found = entry(23, number)
    fd = record(found)
    return fd, make_inputs(found, fd.fusion.ir, "meta", 0)


def _columns():
    """A reduction in two steps, whose second one the first may finish, and another one beside."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        y = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [0]))
        fd.add_output(fd.ops.sum(y, [1]))
    return fd, [torch.empty(4096, 1024, device="meta"), torch.empty(512, 64, device="meta")]


def _made(fd, inputs, schedule, memo):
    options = RunOptions(arch="sm_90", schedule=schedule)
    try:
        lowered, _ = lower_for(fd.fusion.ir, inputs, options, memo=memo)
    except TritonFuserError as error:
        return error.message
    return schedule_of(lowered.segmented), lowered.sources


@pytest.mark.parametrize("make", [_columns, *(lambda n=n: _graph(n) for n in range(0, 6, 2))])
def test_kernels_are_the_same(make):
    _check_kernels(make)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6, 12, 2))
def test_kernels_of_more_graphs_are_the_same(number):
    _check_kernels(lambda: _graph(number))


def _check_kernels(make):
    fd, inputs = make()
    first = fd.segments(inputs, arch="sm_90")
    rng = random.Random(0)
    near = list(neighbours(first))
    drawn = candidates(first, rng, schedulers=True)
    tried = [*rng.sample(near, min(COUNT, len(near))), *(next(drawn) for _ in range(COUNT))]
    memo = LRU(64).get_or_make
    found = [_made(fd, inputs, schedule, memo) for schedule in tried]
    assert found == [_made(fd, inputs, schedule, no_memo) for schedule in tried]
    assert sum(not isinstance(one, str) for one in found) > COUNT // 2


def test_what_is_the_same_is_made_once():
    fd, inputs = _columns()
    made = []
    kept = LRU(64)

    def memo(key, make):
        return kept.get_or_make(key, lambda: made.append(key[0]) or make())

    chosen = schedule_of(fd.segments(inputs, arch="sm_90"))
    near = [
        s for s in neighbours(fd.segments(inputs, arch="sm_90")) if s.rewrites == chosen.rewrites
    ]
    for schedule in near:
        _made(fd, inputs, schedule, memo)
    assert made.count("simplify") == made.count("groups") == 1
    kernels = len(chosen.segments)
    assert kernels < made.count("kernel") < kernels * len(near) // 2
