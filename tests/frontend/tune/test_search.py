"""The search: what it tries, what it finds, what it never gives."""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import replace

import pytest
import torch

from tests.frontend.tune.fakes import AtOnce, FakeClock, FakeDevice, compiler_for, softmax
from tritonfuser import FusionDefinition
from tritonfuser.frontend.tune import search as module
from tritonfuser.frontend.tune.candidates import Proposals
from tritonfuser.frontend.tune.finals import FINAL_ROUNDS
from tritonfuser.frontend.tune.prepare_queue import PrepareQueue
from tritonfuser.frontend.tune.search import ROUNDS, Search


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "ThreadPoolExecutor", AtOnce)


def planted(block):
    """Seconds that are least at one block_x, and grow with the distance from it."""

    def seconds(schedule, rounds):
        params = schedule.segments[-1].params
        off = abs(params.block_x.bit_length() - block.bit_length())
        return 1e-5 * (1 + off) * (1.0 if params.persistent else 2.0)

    return seconds


def searched(seconds, budget=3.0, known=(), **more):
    fd, inputs = softmax()
    clock = FakeClock()
    device = FakeDevice(clock, seconds)
    for name, value in more.items():
        setattr(device, name, value)
    compiler = compiler_for(fd, inputs)
    first = compiler.prepared(compiler.heuristics())
    proposals = Proposals(first.segmented, random.Random(0), True)
    made = Search(compiler, device, proposals, budget, threads=2, clock=clock)
    return made, made.run(first, known), device


def test_the_planted_optimum_is_found():
    search, best, _ = searched(planted(4))
    assert search.trials[best].schedule.segments[-1].params.block_x == 4
    assert search.trials[0].schedule.segments[-1].params.block_x == 64
    assert search.trials[best].finalist and "s0.block_x 64 -> 4" in search.trials[best].change


def test_nothing_is_tried_twice():
    search, _, _ = searched(planted(4))
    schedules = [trial.schedule for trial in search.trials]
    assert len(set(schedules)) == len(schedules) > 20


def test_the_heuristics_schedule_stays_where_it_is_the_fastest():
    search, best, _ = searched(planted(64))
    assert best == 0 and len(search.trials) > 20


def test_what_is_faster_in_the_first_rounds_alone_is_not_given():
    """In the last rounds, which count, the heuristics' schedule is faster."""

    def seconds(schedule, rounds):
        is_heuristics = schedule.segments[-1].params.block_x == 64
        return 1e-5 if is_heuristics == (rounds == FINAL_ROUNDS) else 2e-5

    search, best, _ = searched(seconds)
    assert best == 0 and search.trials[0].seconds == 1e-5


def test_less_than_a_hundredth_faster_is_not_faster():
    def seconds(schedule, rounds):
        return 1e-5 if schedule.segments[-1].params.block_x == 64 else 0.995e-5

    assert searched(seconds)[1] == 0


def test_changes_that_are_faster_alone_are_tried_together():
    """Next, whatever else is proposed; the fastest one decides where they change one field."""
    fd, inputs = softmax()
    compiler = compiler_for(fd, inputs)
    first = compiler.prepared(compiler.heuristics())
    base = first.schedule

    def changed(**fields):
        (segment,) = base.segments
        return replace(base, segments=(replace(segment, params=replace(segment.params, **fields)),))

    times = {changed(block_x=32): 8e-6, changed(num_warps=8): 7e-6, changed(block_x=16): 9e-6}

    class Listed:
        def __init__(self):
            self.left = [*times, *(changed(block_x=n) for n in (1, 2, 4, 8))]

        def move_to(self, best):
            pass

        def __next__(self):
            return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    clock = FakeClock()
    device = FakeDevice(clock, lambda schedule, rounds: times.get(schedule, 1e-5))
    search = Search(compiler, device, Listed(), 3.0, threads=1, clock=clock)
    search.run(first)
    assert changed(block_x=32, num_warps=8) in [trial.schedule for trial in search.trials]


def test_wrong_outputs_are_named_and_not_given():
    everything, best, _ = searched(planted(4))
    wrong = {everything.trials[best].schedule}
    search, other, _ = searched(planted(4), wrong=wrong)
    assert search.trials[other].schedule not in wrong and not search.trials[other].failure
    (named,) = [trial for trial in search.trials if trial.schedule in wrong]
    assert named.failure == "wrong: output 0"


def test_faults_are_named_and_not_given():
    everything, best, _ = searched(planted(4))
    faults = {everything.trials[best].schedule}
    search, other, _ = searched(planted(4), faults=faults)
    assert search.trials[other].schedule not in faults
    assert [t.failure for t in search.trials if t.schedule in faults] == ["it faults"]


def test_the_best_one_may_fault_later():
    """It is left out then, and the search goes on."""
    everything, best, _ = searched(planted(4))
    chosen = everything.trials[best].schedule
    times = planted(4)
    runs = []

    def seconds(schedule, rounds):
        runs.append(schedule)
        later = schedule == chosen and runs.count(chosen) > 1
        return "it faults" if later else times(schedule, rounds)

    search, other, _ = searched(seconds)
    assert search.trials[other].schedule != chosen and other != 0


def test_the_budget_is_kept():
    for budget in (0.5, 2.0):
        _, _, device = searched(planted(4), budget=budget)
        assert 0.5 * budget < device.clock.now <= 1.1 * budget
        assert device.asked[-1][1] == FINAL_ROUNDS
        assert {rounds for _, rounds in device.asked[:-1]} == {ROUNDS}


def test_an_interrupt_keeps_the_best_so_far():
    search, best, device = searched(planted(4), interrupt_after=10)
    assert search.interrupted and best != 0 and device.clock.now < 1.5


def test_what_is_known_is_tried_first():
    everything, best, _ = searched(planted(4))
    known = everything.trials[best].schedule
    search, found, _ = searched(planted(4), budget=0.2, known=[known])
    assert search.trials[1].schedule == known == search.trials[found].schedule


def test_an_interrupt_while_the_first_ones_are_found_keeps_what_there_is():
    everything, best, _ = searched(planted(4))

    def interrupted():
        yield everything.trials[best].schedule
        raise KeyboardInterrupt

    search, found, _ = searched(planted(4), known=interrupted())
    assert search.interrupted and found == 0 and search.trials[0].seconds is not None


def test_what_is_not_legal_says_why():
    everything, _, _ = searched(planted(4))
    first = everything.trials[0].schedule
    wrong = {**first.to_dict(), "segments": []}
    search, best, _ = searched(planted(64), budget=0.3, known=[type(first).from_dict(wrong)])
    refused = [trial for trial in search.trials if trial.failure]
    assert refused and refused[0].failure.startswith("not legal: ") and best == 0


def test_a_space_that_is_exhausted_ends_the_search():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x))
    inputs = [torch.randn(7)]
    clock = FakeClock()
    compiler = compiler_for(fd, inputs)
    first = compiler.prepared(compiler.heuristics())
    proposals = Proposals(first.segmented, random.Random(0), True)
    device = FakeDevice(clock, lambda schedule, rounds: 1e-5)
    search = Search(compiler, device, proposals, 1e9, threads=2, clock=clock)
    assert search.run(first) == 0 and clock.now < 10


class _Stalled:
    """A pool whose only thread has begun the first task, and never ends it."""

    def __init__(self):
        self.futures = []

    def submit(self, task, *args):
        made = Future()
        if not self.futures:
            made.set_running_or_notify_cancel()
        self.futures.append(made)
        return made


def test_what_no_thread_has_begun_is_cancelled():
    queue = PrepareQueue(None, _Stalled())
    queue.ask("begun")
    queue.ask("waiting")
    assert queue.cancelled() == ["waiting"] and len(queue) == 1
    assert queue.finished(0.0) == []


def test_what_was_cancelled_is_tried_when_nothing_else_is_proposed():
    """A better schedule comes between: it is not forgotten, or a small space is not searched."""
    fd, inputs = softmax()
    first = compiler_for(fd, inputs).heuristics()
    search = Search(None, None, None, 1.0, threads=1)
    search._later.append(first)
    search._exhausted = True
    assert search._next() == first and search._next() is None


def test_a_measurer_that_starts_late_leaves_half_of_the_budget():
    class Late(FakeDevice):
        def is_ready(self, seconds):
            self.clock.now += 0.5
            return self.clock.now >= 6.0

    fd, inputs = softmax()
    clock = FakeClock()
    device = Late(clock, planted(4))
    compiler = compiler_for(fd, inputs)
    first = compiler.prepared(compiler.heuristics())
    proposals = Proposals(first.segmented, random.Random(0), True)
    search = Search(compiler, device, proposals, 3.0, threads=2, clock=clock)
    best = search.run(first)
    assert search.trials[best].schedule.segments[-1].params.block_x == 4
    assert 7.0 < clock.now < 8.0


def test_a_slow_first_measurement_says_nothing_of_the_next_ones():
    """As in a process that begins: it ended searches of 5 s after one schedule."""

    class Slow(FakeDevice):
        def measure(self, schedules, rounds):
            self.clock.now += 0.0 if self.asked else 2.0
            return super().measure(schedules, rounds)

    fd, inputs = softmax()
    clock = FakeClock()
    compiler = compiler_for(fd, inputs)
    first = compiler.prepared(compiler.heuristics())
    proposals = Proposals(first.segmented, random.Random(0), True)
    search = Search(compiler, Slow(clock, planted(4)), proposals, 3.0, threads=2, clock=clock)
    best = search.run(first)
    assert search.trials[best].schedule.segments[-1].params.block_x == 4
    assert len(search.trials) > 20 and clock.now < 4.5
