"""Fitting the cost model: measured schedules in, constants out."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from bench.held_out import is_held_out
from bench.schedules import fit, kernels
from bench.schedules.judged import judged
from bench.schedules.kernels import measured, measured_by_device
from bench.schedules.summary import problems
from tritonfuser.heuristics.cost.axis_order import in_order
from tritonfuser.heuristics.cost.constants import Constants

RESULTS = Path(__file__).parents[3] / "bench" / "results"
DATA = RESULTS / "schedules_h200.jsonl.gz"
KERNELS = RESULTS / "schedules_graphs_h200.jsonl.gz"
KERNELS_H100 = RESULTS / "schedules_graphs_h100.jsonl.gz"


def some(count):
    found = []
    for problem in problems(DATA):
        found.append(problem)
        if len(found) == count:
            return found
    return found


def test_the_model_orders_pairs_of_measured_schedules():
    """Of all problems 88%; of some the figure is rougher."""
    data = measured(some(40))
    predicted = fit.seconds(data, Constants())
    text = judged(data, predicted, torch.ones(len(data.names), dtype=torch.bool))
    assert float(text.rpartition(" ")[2]) > 0.84


def test_arrays_and_floats_have_the_same_time():
    data = measured(some(3))
    at_once = fit.seconds(data, Constants())
    assert len(at_once) == len(data.names)
    assert bool(((at_once > 1e-6) & (at_once < 1.0)).all())


def test_kernels_that_are_timed_apart_are_problems_of_their_own():
    found = list(problems(KERNELS))
    data = measured(found)
    assert not data.launched.any()
    assert len(data.schedule) == len(data.names), "one kernel each"
    count = int(data.problem.max()) + 1
    assert count > len(found) and int(data.heuristic.sum()) == count
    predicted = fit.seconds(data, Constants())
    text = judged(data, predicted, torch.ones(len(data.names), dtype=torch.bool))
    assert float(text.rpartition(" ")[2]) > 0.75


def test_kernels_of_other_facts_are_of_another_problem():
    (problem, *_) = problems(KERNELS)
    whole = measured([problem])
    for candidate in problem["candidates"][1:]:
        candidate["facts"] = [{**(facts or {}), "parallel": 1} for facts in candidate["facts"]]
    with pytest.raises(ValueError, match="no kernel"):
        measured([problem])
    assert len(whole.names) > 3


def test_a_fit_moves_towards_the_times(monkeypatch):
    found = measured_by_device([*some(12), *islice(problems(KERNELS_H100), 8)])
    assert [data.device.name for data in found] == ["NVIDIA H200", "NVIDIA H100 80GB HBM3"]
    monkeypatch.setattr(fit, "STEPS", 25)

    made = fit.fitted(found)
    for data in found:
        before, after = (fit._time_loss(data, ~data.held_out, c) for c in (fit.PRIORS, made))
        assert after < 0.9 * before


@pytest.mark.parametrize("path", [DATA, KERNELS_H100])
def test_axes_are_counted_in_the_order_of_params(path, monkeypatch):
    """All orders of one kernel counted as the same one."""
    orders = []

    def spied(facts, params):
        orders.append(params)
        return in_order(facts, params)

    monkeypatch.setattr(kernels, "in_order", spied)
    data = measured(list(islice(problems(path), 3)))
    assert len(orders) == len(data.schedule)


@pytest.mark.parametrize("path", [DATA, KERNELS])
def test_kernels_are_those_of_the_device_that_is_given(path):
    """A small L2 cache loses more, so that memory moves more bytes."""
    found = list(islice(problems(path), 20))
    small = replace(kernels.H200, l2_bytes=1 << 10)
    here, there = measured(found), measured(found, small)
    assert there.device is small
    assert float(there.counts.moved_bytes.sum()) > float(here.counts.moved_bytes.sum())


def test_a_device_without_facts_is_named():
    with pytest.raises(ValueError, match="expected times of NVIDIA H200"):
        measured_by_device([{**problem, "device": "A"} for problem in some(1)])


def test_a_third_is_held_out():
    names = [problem["name"] for problem in some(10_000)]
    assert 0.25 < sum(map(is_held_out, names)) / len(names) < 0.42
