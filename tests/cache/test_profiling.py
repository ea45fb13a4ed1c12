"""Timed runs: the text with a clock, the clocks, and who listens."""

from __future__ import annotations

import gc
import threading
import time

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, lowered, planned, record
from tritonfuser.cache.calls import profiling
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.kernels import LoadedKernel
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan import clocks, launches
from tritonfuser.cache.plan.clocks import DEFAULT_STREAM, EventClock, HostClock
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.cache.plan.function_text import timed_text
from tritonfuser.cache.plan.steps import Resources, resources
from tritonfuser.lowering.backend.launch import PreparedLaunch
from tritonfuser.lowering.pipeline import lower


def chained(fd, x):
    """Two kernels and a call into torch."""
    return fd.ops.argsort(fd.ops.cumsum(fd.ops.cumsum(x, 1), 0), 1)


def made(body=chained, inputs=None):
    inputs = [noise(4, 6)] if inputs is None else inputs
    return planned(lowered(body, inputs, CPU), inputs, CPU), inputs


# --- the plan ------------------------------------------------------------------------------------


def test_the_timed_function_is_the_plain_one_with_a_clock():
    plan, _ = made()
    text = timed_text(plan.body)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "def run(inputs, clock):"
    assert [line for line in lines if not line.startswith("clock.")][1:] == [
        line.strip() for line in plan.text.splitlines()[1:]
    ]
    for step in range(3):
        start = lines.index(f"clock.start({step})")
        assert f"k{step}(" in lines[start + 1]
        assert lines[start + 2] == f"clock.stop({step})"
    assert lines[-2] == "clock.finish()"
    assert lines[-1].startswith("return")


def test_steps_are_what_takes_time():
    plan, _ = made()
    assert [step.segment.name for step in plan.steps] == ["s0", "s1", "s2"]
    assert [step.name for step in plan.steps] == [
        "s0_scan_cumsum",
        "s1_scan_cumsum",
        "s2_expr_eval_argsort",
    ]
    assert [step.source is None for step in plan.steps] == [False, False, True]
    assert plan.steps[0].compile_seconds > 0
    assert plan.steps[2].compile_seconds == 0
    nothing, _ = made(lambda fd, x: fd.ops.reshape(x, [24]))
    assert nothing.steps == ()


def test_a_timed_run_computes_the_same():
    plan, inputs = made()
    outputs, timing = profiling.timed(plan, inputs)
    assert torch.equal(outputs[0], plan(inputs)[0])
    assert timing.plan is plan
    assert len(timing.step_seconds) == 3
    assert all(seconds > 0 for seconds in timing.step_seconds)
    assert sum(timing.step_seconds) <= timing.device_seconds + 1e-6
    assert timing.stream == 0


def test_the_interpreter_takes_nothing_of_a_gpu():
    plan, _ = made()
    assert resources(plan.steps[0], plan.device, plan.properties) == Resources()
    assert resources(plan.steps[2], torch.device("cuda", 0), H200) == Resources()


# --- clocks --------------------------------------------------------------------------------------


def test_the_hosts_clock():
    clock = HostClock(2)
    clock.start(1)
    time.sleep(0.002)
    clock.stop(1)
    clock.finish()
    first, second = clock.seconds()
    assert first == 0
    assert 0.002 <= second <= clock.total() < 1


class Event:
    """A CUDA event on a GPU whose steps take a millisecond each."""

    now = 0.0
    log: list = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self, stream):
        Event.log.append("event")
        self.time = Event.now

    def synchronize(self):
        Event.log.append("wait")

    def elapsed_time(self, other):
        return other.time - self.time


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that keeps time and launches nothing."""

    class Stream:
        cuda_stream = 0

    def launch(*args):
        Event.log.append("launch")
        Event.now += 1.0

    def empty(sizes, strides, dtype):
        return torch.empty_strided(sizes, strides, dtype=dtype)

    Event.now, Event.log = 0.0, []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream)
    monkeypatch.setattr(torch.cuda, "device", lambda device: torch.no_grad())
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: Event.log.append(cycles))
    made = LoadedKernel(PreparedLaunch(launch, (), ()))
    monkeypatch.setattr(launches, "loaded", lambda wanted, *_: [made] * len(wanted))
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda i: 0, raising=False)
    guards = torch._C._dynamo.guards
    monkeypatch.setattr(guards, "_empty_strided_cuda", empty, raising=False)
    device = torch.device("cuda", 0)

    def plan(body, inputs):
        inputs = [x.to("meta") for x in inputs]
        ir = record(body, inputs).fusion.ir
        return make_plan(lower(ir, signature(ir, inputs, device), H200), inputs, device, H200)

    return plan


def test_a_run_on_a_gpu_is_timed_by_events_once_it_is_queued(gpu):
    x = noise(8, 8)
    plan = gpu(lambda fd, x: fd.ops.cumsum(fd.ops.cumsum(x, 1), 0), [x])
    _, timing = profiling.timed(plan, [x])
    hold = clocks.HOLD_CYCLES + 2 * clocks.HOLD_CYCLES_A_STEP
    step = ["event", "launch", "event"]
    assert Event.log[: 1 + 1 + 6 + 1] == [hold, "event", *step, *step, "event"]
    assert set(Event.log[9:]) == {"wait"}
    assert timing.step_seconds == (1e-3, 1e-3)
    assert timing.device_seconds == 2e-3
    assert timing.stream == DEFAULT_STREAM


def test_on_another_gpu_than_the_current_one_the_clock_goes_along(gpu, monkeypatch):
    x = noise(8, 8)
    plan = gpu(lambda fd, x: fd.ops.exp(x), [x])
    current = iter([1, 0])
    plan._scope["get_device"] = lambda: next(current)
    (_,), timing = profiling.timed(plan, [x])
    assert timing.step_seconds == (1e-3,)


def test_a_stream_of_its_own_is_known_by_its_handle(gpu, monkeypatch):
    class Stream:
        cuda_stream = 1234

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream)
    assert EventClock(0, torch.device("cuda", 0)).stream == 1234


# --- listeners -----------------------------------------------------------------------------------


def cached(body=chained, inputs=None):
    inputs = [noise(4, 6)] if inputs is None else inputs
    return FusionExecutorCache(record(body, inputs).fusion.ir, fusion_id=7), inputs


@pytest.fixture
def heard():
    """What is told while the test runs."""
    found = []
    listener = found.append
    profiling.add_listener(listener)
    yield found
    profiling.remove_listener(listener)


def test_runs_are_told_of_while_someone_listens():
    cache, inputs = cached()
    cache.execute(inputs)
    plan = cache.newest()
    plain = plan.run
    assert plan.run is plan.plain
    found = []
    listener = found.append
    profiling.add_listener(listener)
    try:
        assert plan.run is not plain
        cache.execute(inputs)
        cache.execute(inputs)
    finally:
        profiling.remove_listener(listener)
    assert plan.run is plain
    cache.execute(inputs)
    assert [timing.plan for timing in found] == [plan, plan]
    assert [timing.fusion_id for timing in found] == [7, 7]


def test_a_plan_made_meanwhile_is_heard_too(heard):
    cache, inputs = cached()
    cache.execute(inputs)
    assert len(heard) == 1


def test_a_bound_method_can_leave():
    """It is another object each time it is asked for."""

    class Ear:
        def hear(self, timing):
            raise AssertionError("it has left")

    ear = Ear()
    profiling.add_listener(ear.hear)
    profiling.remove_listener(ear.hear)
    cache, inputs = cached()
    cache.execute(inputs)
    assert cache.newest().run is cache.newest().plain


def test_all_listeners_hear_until_the_last_leaves(heard):
    cache, inputs = cached()
    other = []
    listener = other.append
    profiling.add_listener(listener)
    cache.execute(inputs)
    profiling.remove_listener(listener)
    cache.execute(inputs)
    assert (len(heard), len(other)) == (2, 1)


def test_an_error_in_a_run_is_raised_and_not_told_of(heard):
    cache, inputs = cached()
    plan = cache.plan(inputs)
    with pytest.raises(ValueError, match="values to unpack"):
        plan.run([])
    assert heard == []


def test_plans_are_not_kept_alive(heard):
    cache, inputs = cached()
    cache.execute(inputs)
    heard.clear()
    before = len(profiling._plans)
    del cache
    gc.collect()
    assert len(profiling._plans) < before


def test_threads_may_run_while_listeners_come_and_go():
    cache, inputs = cached(lambda fd, x: fd.ops.neg(x))
    wanted = -inputs[0]
    wrong = []

    def run():
        for _ in range(20):
            if not torch.equal(cache.execute(inputs)[0], wanted):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        ear = [].append
        profiling.add_listener(ear)
        profiling.remove_listener(ear)
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.newest().run is cache.newest().plain
