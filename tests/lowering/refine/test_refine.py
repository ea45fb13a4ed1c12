"""Where the cost model says kernels are slow, values go to memory or reductions are split anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from bench.cases import BY_NAME
from bench.random_graphs.__main__ import named as random_graph
from bench.recorded.definitions import make_inputs
from bench.recorded.definitions import record as recorded
from tests.lowering.graphs import group_norm_backward, noise
from tests.lowering.harness import CPU, H200, SLOW, check, lowered, planned, record, small, texts
from tritonfuser import DataType
from tritonfuser.cache.keys.signature import signature
from tritonfuser.heuristics.schedule import Schedule
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import HEURISTIC, Choice
from tritonfuser.lowering.fuse.splits.split_policy import CommonRows
from tritonfuser.lowering.passes.invariants.kept_orders import named
from tritonfuser.lowering.passes.invariants.materialize import materializable
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.refine import changes, search
from tritonfuser.lowering.refine import timed_choices as times_of
from tritonfuser.lowering.refine.candidates import Candidates, candidates
from tritonfuser.lowering.refine.kernel_times import (
    Excess,
    TimedKernels,
    shared_bytes,
    timed_kernels,
)
from tritonfuser.lowering.refine.search import SAVED
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.schedules import schedule_of


def crossed(*sizes, seed=1):
    """Noise whose last two dims lie in memory the other way around."""
    *outer, rows, columns = sizes
    return noise(*outer, columns, rows, seed=seed).transpose(-1, -2)


def first_inside(*sizes, seed=2):
    """Noise whose first dim is the innermost one in memory."""
    first, *others = sizes
    return noise(*others, first, seed=seed).movedim(-1, 0)


def kept(found):
    return found.segmented.rewrites.invariants


def plain(monkeypatch, body, inputs, facts=SLOW):
    """The kernels that the heuristics alone make."""
    with monkeypatch.context() as patch:
        patch.setattr(segment_choice, "refined", lambda fusion, device, make: make(HEURISTIC))
        return lowered(body, inputs, facts)


def seconds(found, facts=SLOW):
    return timed_kernels(found.segmented, facts).seconds


def distance(fd, x, y, z=None):
    gap = fd.ops.sub(x, y)
    gap = gap if z is None else fd.ops.mul(gap, z)
    return fd.ops.sum(fd.ops.mul(gap, gap), [0, 1, 2])


def attention(fd, x, y, mask):
    """A softmax of scores, and its transpose."""
    scores = fd.ops.mul(fd.ops.add(x, y), 0.125)
    scores = fd.ops.where(fd.ops.gt(mask, 0.0), scores, -10.0)
    top = fd.ops.broadcast(fd.ops.max(scores, [2]), [False, False, True])
    powers = fd.ops.exp(fd.ops.sub(scores, top))
    total = fd.ops.broadcast(fd.ops.sum(powers, [2]), [False, False, True])
    return fd.ops.permute(fd.ops.div(powers, total), [0, 2, 1])


def read_by_several(fd, *given):
    """A sum of products, and its sums over each of its dims: kernels that run over other axes."""
    total = None
    for x, y in zip(given[::2], given[1::2], strict=True):
        both = fd.ops.mul(x, y)
        total = both if total is None else fd.ops.add(total, both)
    return tuple(fd.ops.sum(fd.ops.sin(total), [dim]) for dim in range(3))


CASES = {
    "a copy": (
        distance,
        lambda: [noise(12, 24, 70), crossed(12, 24, 70), first_inside(12, 24, 70)],
    ),
    "read again": (read_by_several, lambda: [noise(32, 64, 48, seed=n) for n in range(8)]),
}
CASE = pytest.mark.parametrize("case", CASES)


@CASE
def test_what_is_slow_to_read_or_to_compute_again_is_in_memory(case, monkeypatch):
    body, drawn = CASES[case]
    inputs = drawn()
    found = check(body, *inputs, facts=SLOW)
    before = plain(monkeypatch, body, inputs)
    assert kept(found) and not kept(before)
    assert seconds(found) < 0.75 * seconds(before)


@CASE
def test_a_device_that_is_not_kept_busy_gets_the_kernels_of_the_heuristics(case, monkeypatch):
    body, drawn = CASES[case]
    for facts in (H200, CPU):
        assert texts(lowered(body, drawn(), facts)) == texts(
            plain(monkeypatch, body, drawn(), facts)
        )


@CASE
def test_as_a_given_schedule(case):
    body, drawn = CASES[case]
    inputs = drawn()
    found = lowered(body, inputs, SLOW)
    given = Schedule.from_dict(schedule_of(found.segmented).to_dict())
    ir = record(body, inputs).fusion.ir
    spec = signature(ir, inputs, torch.device("cpu"))
    assert texts(lower(ir, spec, SLOW, RunOptions(schedule=given))) == texts(found)


def test_results_stay_views_of_inputs():
    def body(fd, x, y):
        return distance(fd, x, y), fd.ops.permute(y, [0, 2, 1])

    inputs = [noise(12, 24, 70), crossed(12, 24, 70)]
    found = lowered(body, inputs, SLOW)
    assert "tv1" not in kept(found)
    _, turned = planned(found, inputs).run(inputs)
    assert turned.data_ptr() == inputs[1].data_ptr() and turned.stride() == (24 * 70, 24, 1)


def test_inputs_that_are_written_are_not_copied():
    def body(fd, x, y):
        total = distance(fd, x, y)
        fd.add_output(fd.ops.add(y, 1.0), alias_input=y)
        return total

    inputs = [noise(12, 24, 70), crossed(12, 24, 70)]
    wanted = ((inputs[0].double() - inputs[1].double()) ** 2).sum()
    after = inputs[1] + 1
    found = lowered(body, inputs, SLOW)
    assert "tv1" not in kept(found)
    (total,) = planned(found, inputs).run(inputs)
    torch.testing.assert_close(total.double(), wanted, rtol=1e-5, atol=0)
    torch.testing.assert_close(inputs[1], after)


@pytest.mark.parametrize("rows", CommonRows)
def test_reductions_of_the_same_data_apart_and_together(rows, monkeypatch):
    n, g, c, h, w = shape = (8, 4, 2, 8, 16)
    x, grad, weight = noise(n, g * c, h, w), noise(n, g * c, h, w, seed=1), noise(g * c)
    wide = x.reshape(n, g, c * h * w)
    mean = wide.mean(2)
    inputs = [x, grad, weight, mean, 1 / ((wide**2).mean(2) - mean**2 + 1e-5).sqrt()]
    monkeypatch.setattr(
        segment_choice, "refined", lambda fusion, device, make: make(Choice(rows=rows))
    )
    found = check(group_norm_backward(shape), *inputs, tolerance=2e-4)
    together = any(piece.co_reduced for piece in found.segmented.segments)
    assert together == (rows is CommonRows.CUT)


@pytest.mark.parametrize("halves", [False, True])
def test_any_value_can_be_in_memory(halves, monkeypatch):
    def body(fd, *given):
        wide = [fd.ops.cast(x, DataType.Float) for x in given]
        return attention(fd, *wide)

    inputs = [noise(2, 5, 40), crossed(2, 5, 40), noise(2, 5, 40, seed=2)]
    inputs = [x.half() for x in inputs] if halves else inputs
    names = set()

    def note(fusion, device, make):
        names.update(materializable(fusion))
        return make(HEURISTIC)

    monkeypatch.setattr(segment_choice, "refined", note)
    lowered(body, inputs)
    assert {"tv0", "tv1", "tv2"} < names
    for name in sorted(names):
        choice = Choice(materialized=(name,))
        monkeypatch.setattr(
            segment_choice, "refined", lambda fusion, device, make, c=choice: make(c)
        )
        found = check(body, *inputs)
        assert kept(found) == (name,)


def sums_of_columns(fd, x, y, z):
    return fd.ops.sum(fd.ops.mul(fd.ops.mul(x, y), z), [0])


def interleaves(found):
    return [split.interleave for split in found.segmented.rewrites.splits]


def test_parts_have_neighbouring_rows_where_a_tensor_lies_along_columns(monkeypatch):
    """Parts that take rows in turn fetch a sector of it for each element."""
    x = torch.empty(87200, 1298, device="meta")
    y = torch.empty(1298, 87200, device="meta").t()
    before = plain(monkeypatch, sums_of_columns, [x, y, x], H200)
    found = lowered(sums_of_columns, [x, y, x])
    assert max(interleaves(before)) > 0 == max(interleaves(found))
    assert seconds(found, H200) < 0.75 * seconds(before, H200)


def test_values_of_parts_of_neighbouring_rows(monkeypatch):
    choice = Choice(interleaved=False)
    monkeypatch.setattr(segment_choice, "refined", lambda fusion, device, make: make(choice))
    inputs = [noise(4096, 98), crossed(4096, 98), noise(4096, 98, seed=2)]
    found = check(sums_of_columns, *inputs, facts=small(4), tolerance=1e-4)
    assert interleaves(found) and not any(interleaves(found))


def test_what_kernels_share_is_the_memory_that_it_has():
    """A stretched input is one row of it, however many rows read that."""

    def body(fd, x, y):
        both = fd.ops.exp(fd.ops.mul(x, y))
        return tuple(fd.ops.sum(both, [dim]) for dim in range(3))

    x, y = noise(32, 64, 48), noise(1, 64, 48).expand(32, 64, 48)
    found = lowered(body, [x, y]).segmented
    shares = {value.name: count for value, count in shared_bytes(found).items()}
    readers = sum("tv1" in (v.name for v in piece.inputs) for piece in found.segments)
    assert readers > 1
    assert shares["tv1"] == pytest.approx(64 * 48 * 4 * (1 - 1 / readers))


def batch_norm(fd, x, weight, bias):
    """Of a channel each: rows of all images."""
    mean = fd.ops.mul(fd.ops.sum(fd.ops.mul(x, x), [0, 2], keepdim=True), 1e-3)
    normal = fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(mean, 1e-5)))
    return fd.ops.add(fd.ops.mul(normal, weight), bias)


def images(*sizes):
    return [noise(*sizes), noise(1, 1, sizes[-1], seed=1), noise(1, 1, sizes[-1], seed=2)]


def test_few_long_rows_are_reduced_by_all_multiprocessors(monkeypatch):
    """One kernel would read each row twice, by as many programs as there are rows."""
    given = images(128, 96, 1629)
    found = lowered(record(batch_norm, given), given, H200)
    alone = plain(monkeypatch, record(batch_norm, given), given, H200)
    assert len(alone.segmented.segments) == 1
    assert len(found.segmented.segments) > 1
    assert seconds(found, H200) < 0.9 * seconds(alone, H200)


def test_many_long_rows_stay_in_one_kernel():
    given = images(3, 2000, 20000)
    found = lowered(record(batch_norm, given), given, H200)
    assert len(found.segmented.segments) == 1


def sums_of_both(fd, x):
    """Sums of the innermost dims and of the outermost one, and what needs the latter."""
    columns = fd.ops.sum(x, [1], keepdim=True)
    return fd.ops.sum(x, [0]), fd.ops.exp(fd.ops.sub(x, columns))


def test_few_long_rows_are_not_reduced_both_ways_by_one_kernel():
    """H200, 28 rows of 842,940 in bfloat16: 400 us by a kernel whose threads hold the sums of as
    many columns as registers, and more; 55 us by kernels that each reduce along one dim."""
    given = [torch.empty(28, 842940, device="meta", dtype=torch.bfloat16).t()]
    found = lowered(record(sums_of_both, given), given, H200)
    assert "inner_outer_persistent" not in [each.scheduler for each in found.segmented.segments]


def test_values_of_both_sums():
    x = first_inside(40, 28)
    for facts in (H200, small(2), CPU):
        check(sums_of_both, x, facts=facts, tolerance=1e-4)


def test_values_of_rows_that_are_reduced_by_another_kernel():
    facts = replace(H200, sm_count=132, registers_per_sm=H200.registers_per_sm // 64)
    check(batch_norm, *images(5, 96, 163), facts=facts, tolerance=1e-4)


@dataclass(eq=False)
class Timed:
    """Kernels of which nothing but the times are asked."""

    seconds: float
    excess: float = 0.0
    segmented: str = ""
    few_instructions: float | None = None

    @property
    def light(self):
        return self.seconds if self.few_instructions is None else self.few_instructions

    is_like = TimedKernels.is_like
    is_faster = TimedKernels.is_faster


def storing(*names):
    """The choice that materializes these values."""
    return Choice(materialized=names)


def base_of(pieces):
    """No fusion: what would change it is not asked for changes."""
    assert pieces == ()


def known(**seconds):
    """Times of choices: ``ab=0.5`` has the values a and b in memory."""
    found = {
        Choice(materialized=tuple(name.strip("_"))): Timed(each) for name, each in seconds.items()
    }
    return times_of.TimedChoices(H200, base_of, lambda choice: None, found)


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [
        ({"ab": 1.0, "abc": 1 - SAVED - 0.01}, "abc"),
        ({"ab": 1.0, "abc": 1 - SAVED + 0.01}, "ab"),  # saves less than the model errs by
        ({"ab": 1.0, "a": 0.99}, "a"),  # but less in memory need not save that
        ({"ab": 1.0, "a": 1.01}, "ab"),
        ({"_": 1.0, "a": 0.505, "ab": 0.5}, "a"),  # as fast, with less in memory
        ({"_": 1.0, "a": 0.6, "ab": 0.5}, "ab"),
    ],
)
def test_which_of_the_timed_segmentations_is_chosen(seconds, taken):
    times = known(**seconds)
    first = next(iter(times.known.values()))
    assert search._fastest(times, first) is times.known[storing(*taken)]


def test_two_changes_that_save_together_are_found(monkeypatch):
    """Where no single change saves anything, two may."""
    none, one, both = (
        storing(),
        storing("a"),
        storing("a", "b"),
    )
    timed = {none: Timed(1.0, 0.9), one: Timed(1.1, 0.9), both: Timed(0.5, 0.05)}
    reached = {none: {one: 0.9}, one: {both: 0.9, none: 0.9}}
    monkeypatch.setattr(times_of, "timed_kernels", lambda made, device: timed[made])
    monkeypatch.setattr(changes, "_possible", lambda now, choice: reached[choice])
    monkeypatch.setattr(changes, "_without_sums_over_rows", lambda now, choice: {})
    monkeypatch.setattr(changes, "candidates", lambda *given: Candidates({}, {}, {}))
    times = times_of.TimedChoices(H200, base_of, lambda choice: choice, {none: timed[none]})
    changed = set()
    while found := search._next(times, changed):
        changed.add(found)
        changes.try_changes(times, found)
    assert changed == {none, one} and search._fastest(times, timed[none]) is timed[both]


def test_equal_segmentations_are_changed_once():
    same = [Choice(materialized=(), rows=rows) for rows in (None, CommonRows.WHOLE)]
    times = times_of.TimedChoices(H200, base_of, None, {choice: Timed(1.0, 0.9) for choice in same})
    first = search._next(times, set())
    assert first in same and search._next(times, {first}) is None


def test_instructions_alone_are_not_enough_of_a_gain():
    """What the model knows least are instructions: with fewer of them it must be faster too."""
    first = Timed(1.0, few_instructions=0.6)
    more_bytes, fewer_bytes = (Timed(0.7, few_instructions=share) for share in (0.65, 0.55))
    times = times_of.TimedChoices(H200, base_of, None, {storing(): first, storing("a"): more_bytes})
    assert search._fastest(times, first) is first
    times.known[storing("b")] = fewer_bytes
    assert search._fastest(times, first) is fewer_bytes


def test_a_group_norm_backward_of_long_rows_is_one_kernel_and_the_sums_of_its_sums():
    """H100: 561 us, and 764 where sums of rows come before the kernel that uses them, which reads
    the rows from memory once more. The model says 1.09 and 0.84 ms."""
    size = 256, 64, 112, 112
    case = BY_NAME["groupnorm_silu_bwd"]
    inputs = case.inputs(size, torch.bfloat16, "meta", 0)
    fusion = case.record(size, torch.bfloat16).fusion.ir
    spec = signature(fusion, inputs, torch.device("meta"))
    facts = replace(H200, bandwidth_bytes_per_s=3.017e12, l2_bytes=50 << 20)
    found = lower(fusion, spec, facts, RunOptions()).segmented
    assert [piece.scheduler for piece in found.segments] == ["inner_persistent", "reduction"]


def test_splits_that_changed_nothing_are_not_tried_again():
    first, kept = storing(), storing("a")
    times = times_of.TimedChoices(
        H200, base_of, None, {first: Timed(1.0, 0.9), kept: Timed(0.9, 0.5)}
    )
    whole, apart = (replace(first, rows=rows) for rows in (CommonRows.WHOLE, CommonRows.SEPARATE))
    times.known.update({whole: Timed(1.0, 0.9), apart: Timed(1.1, 0.9)})
    assert changes._changed_nothing(times, kept, replace(kept, rows=CommonRows.WHOLE))
    assert not changes._changed_nothing(times, kept, replace(kept, rows=CommonRows.SEPARATE))
    assert not changes._changed_nothing(times, kept, replace(kept, interleaved=False))


def slow_candidates(body, inputs):
    """The candidates where each kernel is a millisecond slower than its bytes."""
    made = lowered(body, inputs)
    pieces = tuple(Excess(piece, 1e-3) for piece in made.segmented.segments)
    now = replace(timed_kernels(made.segmented, H200), excesses=pieces)
    return made.segmented.fusion, candidates(made.segmented.fusion, now, H200)


def test_small_values_that_are_broadcast_are_candidates():
    """Kernels compute them, and read what they are made of, in the order of a large tensor."""

    def body(fd, x, small, cos):
        halves = [fd.ops.slice(small, [0, n], [64, n + 64]) for n in (0, 64)]
        turned = fd.ops.mul(fd.ops.cat([fd.ops.neg(halves[1]), halves[0]], 1), cos)
        return fd.ops.sub(x, fd.ops.broadcast(fd.ops.tanh(turned), [True, False, False]))

    shapes = (256, 64, 128), (64, 128), (64, 128)
    fusion, found = slow_candidates(body, [torch.empty(s, device="meta") for s in shapes])
    assert found.others and not found.first
    sizes = {v.name: v.tensor.sizes for node in fusion.nodes for v in node.outs}
    assert {sizes[name] for name in found.others} == {(1, 64, 128)}


def test_values_of_other_shapes_are_candidates():
    """A value and its transpose lie in other orders: one may suit where the other does not."""

    def body(fd, x, y, z):
        both = fd.ops.cast(fd.ops.mul(x, y), DataType.BFloat16)
        crossed = fd.ops.reshape(fd.ops.permute(both, [2, 0, 1]), [48, 32 * 64])
        again = fd.ops.permute(fd.ops.reshape(crossed, [48, 32, 64]), [0, 2, 1])
        return fd.ops.sub(crossed, z), fd.ops.exp(again)

    shapes = (32, 64, 48), (32, 64, 48), (48, 32 * 64)
    given = [torch.empty(s, dtype=torch.bfloat16, device="meta") for s in shapes]
    fusion, found = slow_candidates(body, given)
    sizes = {v.name: v.tensor.sizes for node in fusion.nodes for v in node.outs}
    names = (*found.first, *found.others)
    shapes = {sizes[name] for name in names if name in sizes}
    assert {(32, 64, 48), (48, 32 * 64), (48, 64, 32)} <= shapes
    # Its tensors lie along three axes: its inputs may suit in yet other orders.
    inputs = {value.name for value in fusion.inputs}
    others = [name for name in names if name not in sizes]
    assert others and {named(name) for name in others} <= inputs


def test_a_value_and_its_last_use_are_candidates_of_each_shape():
    """A permuted value has the shape of what is computed of it, and lies as its uses are read."""

    def body(fd, x, y, weight):
        moved = fd.ops.pad(fd.ops.slice(fd.ops.exp(x), [0, 0, 0], [32, 47, 64]), [0, 0, 1, 0])
        other = fd.ops.mul(fd.ops.permute(moved, [0, 2, 1]), y)
        sums = fd.ops.sum(fd.ops.mul(other, weight), [0, 1])
        return moved, sums, fd.ops.sub(other, fd.ops.sum(other, [2], keepdim=True))

    shapes = (32, 48, 64), (32, 64, 48), (32, 64, 48)
    fusion, found = slow_candidates(body, [torch.empty(s, device="meta") for s in shapes])
    producers = {out.name: node.op for node in fusion.nodes for out in node.outs}
    assert "permute" in {producers.get(name) for name in (*found.first, *found.others)}


def test_the_heuristics_way_is_changed_first():
    """Of ways that promise as much another could be, and what suits only it would not be found."""
    first, other = storing(), Choice(materialized=(), over_rows=False)
    known = {first: Timed(1.0, 0.9), other: Timed(0.99, 0.9)}
    times = times_of.TimedChoices(H200, base_of, None, known)
    assert search._next(times, set()) is first
    assert search._next(times, {first}) is other


def test_without_the_heuristics_way_the_most_promising_is_changed_first():
    """What the heuristics cut may be near the least already: then it is no better than others."""
    first, slow, other = (Choice(materialized=("a",) * n) for n in range(3))
    known = {first: Timed(1.0, 0.0), slow: Timed(1.0, 0.8), other: Timed(0.99, 0.9)}
    assert search._next(times_of.TimedChoices(H200, base_of, None, known), set()) is other


def test_ways_are_tried_for_as_long_as_calls_win_back(monkeypatch):
    """A few in any case."""
    entry, tried = random_graph("graph-20-38"), []
    call = times_of.TimedChoices.__call__

    def counted(times, choice):
        tried.append(choice)
        return call(times, choice)

    monkeypatch.setattr(times_of.TimedChoices, "__call__", counted)
    found = {}
    for calls in (0, 1_000_000):
        tried.clear()
        monkeypatch.setattr(times_of, "CALLS", calls)
        fd = recorded(entry)
        fd.schedule(make_inputs(entry, fd.fusion.ir, "meta"), arch="sm_90")
        found[calls] = len(set(tried))
    assert 0 < found[0] <= times_of.FEWEST_TRIED < found[1_000_000]
