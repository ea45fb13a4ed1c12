"""Params that the cost model chooses instead of the rules': what kernels get, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.cache.abstract_variants import AbstractVariants
from tests.lowering.graphs import meta
from tritonfuser import DataType, FusionDefinition
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.cost.work import element_work
from tritonfuser.heuristics.params import PointwiseParams, ReductionParams
from tritonfuser.heuristics.search import choice
from tritonfuser.lowering.access.element_work import kernel_work
from tritonfuser.lowering.fuse.scheduler_queries.kernels import ProblemWithWork
from tritonfuser.symbolic.evaluation import evaluate

POOR = ReductionParams(block_x=1, block_r=32, persistent=False, num_warps=1)
"""For sums over columns: a sector is read for each element, by few threads."""


@pytest.fixture
def poor_rules(monkeypatch):
    """Rules that propose poor params for reductions."""

    def propose(problem: Any) -> Any:
        found = schedulers.propose(problem)
        return POOR if isinstance(found, ReductionParams) else found

    monkeypatch.setattr(choice, "propose", propose)
    choice.chosen.cache_clear()
    yield
    choice.chosen.cache_clear()


def column_sums(shape=(-1, -1)):
    """Sums of columns, and of their squares from which a root is drawn."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=list(shape), contiguity=True, dtype=DataType.Float)
        sums = fd.ops.sum(fd.ops.exp(x), [0])
        for _ in range(4):
            sums = fd.ops.sqrt(fd.ops.add(sums, 1.0))
        fd.add_output(sums)
    return fd


def test_the_model_is_said_to_have_overruled_the_rules(poor_rules):
    fd, x = column_sums((96, 65536)), torch.empty(96, 65536, device="meta")
    report = fd.explain([x], measure=False, arch="sm_90")
    (segment,) = report.segments
    assert isinstance(segment.params, ReductionParams) and segment.params != POOR
    assert segment.params.block_x * 4 >= 32
    assert str(POOR) in segment.overruled
    assert f"why params: {segment.overruled}" in str(report)
    assert fd.is_legal(fd.schedule([x], arch="sm_90"), [x], arch="sm_90")


def test_nothing_is_said_where_the_rules_hold():
    fd, x = column_sums((96, 65536)), torch.empty(96, 65536, device="meta")
    report = fd.explain([x], measure=False, arch="sm_90")
    assert [segment.overruled for segment in report.segments] == [""]
    assert "why params" not in str(report)


def test_a_given_schedule_is_not_overruled():
    fd, x = column_sums((96, 65536)), torch.empty(96, 65536, device="meta")
    schedule = fd.schedule([x], arch="sm_90").to_dict()
    schedule["segments"][0]["params"] = {
        k: v for k, v in POOR.to_dict().items() if k != "scheduler"
    }
    report = fd.explain([x], measure=False, arch="sm_90", schedule=schedule)
    assert [(s.params, s.overruled) for s in report.segments] == [(replace(POOR, axes=(0,)), "")]


def test_sizes_that_vary_are_open_in_what_the_model_is_asked(poor_rules):
    """At other sizes, a variant's question has the instructions of a kernel made for these."""
    served = AbstractVariants(column_sums())
    for rows in (201, 203, 205):
        lowered = served.serve([meta(rows, 70_001 + rows)])
    assert lowered.env is not None
    (found,) = [c for c in lowered.env.choices.values() if isinstance(c.facts, ProblemWithWork)]
    roots = []
    for rows, columns in ((205, 70_206), (55, 90_001), (811, 70_001)):
        facts = evaluate(found.facts, lowered.env.symbols.values([rows, columns]))
        (alone,) = served.static([meta(rows, columns)]).segmented.segments
        work = element_work(facts.work, facts.problem)
        assert work == element_work(kernel_work(alone.nodes), alone.problem)
        roots.append(work.special_after * rows)
    assert roots == [pytest.approx(roots[0])] * 3 and roots[0] > 0


def test_a_flat_kernel_keeps_its_params(poor_rules):
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[1 << 24], contiguity=True, dtype=DataType.Float)
        fd.add_output(fd.ops.add(x, 1.0))
    (segment,) = fd.schedule([torch.empty(1 << 24, device="meta")], arch="sm_90").segments
    assert isinstance(segment.params, PointwiseParams)
