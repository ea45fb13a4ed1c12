"""Fitting the cost model: measured schedules in, constants out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.schedules import fit
from bench.schedules.judged import judged
from bench.schedules.kernels import is_held_out, measured
from bench.schedules.summary import problems
from tritonfuser.heuristics.cost.constants import Constants

RESULTS = Path(__file__).parents[2] / "bench" / "results"
DATA = RESULTS / "schedules_h200.jsonl.gz"
KERNELS = RESULTS / "schedules_graphs_h200.jsonl.gz"


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
    data = measured(some(12))
    used = torch.ones(len(data.names), dtype=torch.bool)
    monkeypatch.setattr(fit, "STEPS", 25)
    before = fit._time_loss(data, used, fit.PRIORS)
    assert fit._time_loss(data, used, fit.fitted(data, used)) < 0.9 * before


def test_a_third_is_held_out():
    names = [problem["name"] for problem in some(10_000)]
    assert 0.25 < sum(map(is_held_out, names)) / len(names) < 0.42
