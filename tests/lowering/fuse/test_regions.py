"""Values that are pieced together are computed box by box, in one kernel."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.e2e.opened import check_open, compile_open
from tests.lowering.harness import NARROW, check, lowered, record, schedulers, small, texts
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.lowering.groups import regions
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.schedules import schedule_of

FLOAT, BFLOAT16 = DataType.Float, DataType.BFloat16


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    return made.to(dtype)


def rotated_back(fd: Any, grad: Any, cos: Any, sin: Any, shape: list[int]) -> Any:
    """The gradient of a rotary embedding, as Thunder writes it."""
    *outer, width = shape
    half, zeros = width // 2, [0] * len(shape)
    cos, sin = (fd.ops.broadcast_in_dim(v, shape=shape, broadcast_dims=[2, 3]) for v in (cos, sin))
    grad = fd.ops.cast(grad, FLOAT)
    turned = fd.ops.cast(fd.ops.mul(grad, sin), BFLOAT16)
    low = fd.ops.slice(turned, zeros, [*outer, half], [1] * len(shape))
    high = fd.ops.slice(turned, [*zeros[1:], half], shape, [1] * len(shape))
    low = fd.ops.pad(fd.ops.cast(fd.ops.neg(low), BFLOAT16), [half, 0], 0.0)
    high = fd.ops.pad(high, [0, half], 0.0)
    both = fd.ops.add(fd.ops.cast(low, FLOAT), fd.ops.cast(high, FLOAT))
    return fd.ops.cast(fd.ops.add(both, fd.ops.mul(grad, cos)), BFLOAT16)


def merged(heads: tuple[int, ...], tokens: int, width: int) -> Any:
    """Gradients of queries, keys and values padded and added into one, and its transpose."""

    def body(fd: Any, q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
        rotated = [
            rotated_back(fd, x, cos, sin, [2, n, tokens, width])
            for x, n in zip((q, k), heads, strict=False)
        ]
        total, whole, start = None, width * sum(heads), 0
        for x, n in zip((*rotated, v), heads, strict=True):
            flat = fd.ops.reshape(fd.ops.permute(x, [0, 2, 1, 3]), [2, tokens, n * width])
            padded = fd.ops.pad(flat, [start, whole - start - n * width], 0.0)
            wide = fd.ops.cast(padded, FLOAT)
            total = wide if total is None else fd.ops.add(total, wide)
            start += n * width
        rows = fd.ops.reshape(fd.ops.cast(total, BFLOAT16), [2 * tokens, whole])
        return rows, fd.ops.permute(rows, [1, 0])

    return body


def gradients(heads: tuple[int, ...], tokens: int, width: int) -> list[torch.Tensor]:
    made = [noise(2, tokens, n, width, dtype=torch.bfloat16).transpose(1, 2) for n in heads]
    return [*made, noise(tokens, width), noise(tokens, width)]


def chooses(found: Lowered) -> bool:
    """Whether some kernel computes several values for an element and chooses."""
    return any("tl.where" in text for text in texts(found))


def stores(found: Lowered) -> int:
    return sum(text.count("tl.store") for text in texts(found))


def test_halves_of_a_rotary_backward_are_computed_apart() -> None:
    def body(fd: Any, grad: Any, cos: Any, sin: Any) -> Any:
        return rotated_back(fd, grad, cos, sin, [2, 3, 8, 64])

    inputs = noise(2, 3, 8, 64, dtype=torch.bfloat16), noise(8, 64), noise(8, 64)
    found = check(body, *inputs, facts=NARROW)
    assert schedulers(found) == ["transpose"]
    assert not chooses(found) and stores(found) == 2
    # Each element is loaded once.
    assert texts(found)[0].count("tl.load") == 6


def test_merged_gradients_and_their_transpose_are_one_kernel_of_boxes() -> None:
    heads = (4, 4, 4)
    found = check(merged(heads, 8, 96), *gradients(heads, 8, 96), facts=NARROW)
    assert schedulers(found) == ["transpose"]
    assert not chooses(found) and stores(found) == 6


def test_fewer_heads_of_keys_cut_the_queries_too() -> None:
    heads = (8, 2, 2)
    found = check(merged(heads, 8, 64), *gradients(heads, 8, 64), facts=NARROW)
    assert schedulers(found) == ["pointwise"]
    assert not chooses(found) and stores(found) == 12
    assert len(set(re.findall(r"tl\.load\((.*?)\)", texts(found)[0]))) == 2 * (4 + 1 + 1) + 4


def test_a_result_beside_boxes_is_cut_like_them() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.exp(x), fd.ops.cat([fd.ops.slice(x, [0, 0], [64, 16]), y], 1)

    found = check(body, noise(64, 32), noise(64, 16), facts=NARROW)
    assert schedulers(found) == ["pointwise"]
    assert not chooses(found) and stores(found) == 4


def test_a_result_of_other_sizes_beside_boxes_is_cut_into_as_many() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.exp(x), fd.ops.cat([y, fd.ops.neg(y)], 1)

    found = check(body, noise(8, 16, 16), noise(64, 16), facts=NARROW)
    assert schedulers(found) == ["pointwise"]
    assert not chooses(found) and stores(found) == 4


def test_boxes_of_less_than_two_sectors_are_not_stored_apart() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        pairs = [fd.ops.broadcast(v, [False, False, True]) for v in (x, y)]
        return fd.ops.reshape(fd.ops.cat(pairs, 2), [32, 128])

    found = check(body, noise(32, 64), noise(32, 64), facts=NARROW)
    assert stores(found) == 1


def test_a_border_is_chosen_where_boxes_take_more_instructions() -> None:
    found = check(
        lambda fd, x: fd.ops.pad(fd.ops.exp(x), [1, 1, 1, 1], 0.5), noise(3, 40, 40), facts=NARROW
    )
    assert stores(found) == 1


def test_a_long_part_beside_two_short_ones_is_not_cut_into_many() -> None:
    """A kernel has the code of each of its boxes: equal ones would be eighteen, by two cuts one
    after the other."""

    def body(fd: Any, *parts: Any) -> Any:
        curved = [fd.ops.tanh(fd.ops.tanh(fd.ops.tanh(part))) for part in parts]
        return fd.ops.neg(fd.ops.permute(fd.ops.cat(curved, 1), [1, 0]))

    found = check(body, *(noise(64, n) for n in (256, 16, 16)), facts=small(1))
    assert stores(found) == 3 and not chooses(found)


def test_zeros_are_added_in_boxes_too() -> None:
    """Minus zero and zero make zero."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.add(fd.ops.pad(x, [0, 16], 0.0), fd.ops.pad(y, [16, 0], 0.0))

    fd = record(body, [torch.full((8, 16), -0.0)] * 2)
    (found,) = fd.run([torch.full((8, 16), -0.0)] * 2)
    assert not found.signbit().any()


def test_parts_are_no_values_of_fewer_axes() -> None:
    """They are computed for their own elements alone, so none is put in memory first."""
    heads = (28, 4, 4)
    inputs = [x.to("meta") for x in gradients(heads, 512, 128)]
    found = lowered(merged(heads, 512, 128), inputs)
    assert schedulers(found) == ["pointwise"] and stores(found) == 18


def with_bias_gradient(fd: Any, *inputs: Any) -> Any:
    rows, turned = merged((2, 2, 2), 512, 96)(fd, *inputs)
    return rows, turned, fd.ops.sum(fd.ops.cast(rows, FLOAT), [0])


def test_sums_of_a_result_in_boxes_load_it() -> None:
    inputs = gradients((2, 2, 2), 512, 96)
    found = check(with_bias_gradient, *inputs, facts=small(2), tolerance=1e-3)
    first, *sums = found.segmented.segments
    assert first.scheduler == "transpose" and {s.scheduler for s in sums} == {"reduction"}
    assert stores(found) == 6 + len(sums) and not chooses(found)
    assert sums[0].inputs == first.outputs


@pytest.mark.parametrize("body", [merged((2, 2, 2), 512, 96), with_bias_gradient])
def test_a_schedule_names_boxes(body: Any) -> None:
    inputs = gradients((2, 2, 2), 512, 96)
    fd = record(body, inputs)
    found = lowered(fd, inputs, small(2))
    schedule = schedule_of(found.segmented)
    piece = schedule.segments[0]
    assert [name.split("[")[1] for name in piece.stores] == [f"{n}]" for n in range(6)]
    spec = signature(fd.fusion.ir, inputs, torch.device("cpu"))
    again = lower(fd.fusion.ir, spec, small(2), RunOptions(schedule=schedule))
    assert texts(again) == texts(found)


def test_a_schedule_may_have_the_equal_boxes_that_would_be_many(monkeypatch: Any) -> None:
    """Those of the value's parts, not as many others."""

    def body(fd: Any, *parts: Any) -> Any:
        long = [fd.ops.tanh(fd.ops.tanh(fd.ops.tanh(part))) for part in parts[:3]]
        pairs = [fd.ops.cat(pair, 0) for pair in zip(long, parts[3:], strict=True)]
        return fd.ops.neg(fd.ops.permute(fd.ops.cat(pairs, 1), [1, 0]))

    inputs = [noise(rows, n) for rows in (508, 4) for n in (256, 16, 16)]
    fd = record(body, inputs)
    monkeypatch.setattr(regions, "MOST_EVEN", 100)
    found = lowered(fd, inputs, small(1))
    monkeypatch.undo()
    assert stores(found) > stores(lowered(fd, inputs, small(1)))
    spec = signature(fd.fusion.ir, inputs, torch.device("cpu"))
    options = RunOptions(schedule=schedule_of(found.segmented))
    assert texts(lower(fd.fusion.ir, spec, small(1), options)) == texts(found)


def test_boxes_of_varying_sizes() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.add(fd.ops.cat([fd.ops.exp(x), fd.ops.neg(y)], 1), 1.0)

    with FusionDefinition() as fd:
        values = [fd.define_tensor(shape=[-1, -1, -1], dtype=FLOAT) for _ in range(2)]
        fd.add_output(body(fd, *values))
    given = [[noise(3, n, 64), noise(3, n, 64)] for n in (6, 9, 20, 2)]
    made = compile_open(fd, given[0], given[1:], NARROW)
    assert made is not None
    (step,) = made.plan.steps
    assert step.source is not None and "tl.where" not in step.source.text
    assert check_open(fd, given, NARROW) == (3, True)
    apart = [[noise(3, n, 64), noise(3, n + m, 64)] for n, m in ((6, 2), (9, 11), (20, 3))]
    assert check_open(fd, apart, NARROW)[1]


def uneven(left: int) -> Any:
    """Rows whose parts of unequal length change places, as rotary embeddings of an odd width."""

    def body(fd: Any, x: Any, cos: Any, sin: Any) -> Any:
        low = fd.ops.slice(x, [0, 0], [24, left])
        high = fd.ops.slice(x, [0, left], [24, 57])
        turned = fd.ops.cat([fd.ops.neg(high), low], 1)
        cos, sin = (fd.ops.broadcast(v, [True, False]) for v in (cos, sin))
        return fd.ops.add(fd.ops.mul(x, cos), fd.ops.mul(turned, sin))

    return body


@pytest.mark.parametrize("left", [29, 28, 31])
def test_a_program_has_the_same_rows_of_boxes_of_unequal_length(left: int) -> None:
    """Matched by number they drift apart: 57 columns took twice as long as their bytes."""
    found = check(uneven(left), noise(24, 57), noise(57), noise(57), facts=NARROW)
    (text,) = texts(found)
    assert stores(found) == 2
    short, long = sorted((left, 57 - left))
    assert f"(x, {long})" in text and f"x), {short})" not in text
    assert f"< {short}" in text


def test_boxes_much_shorter_than_another_are_matched_by_number() -> None:
    """Most lanes of a program would be masked."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.cat([fd.ops.exp(x), fd.ops.neg(y)], 1)

    for short, way in ((63, "axis by axis"), (17, "by number")):
        found = check(body, noise(24, 80), noise(24, short), facts=NARROW)
        (text,) = texts(found)
        assert stores(found) == 2
        assert (f"< {short}" in text) is (way == "axis by axis")


def test_a_shift_along_a_dim_of_any_size() -> None:
    """Whether it is a dim of pairs is not known, and makes no difference."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.pad(fd.ops.exp(x), [1, -1]))
    given = [[noise(n, m)] for n, m in ((6, 5), (9, 3), (20, 7), (4, 2))]
    assert check_open(fd, given, NARROW) == (3, True)
