"""``Counts`` is put together from parts whose fields are unpacked in order."""

from __future__ import annotations

from tritonfuser.heuristics.cost.counts import Counts, ProblemCounts, TileCounts
from tritonfuser.heuristics.cost.memory.traffic import StepBytes, Windows
from tritonfuser.heuristics.cost.reduction_layout import ReductionLayout


def test_parts_have_the_first_fields_in_the_same_order() -> None:
    of_tile = (*ProblemCounts._fields, *TileCounts._fields, *ReductionLayout._fields)
    of_traffic = (*StepBytes._fields, *Windows._fields)
    assert Counts._fields[: len(of_tile + of_traffic)] == of_tile + of_traffic
