"""Rows whole or cut: bytes and launches decide, or the cost model where it is sure."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.cache.abstract_variants import AbstractVariants
from tests.lowering.harness import CPU, H200, lowered
from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.cost import ERROR
from tritonfuser.lowering.fuse import faster_cut as decision
from tritonfuser.lowering.fuse import segmentation
from tritonfuser.lowering.fuse.faster_cut import bytes_and_launches, faster_cut
from tritonfuser.lowering.fuse.segmentation import Choice
from tritonfuser.lowering.fuse.splits.split_policy import CommonRows
from tritonfuser.lowering.problem_sizes import env_of

LARGE = torch.empty(256, 8, 4, 4096, device="meta")


@pytest.fixture(autouse=True)
def small_parts():
    """Reductions are split as at real sizes: nothing here is run."""


def sums(fd, x):
    """Sums of groups and of channels, and nothing that needs the groups' sums."""
    return fd.ops.sum(x, [2, 3]), fd.ops.sum(fd.ops.exp(x), [0, 3])


def heads(fd, x, weight, bias):
    """Sums of each feature, and of each head's features as a norm leaves them."""
    wide = fd.ops.cast(x, dtype=DataType.Float)
    features = fd.ops.sum(wide, [0, 1, 2])
    squares = fd.ops.sum(fd.ops.mul(wide, wide), [3], keepdim=True)
    scaled = fd.ops.mul(wide, fd.ops.rsqrt(fd.ops.add(fd.ops.mul(squares, 1 / 64), 1e-5)))
    normed = fd.ops.add(fd.ops.mul(scaled, weight), bias)
    return features, fd.ops.sum(normed, [0, 1, 3])


def ways(monkeypatch, body, inputs, facts=H200):
    """The kernels with whole rows, with cut ones, and as is decided between both.

    Reductions over rows do not join kernels along these, which would leave nothing to decide.
    """

    def by(choice):
        with monkeypatch.context() as patch:
            patch.setattr(segment_choice, "refined", lambda fusion, device, make: make(choice))
            return lowered(body, inputs, facts).segmented

    return [
        by(Choice(rows=rows, over_rows=False)) for rows in (CommonRows.WHOLE, CommonRows.CUT, None)
    ]


def test_a_kernel_more_must_save_the_bytes_that_are_moved_in_the_time_of_a_launch():
    segmented = lowered(sums, [LARGE]).segmented
    first, *others = segmented.segments
    less = replace(first, bytes_read=first.bytes_read - H200.launch_bytes)
    more = replace(
        segmented, segments=(less, replace(first, bytes_read=0, bytes_written=0), *others)
    )
    apart = bytes_and_launches(more, H200) - bytes_and_launches(segmented, H200)
    assert apart == pytest.approx(0.0, abs=1e-12)


def test_columns_of_few_programs_are_not_worth_the_bytes(monkeypatch):
    """Cut rows are read once by 48 programs, of which each has four columns."""
    shapes = [(1460, 1090, 3, 64), (64,), (64,)]
    inputs = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    whole, cut, decided = ways(monkeypatch, heads, inputs)
    assert bytes_and_launches(cut, H200) < bytes_and_launches(whole, H200)
    assert decided.rewrites == whole.rewrites != cut.rewrites


@pytest.mark.parametrize("facts", [H200, CPU], ids=["h200", "cpu"])
def test_fewer_bytes_decide_elsewhere(facts, monkeypatch):
    _, cut, decided = ways(monkeypatch, sums, [LARGE], facts)
    assert decided.rewrites == cut.rewrites


@pytest.mark.parametrize("last", [4096, -1])
def test_sizes_that_vary_are_those_of_the_run(last, monkeypatch):
    """Whichever way is taken, the definition serves other sizes."""
    asked = []

    def noted(*ways):
        asked.append(ways)
        return faster_cut(*ways)

    monkeypatch.setattr(segmentation, "faster_cut", noted)
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, 8, 4, last], contiguity=True, dtype=DataType.Float)
        for result in sums(fd, x):
            fd.add_output(result)
    served = AbstractVariants(fd)
    for rows in (200, 203, 211):
        columns = 4096 + rows % 8 if last < 0 else last
        lowered = served.serve([torch.empty(rows, 8, 4, columns, device="meta")])
    assert lowered.env is not None
    assert asked and any(env_of(p.problem) for p in asked[-1][0].segments)


@pytest.mark.parametrize("share", [0.5, 1 - ERROR - 0.01, 1 - ERROR + 0.01, 1.0, 2.0])
def test_the_model_decides_by_more_than_it_errs(share, monkeypatch):
    whole, cut, _ = ways(monkeypatch, sums, [LARGE])
    times = {id(cut): 1e-3, id(whole): share * 1e-3}
    for name in ("_seconds", "_certain_seconds"):
        monkeypatch.setattr(decision, name, lambda way: times[id(way)])
    assert faster_cut(whole, cut, H200) is (whole if share < 1 - ERROR else cut)
    assert faster_cut(whole, cut, CPU) is cut


def test_a_way_is_not_given_up_for_its_instructions(monkeypatch):
    whole, cut, _ = ways(monkeypatch, sums, [LARGE])
    least = decision._certain_seconds(cut)
    monkeypatch.setattr(decision, "_seconds", lambda way: 1e-3 if way is cut else least)
    assert faster_cut(whole, cut, H200) is cut


def test_of_two_that_take_as_much_the_first_is_taken(monkeypatch):
    _, cut, _ = ways(monkeypatch, sums, [LARGE])
    same = replace(cut)
    assert faster_cut(cut, same, H200) is cut and faster_cut(same, cut, H200) is same


def test_choices_that_differ_in_splits_share_groups_and_kernels(monkeypatch):
    """A fusion is grouped once for all splits of it, and scheduled once for equal ones."""
    grouped, found = [], []
    plain = segmentation.with_product_kernels
    monkeypatch.setattr(
        segmentation, "with_product_kernels", lambda *a: grouped.append(a) or plain(*a)
    )

    def tried(fusion, device, make):
        rows = (CommonRows.WHOLE, CommonRows.CUT, CommonRows.WHOLE)
        found.extend(make(Choice(rows=each, over_rows=False)) for each in rows)
        make(Choice())
        return found[0]

    monkeypatch.setattr(segment_choice, "refined", tried)
    lowered(sums, [LARGE])
    assert len(grouped) == 2
    assert found[2] is found[0] and found[1].rewrites != found[0].rewrites
