"""Other numbers of parts than the rules choose, where whole waves of programs take less time."""

from __future__ import annotations

from typing import Any

import pytest

from bench.random_graphs.__main__ import named
from bench.recorded.definitions import make_inputs, record
from tritonfuser.devices import known
from tritonfuser.heuristics.problem import Problem
from tritonfuser.lowering.cost import fusion_seconds
from tritonfuser.lowering.refine import search
from tritonfuser.lowering.segments.segmented_fusion import SegmentedFusion

H200 = known("sm_90")


def cut(name: str) -> SegmentedFusion:
    fd = record(entry := named(name))
    return fd.segments(make_inputs(entry, fd.fusion.ir, "meta"), arch="sm_90")


def parts(found: SegmentedFusion) -> list[Any]:
    return [split.parts for split in found.rewrites.splits]


@pytest.mark.parametrize("name", ["graph-30-17", "graph-70-206"])
def test_another_number_of_parts_is_taken_where_it_is_faster(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the last one memory has 0.8 of the time: no other cut saves anything."""
    found = cut(name)
    monkeypatch.setattr(search, "PART_FACTORS", ())
    before = cut(name)
    assert parts(found) != parts(before)
    seconds = [fusion_seconds(each) for each in (found, before)]
    assert None not in seconds
    assert seconds[0] <= (1 - search.SAVED_BY_PARTS) * seconds[1]


def test_a_schedule_says_the_number() -> None:
    fd = record(entry := named("graph-30-17"))
    absent = make_inputs(entry, fd.fusion.ir, "meta")
    schedule = fd.schedule(absent, arch="sm_90")
    texts = [kernel.text for kernel in fd.kernels(absent, arch="sm_90")]
    again = [kernel.text for kernel in fd.kernels(absent, arch="sm_90", schedule=schedule)]
    assert texts == again


@pytest.mark.parametrize("factor", search.PART_FACTORS)
@pytest.mark.parametrize("wanted", [1, 2, 7, 528])
def test_what_is_not_split_stays_so(wanted: int, factor: float) -> None:
    found = Problem(parallel=64, reduced=4096, parts_factor=factor, device=H200).scaled(wanted)
    assert found == 1 if wanted == 1 else found >= 2
    assert abs(found - factor * wanted) <= 1
    assert Problem(parallel=64, reduced=4096, device=H200).scaled(wanted) == wanted
