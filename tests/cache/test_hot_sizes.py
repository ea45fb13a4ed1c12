"""Sizes that run often get kernels of their own: when, which, and what nobody may notice."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.cache.varying import cache_of, doubling, kinds, noise, run
from tritonfuser import DataType
from tritonfuser.cache import executor, hot_sizes
from tritonfuser.cache.calls import profiling
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.plan.function_text import guarded_text
from tritonfuser.cache.plan.heat import Heat
from tritonfuser.lowering.run_options import RunOptions

COMPILED_AT = 6
"""The call of a size that compiles it, where nothing but the order of the looks makes it wait."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, setting: Callable[[str, str], None]) -> Iterator[None]:
    """Kernels of the interpreter take a millisecond; a compilation is paid after a few calls."""
    monkeypatch.setattr(hot_sizes, "fusion_seconds", lambda segmented: 1e-3)
    monkeypatch.setattr(hot_sizes, "FIRST_CALLS", 2)
    monkeypatch.setattr(hot_sizes, "LATER_CALLS", 3)
    monkeypatch.setattr(hot_sizes, "_warned", False)
    setting("TRITONFUSER_HOT_SIZES", "1e-9")
    yield


def row_sums() -> FusionExecutorCache:
    made = cache_of(lambda fd, x: fd.ops.sum(x, [1]), (DataType.Float, 2))
    assert isinstance(made, FusionExecutorCache)
    return made


def call(cache: FusionExecutorCache, columns: int, times: int = 1) -> None:
    x = noise(3, columns)
    for _ in range(times):
        torch.testing.assert_close(cache.execute([x])[0], x.sum(1))


def opened(*columns: int) -> FusionExecutorCache:
    """With an open variant that has served these."""
    cache = row_sums()
    for n in (41, 43, *columns):
        call(cache, n)
    return cache


def has_open_sizes(cache: FusionExecutorCache, columns: int) -> bool:
    return any(source.sizes for source in cache.kernels([noise(3, columns)]))


# --- what happens ---------------------------------------------------------------------------------


def test_a_size_that_runs_often_is_compiled_for_itself() -> None:
    cache = opened(45, 47)
    call(cache, 45, COMPILED_AT - 2)
    assert kinds(cache) == ["static", "static", "dynamic"]
    call(cache, 45)
    assert kinds(cache)[3:] == ["static"]
    assert "run often" in cache.recompiles()[-1].reason
    assert cache.recompiles()[-1].kernels == 1
    assert not has_open_sizes(cache, 45) and has_open_sizes(cache, 47)
    call(cache, 45, 20)
    call(cache, 47)
    call(cache, 49)
    assert len(kinds(cache)) == 4


def test_calls_between_those_of_other_sizes_count() -> None:
    cache = opened(45, 47)
    for _ in range(COMPILED_AT - 1):
        call(cache, 45)
        call(cache, 47)
    assert kinds(cache)[3:] == ["static", "static"]
    assert not has_open_sizes(cache, 45) and not has_open_sizes(cache, 47)


def test_what_is_shown_is_what_the_next_run_executes() -> None:
    cache = opened(45)
    x = noise(3, 45)
    for _ in range(COMPILED_AT + 2):
        shown = [source.text for source in cache.kernels([x])]
        compiled = len(kinds(cache))
        assert len(kinds(cache)) == compiled, "a look compiles nothing"
        cache.execute([x])
        plan = cache.newest()
        assert plan is not None
        assert [s.source.text for s in plan.steps if s.source is not None] == shown
    assert kinds(cache)[-1] == "static"


def test_a_plan_that_is_asked_for_is_that_of_the_next_run() -> None:
    cache = opened(45)
    call(cache, 45, COMPILED_AT - 2)
    plan = cache.plan([noise(3, 45)])
    assert not any(step.source.sizes for step in plan.steps if step.source is not None)


def test_profiled_runs_are_not_counted_and_see_the_new_kernels() -> None:
    cache = opened(45)
    seen: list[Any] = []
    profiling.add_listener(seen.append)
    try:
        call(cache, 45, 20)
        assert len(kinds(cache)) == 3
    finally:
        profiling.remove_listener(seen.append)
    call(cache, 45, COMPILED_AT)
    assert len(kinds(cache)) == 4
    plan = cache.newest()
    profiling.add_listener(seen.append)
    try:
        call(cache, 45)
    finally:
        profiling.remove_listener(seen.append)
    assert seen[-1].plan is plan


# --- when -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alone", "others", "after"),
    [(1.0, False, 10), (0.95, False, 10), (2.0, False, 10), (0.5, False, 2), (1.0, True, 3)],
)
def test_when_the_time_of_a_compilation_would_have_been_saved(
    alone: float,
    others: bool,
    after: int,
    monkeypatch: pytest.MonkeyPatch,
    setting: Callable[[str, str], None],
) -> None:
    """A compilation of 1 s, runs of 10 ms: at least a tenth is saved, a third by other kernels."""
    setting("TRITONFUSER_HOT_SIZES", "2")
    monkeypatch.setattr(hot_sizes, "COMPILE_S", 0.1)
    monkeypatch.setattr(hot_sizes, "KERNEL_S", 0.4)
    monkeypatch.setattr(hot_sizes, "has_other_kernels", lambda opened, alone: others)
    monkeypatch.setattr(
        hot_sizes,
        "fusion_seconds",
        lambda segmented: 0.01 if segmented.segments[0].problem.row_varies else 0.01 * alone,
    )
    cache = opened(45)
    calls = 1
    while len(kinds(cache)) == 3 and calls < 2000:
        cache.execute([noise(3, 45)])
        calls += 1
    assert calls == pytest.approx(100 * after, abs=4)


def test_the_call_does_not_depend_on_how_long_compiling_takes(
    monkeypatch: pytest.MonkeyPatch, setting: Callable[[str, str], None]
) -> None:
    """A program that is run twice has the same bits."""
    setting("TRITONFUSER_HOT_SIZES", "0.02")
    calls = []
    for pause in (0.0, 0.3):
        make = executor.make_plan
        monkeypatch.setattr(executor, "make_plan", lambda *a, p=pause, m=make: sleep(p) or m(*a))
        cache = opened(45)
        calls.append(1)
        while len(kinds(cache)) == 3:
            call(cache, 45)
            calls[-1] += 1
    assert calls[0] == calls[1] > 20


def test_lengths_that_run_for_less_than_a_compilation_each_are_not_compiled(
    setting: Callable[[str, str], None],
) -> None:
    """60 lengths, whose kernels take 5 ms each, as a compilation does."""
    setting("TRITONFUSER_HOT_SIZES", str(5e-3 / (hot_sizes.COMPILE_S + hot_sizes.KERNEL_S)))
    cache = opened()
    for columns in range(45, 165, 2):
        call(cache, columns, 5)
    assert not any("often" in made.reason for made in cache.recompiles())
    call(cache, 45, 60)
    assert "often" in cache.recompiles()[-1].reason


def test_no_more_than_a_number_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_sizes, "MAX_HOT", 2)
    cache = opened()
    for columns in (45, 47, 49, 51):
        call(cache, columns, COMPILED_AT + 4)
    assert sum("often" in made.reason for made in cache.recompiles()) == 2
    assert not has_open_sizes(cache, 47) and has_open_sizes(cache, 49)
    plan = cache.newest()
    assert plan is not None and plan.heat is None


def test_flat_kernels_whose_masks_alone_differ_stay() -> None:
    cache = doubling()
    run(cache, (8, 10), (8, 11), *[(8, 12)] * 20)
    assert kinds(cache) == ["static", "static", "dynamic"]
    plan = cache.newest()
    assert plan is not None and plan.heat is None


def test_it_can_be_switched_off(setting: Callable[[str, str], None]) -> None:
    setting("TRITONFUSER_HOT_SIZES", "0")
    cache = opened()
    call(cache, 45, 20)
    assert kinds(cache) == ["static", "static", "dynamic"]
    plan = cache.newest()
    assert plan is not None and plan.heat is None


def test_given_params_keep_their_kernels() -> None:
    cache = row_sums()
    params = tuple(cache.heuristics([noise(3, 45)]))
    for columns in (41, 43, *[45] * 20):
        cache.execute([noise(3, columns)], RunOptions(params=params))
    assert kinds(cache) == ["static", "static", "dynamic"]


def test_where_algorithms_are_to_be_deterministic_nothing_changes() -> None:
    cache = opened(45)
    torch.use_deterministic_algorithms(True)
    try:
        call(cache, 45, 20)
        assert len(kinds(cache)) == 3 and has_open_sizes(cache, 45)
    finally:
        torch.use_deterministic_algorithms(False)
    call(cache, 45, 20)
    assert len(kinds(cache)) == 4


def test_nothing_is_compiled_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    plan: Any = SimpleNamespace(device=torch.device("cuda", 0))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not hot_sizes._may_change(plan)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert hot_sizes._may_change(plan)


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_compilation_that_fails_leaves_the_kernels_in_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(hot_sizes, "make_plan", fail)
    cache = opened(45, 47)
    with pytest.warns(RuntimeWarning, match="RuntimeError: no memory"):
        call(cache, 45, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(cache, 47, 20)
        call(cache, 45, 20)
    assert len(kinds(cache)) == 3 and has_open_sizes(cache, 45)


def test_an_interrupt_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    make = hot_sizes.make_plan

    def interrupted(*args: Any) -> Any:
        monkeypatch.setattr(hot_sizes, "make_plan", make)
        raise KeyboardInterrupt

    monkeypatch.setattr(hot_sizes, "make_plan", interrupted)
    cache = opened(45)
    with pytest.raises(KeyboardInterrupt):
        call(cache, 45, 20)
    call(cache, 45, 20)
    assert kinds(cache)[3:] == ["static"]


def test_threads_compile_a_size_once() -> None:
    cache = opened(45)
    start = threading.Barrier(8)

    def many() -> None:
        start.wait()
        call(cache, 45, 10)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(many) for _ in range(8)]:
            done.result()
    call(cache, 45, COMPILED_AT)
    assert kinds(cache)[3:] == ["static"]
    assert not has_open_sizes(cache, 45)


def test_other_settings_begin_anew(setting: Callable[[str, str], None]) -> None:
    cache = opened(45)
    call(cache, 45, COMPILED_AT)
    assert len(kinds(cache)) == 4
    setting("TRITONFUSER_FMA", "0")
    for columns in (41, 43, *[45] * COMPILED_AT):
        call(cache, columns)
    assert kinds(cache)[4:] == ["static", "static", "dynamic", "static"]


# --- what a call pays -----------------------------------------------------------------------------


def test_calls_of_plans_with_constant_sizes_are_not_counted() -> None:
    cache = opened(45)
    for columns, counted in ((41, False), (45, True)):
        call(cache, columns, 2)
        plan = cache.newest()
        assert plan is not None
        assert (plan.heat is not None) is counted
        assert ("heat.left" in guarded_text(plan.body, [], counted=counted)) is counted
    assert isinstance(plan.heat, Heat)
    plan.heat.left = 50
    call(cache, 45, 2)
    assert plan.heat.left == 48
