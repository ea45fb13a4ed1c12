"""Which groups run before which, and what is said of a seed that none takes."""

from __future__ import annotations

import random
import re

import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, lowered
from tritonfuser.ir import Node, Value
from tritonfuser.lowering.fuse.grouper import MOST_REASONS, Grouper
from tritonfuser.lowering.fuse.rewritten import CommonRewrites
from tritonfuser.lowering.fuse.rules import Rules
from tritonfuser.lowering.fuse.splits.split_policy import CommonRows, choose_splits
from tritonfuser.lowering.groups.fusion_group import FusionGroup
from tritonfuser.lowering.groups.group_graph import GroupGraph, bits, largest_first


def made(needs, libraries=()):
    """Groups that need others, by number."""
    groups = GroupGraph()
    node = Node("sort", (), (), (Value(0, None),))
    for number, needed in enumerate(needs):
        library = node if number in libraries else None
        groups.start(FusionGroup(number, (), (), needs=frozenset(needed), library=library))
    return groups


def numbers(mask):
    return sorted(largest_first(mask))


def test_numbers_as_bits():
    assert list(largest_first(bits([3, 0, 70]))) == [70, 3, 0]
    assert list(largest_first(0)) == []


def test_what_runs_before_a_group_is_all_that_its_needs_need():
    groups = made([[], [0], [1], [], [2, 3]])
    assert numbers(groups.before(groups.listed[4])) == [0, 1, 2, 3]
    assert numbers(groups.up_to([2])) == [0, 1, 2]
    assert numbers(groups.up_to([])) == []


def test_what_a_group_comes_to_need_those_behind_it_need_too():
    groups = made([[], [], [0], [2]])
    groups._link(FusionGroup(2, (), (), needs=frozenset({0, 1})))
    assert numbers(groups.before(groups.listed[3])) == [0, 1, 2]
    assert numbers(groups.before(groups.listed[1])) == []


def test_as_a_search_would_find_them():
    rng = random.Random(0)
    needs = [rng.sample(range(n), min(n, rng.randint(0, 2))) for n in range(40)]
    groups = made(needs)

    def search(number):
        return {number}.union(*(search(n) for n in needs[number]))

    for number in range(40):
        assert numbers(groups.up_to([number])) == sorted(search(number))


def test_a_state_can_be_returned_to():
    groups = made([[], [0]])
    before = groups.copy()
    groups.start(FusionGroup(2, (), (), needs=frozenset({1})))
    groups._link(FusionGroup(0, (), (), needs=frozenset({2})))
    assert len(before) == 2 and before.kernels == bits([0, 1])
    assert numbers(before.up_to([1])) == [0, 1]


def test_kernels_are_those_that_torch_does_not_run():
    assert made([[], [], []], libraries=[1]).kernels == bits([0, 2])


def test_a_cut_names_a_few_kernels_and_counts_the_others():
    """One kernel for each row length: the next fits in none of them."""
    inputs = [noise(64, 40 + n) for n in range(MOST_REASONS + 4)]
    found = lowered(lambda fd, *xs: [fd.ops.sum(fd.ops.exp(x), [1]) for x in xs], inputs, H200)
    cuts = [piece.cut for piece in found.segmented.segments if piece.cut]
    assert len(cuts) == len(inputs) - 1
    for place, cut in enumerate(sorted(cuts, key=len), 1):
        assert len(re.findall(r"not in s\d+: ", cut)) == min(place, MOST_REASONS)
    assert [c for c in cuts if c.endswith("; nor in 3 more")]


def summed_and_moved(fd, x, y):
    """A sum of a product, another result that reads neither factor, and the product itself."""
    product = fd.ops.mul(fd.ops.sigmoid(x), x)
    return fd.ops.sum(product, [0, 1]), fd.ops.neg(fd.ops.permute(y, [2, 1, 0])), product


def test_a_stored_value_joins_the_kernel_that_loads_what_it_loads():
    """The flat kernel is the later one, and would take it too."""
    given = [torch.empty(3, 285, 12544) for _ in "xy"]
    reduced, moved = lowered(summed_and_moved, given).segmented.segments
    stored = [[store.value.name for store in piece.stores] for piece in (reduced, moved)]
    assert stored == [["tv3", "tv4"], ["tv6"]]
    assert [value.name for value in moved.inputs] == ["tv1"]


def test_what_an_input_is_expanded_along_is_loaded_once():
    """The flat kernel loads x too, but that is a row: the product joins the sum that loads y."""

    def body(fd, x, y):
        total = fd.ops.sum(fd.ops.sigmoid(y), [0, 1])
        return total, fd.ops.neg(fd.ops.permute(x, [2, 1, 0])), fd.ops.mul(x, y)

    given = [torch.empty(1, 1, 12544).expand(3, 285, 12544), torch.empty(3, 285, 12544).bfloat16()]
    reads = [piece.inputs for piece in lowered(body, given).segmented.segments]
    assert sum(any(value.name == "tv1" for value in names) for names in reads) == 1


def test_kernels_without_reductions_are_not_asked_for_splits(monkeypatch):
    """The second side of a flat kernel's tiles takes long to choose."""
    asked = []
    problem = Grouper.problem
    monkeypatch.setattr(Grouper, "problem", lambda self, g: (asked.append(g), problem(self, g))[1])

    def body(fd, x, y):
        return fd.ops.sum(x, [1]), fd.ops.exp(fd.ops.permute(y, [1, 0]))

    given = [torch.empty(4096, width, device="meta") for width in (1024, 4104)]
    fusion = lowered(body, given).segmented.fusion
    found = CommonRewrites.of(fusion, ()).in_memory(H200, ())
    grouper = Grouper(found, Rules(H200))
    flat = [group for group in grouper.groups if not group.reduced]
    asked.clear()
    choose_splits(grouper, CommonRows.CUT)
    assert flat and asked and not {*map(id, flat)} & {*map(id, asked)}
