"""Schedules ranked by the cost model: what a search tries first, and tuning without a GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
import torch

from tests.frontend.tune.fakes import softmax
from tritonfuser import FusionDefinition, LoweringError, TritonFuserError, UnsupportedDeviceError
from tritonfuser.cache.dry_run import alternatives_for, lower_for
from tritonfuser.frontend.tune.prediction import POOL, Prediction, Ranked, predicted
from tritonfuser.lowering.cost import fusion_seconds
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.schedules import schedule_of


def long_columns():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [0]))
    return fd, [torch.empty(1 << 16, 512, device="meta")]


class Numbered:
    """Proposals 0, 1, 2, ..."""

    def __init__(self):
        self.numbers, self.moved = count(), []

    def move_to(self, best):
        self.moved.append(best)

    def __next__(self):
        return next(self.numbers)


def test_of_a_pool_the_fastest_is_next():
    ranked = Ranked(Numbered(), lambda number: -number)
    assert [next(ranked) for _ in range(3)] == [POOL - 1, POOL, POOL + 1]
    ranked = Ranked(Numbered(), lambda number: number)
    assert [next(ranked) for _ in range(3)] == [0, 1, 2]


def test_what_is_known_is_not_proposed_twice_as_long_as_there_is_more():
    class Few(Numbered):
        def __next__(self):
            return next(self.numbers) % 5

    ranked = Ranked(Few(), lambda number: -number)
    assert [next(ranked) for _ in range(5)] == [4, 3, 2, 1, 0]
    assert next(ranked) in range(5)


def test_a_search_that_moves_is_followed():
    proposals = Numbered()
    Ranked(proposals, float).move_to("best")
    assert proposals.moved == ["best"]


def lowered_columns(schedule=None):
    fd, inputs = long_columns()
    fusion = fd._ready().ir
    return lower_for(fusion, inputs, RunOptions(arch="sm_90", schedule=schedule))[0].segmented


def test_other_params_are_predicted_without_a_lowering():
    base = lowered_columns()

    def never(schedule):
        raise AssertionError("lowered")

    schedule = schedule_of(base)
    prediction = Prediction(base, never)
    segments = list(schedule.segments)
    segments[0] = replace(segments[0], params=replace(segments[0].params, num_warps=1))
    other = replace(schedule, segments=tuple(segments))
    assert prediction(schedule) != prediction(other)
    whole = Prediction(lowered_columns(other), never)
    assert prediction(other) == pytest.approx(whole(other))


def test_last_programs_take_long_for_much():
    def lowered(schedule=None):
        with FusionDefinition() as fd:
            x = fd.define_tensor([4096, 8192], contiguity=True)
            total = fd.ops.broadcast(fd.ops.sum(x, [0]), [True, False])
            fd.add_output(fd.ops.sum(fd.ops.exp(fd.ops.mul(x, total)), [1]))
        inputs = [torch.empty(4096, 8192, device="meta")]
        options = RunOptions(arch="sm_90", schedule=schedule)
        return lower_for(fd._ready().ir, inputs, options)[0].segmented

    base = lowered()
    schedule = schedule_of(base)
    *before, last = schedule.segments
    assert not last.finishes
    other = replace(schedule, segments=(*before, replace(last, finishes=True)))
    prediction = Prediction(base, lowered)
    # All rows are summed up by one program, on one multiprocessor.
    assert prediction(other) > 20 * prediction(schedule)
    assert fusion_seconds(lowered(other)) > 20 * prediction(schedule)


def test_what_torch_runs_finishes_nothing():
    """It has no programs: neighbours of the heuristics' schedule that say so cannot be."""
    x = torch.empty(64, 64, device="meta")

    def lowered(schedule=None):
        options = RunOptions(arch="sm_90", schedule=schedule)
        return lower_for(fd._ready().ir, [x], options)[0].segmented

    with FusionDefinition() as fd:
        order = fd.ops.argsort(fd.from_pytorch(x), 1)
        fd.add_output(fd.ops.sum(order, [1]))
    base = lowered()
    schedule = schedule_of(base)
    first, last = schedule.segments
    assert (first.scheduler, last.scheduler) == ("expr_eval", "reduction")
    other = replace(schedule, segments=(first, replace(last, finishes=True)))
    assert Prediction(base, lowered)(other) == float("inf")
    assert fd.autotune([x], arch="sm_90", progress=False).seconds == Prediction(base, lowered)(
        schedule
    )


def test_other_parts_are_lowered():
    base = lowered_columns()
    schedule = schedule_of(base)
    (split,) = schedule.rewrites.splits
    asked = []

    def lowered(given):
        asked.append(given)
        return lowered_columns(given)

    prediction = Prediction(base, lowered)
    few = replace(schedule.rewrites, splits=(replace(split, parts=2),))
    other = replace(schedule, rewrites=few)
    assert prediction(other) > prediction(schedule)
    assert asked == [other]


def test_what_cannot_be_is_last():
    def lowered(schedule):
        raise LoweringError("no")

    base = lowered_columns()
    schedule = schedule_of(base)
    other = replace(schedule, rewrites=replace(schedule.rewrites, splits=()))
    assert Prediction(base, lowered)(other) == float("inf")


def test_without_a_gpu_schedules_are_ranked():
    fd, inputs = long_columns()
    report = fd.autotune(inputs, arch="sm_90", level="schedule", progress=False)
    assert report.predicted and not report.stored
    assert "by the cost model for sm_90: nothing was run" in str(report)
    assert report.to_dict()["predicted"] is True
    assert report.seconds <= report.heuristic_seconds
    times = [t.seconds for t in report.trials[1:] if not t.failure]
    assert times == sorted(times)
    assert fd.is_legal(report.schedule, inputs, arch="sm_90")
    again = fd.autotune(inputs, arch="sm_90", level="schedule", progress=False)
    assert again.schedule == report.schedule


def test_a_definition_without_kernels_takes_no_time():
    x = torch.empty(4, 6, device="meta")
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.permute(fd.from_pytorch(x), [1, 0]))
    report = fd.autotune([x], arch="sm_90", progress=False)
    assert "nothing beats the heuristics' schedule, 0 s, by the cost model" in str(report)
    assert report.speedup == 1.0


def test_schedules_whose_registers_may_not_suffice_are_not_given():
    """Of rows of 32 Ki in registers: 2 warps have 512 elements a thread."""
    fd, _ = softmax()
    inputs = [torch.empty(4096, 1 << 15, device="meta")]
    schedule = fd.schedule(inputs, arch="sm_90")
    row = {"block_x": 1, "block_r": 1 << 15, "tails": (), "persistent": True, "num_warps": 2}
    params = replace(schedule.segments[0].params, **row)
    kept = replace(schedule, segments=(replace(schedule.segments[0], params=params),))
    fusion = fd._ready().ir

    class One:
        def __next__(self):
            return kept

    report = predicted(fusion, inputs, "sm_90", lambda base: One())
    assert report.schedule == schedule
    assert report.trials[1].failure == "registers may not suffice: s0"


def test_an_arch_has_to_be_that_of_a_gpu():
    fd, inputs = softmax()
    with pytest.raises(LoweringError, match="the cost model has no times for cpu"):
        fd.autotune(inputs, arch="cpu")
    with pytest.raises(UnsupportedDeviceError, match="no known architecture"):
        fd.autotune(inputs, arch="sm_1")
    with pytest.raises(TritonFuserError):
        fd.autotune([1.0], arch="sm_90")


def transposed_three_times():
    """A sum that one kernel computes at three positions, one of them of its transpose."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        y = fd.define_tensor([-1, -1], contiguity=True, stride_order=[0, 1])
        total = fd.ops.lgamma(fd.ops.add(x, y))
        shifted = fd.ops.pad(fd.ops.slice(total, [0, 0], [2047, 2048]), [0, 0, 1, 0])
        moved = fd.ops.pad(fd.ops.slice(total, [0, 0], [2048, 2047]), [1, 0, 0, 0])
        fd.add_output(fd.ops.sub(fd.ops.add(total, shifted), moved))
    return fd, [torch.empty(2048, 2048, device="meta"), torch.empty(2048, 2048, device="meta").T]


def test_other_cuts_are_legal_schedules_the_fastest_first():
    fd, inputs = transposed_three_times()
    options = RunOptions(arch="sm_90")
    found = alternatives_for(fd.fusion.ir, inputs, options, lambda: True)
    assert len({len(each.segments) for each in found}) > 1
    times = [fusion_seconds(each) for each in found]
    assert times == sorted(times)
    for each in found:
        schedule = schedule_of(each)
        made = lower_for(fd.fusion.ir, inputs, replace(options, schedule=schedule))[0]
        assert schedule_of(made.segmented) == schedule


def test_cuts_end_with_the_time_for_them():
    fd, inputs = transposed_three_times()
    options = RunOptions(arch="sm_90")
    assert len(alternatives_for(fd.fusion.ir, inputs, options, lambda: False)) == 1
    tries = iter(range(3))
    found = alternatives_for(fd.fusion.ir, inputs, options, lambda: next(tries, None) is not None)
    assert 1 < len(found) <= 4


@pytest.mark.parametrize(("level", "others"), [("params", False), ("schedule", True)])
def test_the_level_of_schedules_tries_other_cuts(level, others):
    fd, inputs = transposed_three_times()
    report = fd.autotune(inputs, arch="sm_90", level=level)
    segments = len(fd.schedule(inputs, arch="sm_90").segments)
    assert any(len(trial.schedule.segments) != segments for trial in report.trials) is others
    assert any("segments" in trial.change for trial in report.trials) is others
