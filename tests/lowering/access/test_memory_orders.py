"""Results have the memory order of what they are computed from, as nvFuser's and torch's have."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import (
    H200,
    NARROW,
    check,
    lowered,
    planned,
    record,
    schedulers,
    small,
    texts,
)
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.lowering.access.memory_orders import common_orders, memory_orders
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.memory_orders import reduce_in_memory_order
from tritonfuser.lowering.refine.kernel_times import timed_kernels

SHAPE = (2, 8, 5, 6)
LAST = torch.channels_last


def images(*shape: int) -> torch.Tensor:
    made = noise(*(shape or SHAPE))
    made.view(-1)[:4] = torch.tensor([float("nan"), float("inf"), -0.0, 0.0])
    return made.contiguous(memory_format=LAST)


def ran(body: Any, *inputs: torch.Tensor) -> list[torch.Tensor]:
    found = lowered(record(body, inputs), inputs)
    return planned(found, inputs).run(list(inputs))


LIKE_TORCH: dict[str, tuple[Any, Any]] = {
    "pointwise": (lambda fd, x: fd.ops.relu(x), lambda x: x.relu()),
    "two": (lambda fd, x: fd.ops.add(x, fd.ops.neg(x)), lambda x: x - x),
    "cast": (lambda fd, x: fd.ops.gt(x, 0.0), lambda x: x > 0),
    "permuted": (
        lambda fd, x: fd.ops.neg(fd.ops.permute(x, [0, 2, 3, 1])),
        lambda x: -x.permute(0, 2, 3, 1),
    ),
    "a permuted result": (
        lambda fd, x: fd.ops.permute(fd.ops.neg(x), [1, 0, 2, 3]),
        lambda x: (-x).permute(1, 0, 2, 3),
    ),
    "channels": (
        lambda fd, x: fd.ops.cat([fd.ops.relu(x), x], 1),
        lambda x: torch.cat([x.relu(), x], 1),
    ),
    "padded": (
        lambda fd, x: fd.ops.pad(x, [1, 1, 2, 0]),
        lambda x: torch.nn.functional.pad(x, (1, 1, 2, 0)),
    ),
    "reshaped": (
        lambda fd, x: fd.ops.neg(fd.ops.reshape(x, [2, 8, 30])),
        lambda x: -x.reshape(2, 8, 30),
    ),
    "merged across memory": (
        lambda fd, x: fd.ops.neg(fd.ops.reshape(x, [16, 30])),
        lambda x: -x.reshape(16, 30),
    ),
    "a view": (lambda fd, x: fd.ops.reshape(x, [2, 2, 4, 30]), lambda x: x.view(2, 2, 4, 30)),
}


@pytest.mark.parametrize("name", LIKE_TORCH)
def test_strides_are_those_of_torch(name: str) -> None:
    body, wanted = LIKE_TORCH[name]
    x = images()
    check(body, x)
    (found,) = ran(body, x)
    assert found.stride() == wanted(x).stride()


def test_reductions_and_scans_keep_the_order_of_the_dims_that_are_left() -> None:
    """As nvFuser's do. torch's are row-major."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.max(x, [3]), fd.ops.sum(x, [0]), fd.ops.cumsum(x, 2)

    check(body, images())
    strides = [out.stride() for out in ran(body, images())]
    assert strides == [(40, 1, 8), (1, 48, 8), (240, 1, 48, 8)]


def test_a_normalization_keeps_channels_last() -> None:
    def body(fd: Any, x: Any, w: Any) -> Any:
        var, mean = fd.ops.var_mean(x, [0, 2, 3], correction=0, keepdim=True)
        scale = fd.ops.mul(fd.ops.rsqrt(fd.ops.add(var, 1e-5)), w)
        return fd.ops.mul(fd.ops.sub(x, mean), scale)

    given = noise(4, 16, 5, 6).contiguous(memory_format=LAST), noise(1, 16, 1, 1)
    found = check(body, *given, facts=small(4))
    assert "transpose" not in schedulers(found)
    assert ran(body, *given)[0].is_contiguous(memory_format=LAST)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_any_order(order: tuple[int, ...]) -> None:
    x = torch.empty_strided((3, 4, 5), strides_of((3, 4, 5), order)).copy_(noise(3, 4, 5))

    def body(fd: Any, x: Any) -> Any:
        asked = fd.ops.stride_order(fd.ops.neg(x), [0, 2, 1])
        return fd.ops.exp(x), asked, fd.ops.add(asked, 1.0)

    check(body, x)
    plain, asked, added = ran(body, x)
    assert plain.stride() == x.stride()
    assert asked.stride() == strides_of((3, 4, 5), (0, 2, 1))
    assert added.stride() == x.stride()


def strides_of(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for place in range(len(shape)):
        dim = order.index(place)
        strides[dim], step = step, step * shape[dim]
    return tuple(strides)


def test_the_tensor_with_the_most_dims_decides_and_of_two_the_first() -> None:
    def body(fd: Any, x: Any, y: Any, bias: Any) -> Any:
        return fd.ops.add(bias, x), fd.ops.add(x, y), fd.ops.add(y, x), fd.ops.add(bias, y)

    bias = noise(1, 8, 5, 1).permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2)
    biased, first, second, rows = ran(body, images(), noise(*SHAPE), bias)
    assert biased.is_contiguous(memory_format=LAST)
    assert first.is_contiguous(memory_format=LAST)
    assert second.is_contiguous() and rows.is_contiguous()


def test_of_several_with_as_many_dims_the_order_of_most_bytes_decides() -> None:
    """An input counts once, however often it is used, by the bytes of its elements."""

    def body(fd: Any, rows: Any, last: Any, wide: Any) -> Any:
        twice = fd.ops.add(fd.ops.mul(last, last), fd.ops.neg(last))
        return (
            fd.ops.add(fd.ops.add(rows, last), twice),
            fd.ops.add(rows, wide),
            fd.ops.add(fd.ops.add(rows, last), fd.ops.mul(fd.ops.neg(wide), 2.0)),
        )

    rows, last, wide = noise(*SHAPE), images(), images().double()
    given = rows, last, wide
    check(body, *given)
    alike, wider, most = ran(body, *given)
    assert alike.is_contiguous()
    assert wider.is_contiguous(memory_format=LAST)
    assert most.is_contiguous(memory_format=LAST)


def test_an_input_that_is_read_at_two_places_counts_once() -> None:
    def body(fd: Any, rows: Any, last: Any) -> Any:
        ones = [1, 1, 1, 1]
        low = fd.ops.slice(last, [0, 0, 0, 0], [2, 8, 5, 5], ones)
        high = fd.ops.slice(last, [0, 0, 0, 1], [2, 8, 5, 6], ones)
        return fd.ops.add(rows, fd.ops.sub(low, high))

    given = noise(2, 8, 5, 5), images()
    check(body, *given)
    (found,) = ran(body, *given)
    assert found.is_contiguous()


def test_an_expanded_tensor_changes_nothing() -> None:
    """Whatever its place: it has fewer dims than the dense ones."""

    def body(fd: Any, dense: Any, spread: Any, rows: Any) -> Any:
        return (
            fd.ops.add(fd.ops.add(dense, spread), rows),
            fd.ops.add(fd.ops.add(spread, dense), rows),
        )

    spread = images(1, 8, 5, 6).expand(SHAPE)
    for first, second in ((images(), noise(*SHAPE)), (noise(*SHAPE), images())):
        found = ran(body, first, spread, second)
        assert all(each.stride() == first.stride() for each in found)


def test_stencils_one_after_another_have_one_reference() -> None:
    """Each reads nine places of the one before: as many more for each that follows."""
    places = [(n, m) for n in range(3) for m in range(3)]
    with FusionDefinition() as fd:
        x = fd.define_tensor([*SHAPE], [True] * 4, stride_order=[3, 0, 2, 1])
        for _ in range(8):
            first, *others = (fd.ops.pad(x, [1 - n, n - 1, 1 - m, m - 1]) for n, m in places)
            x = reduce(fd.ops.add, others, first)
        fd.add_output(x)
    orders = memory_orders(fd.fusion.ir)
    assert set(orders.values()) == {(3, 0, 2, 1)} and len(orders) == len(fd.fusion.ir.nodes)


def test_an_order_that_is_not_everywhere_the_same_is_row_major() -> None:
    """Dims that are merged across the memory of most tensors: they have no order to give."""

    def body(fd: Any, first: Any, second: Any, rows: Any) -> Any:
        merged = [fd.ops.reshape(each, [16, 30]) for each in (first, second)]
        return fd.ops.add(fd.ops.add(*merged), fd.ops.permute(rows, [1, 0]))

    given = images(), images(), noise(30, 16)
    check(body, *given)
    (found,) = ran(body, *given)
    assert found.is_contiguous()


def test_row_major_tensors_give_row_major_ones() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.neg(fd.ops.permute(x, [1, 0])), fd.ops.add(y, 1.0)

    given = noise(4, 6), noise(1, 6, 1).permute(2, 1, 0)
    assert all(out.is_contiguous() for out in ran(body, *given))
    assert memory_orders(lowered(record(body, given), given).segmented.fusion) == {}


def test_an_order_that_is_declared_counts_whatever_the_strides_are() -> None:
    """So the program alone says how results lie."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1], [False, False])))
    (found,) = fd.run([noise(6, 4).t()])
    assert found.is_contiguous()


def test_a_view_of_an_input_stays_one_beside_a_copy_of_it() -> None:
    x = noise(4, 6, 5).transpose(1, 2).contiguous().transpose(1, 2)

    def body(fd: Any, x: Any) -> Any:
        turned = fd.ops.permute(x, [0, 2, 1])
        return turned, fd.ops.reshape(x, [24, 5]), fd.ops.reshape(turned, [20, 6])

    check(body, x)
    turned, copied, view = ran(body, x)
    assert turned.data_ptr() == x.data_ptr() == view.data_ptr()
    assert copied.is_contiguous()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers(dtype: torch.dtype) -> None:
    x = torch.complex(images(), images()).to(dtype)

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.mul(x, x), fd.ops.abs(x)

    product, size = ran(body, x)
    assert product.is_contiguous(memory_format=LAST) and size.is_contiguous(memory_format=LAST)
    torch.testing.assert_close(size, x.abs(), equal_nan=True)


def test_empty_images_and_images_of_one_pixel() -> None:
    for shape in ((2, 0, 3, 4), (2, 8, 1, 1), (1, 8, 1, 1)):
        x = noise(*shape).contiguous(memory_format=LAST)
        (found,) = ran(lambda fd, x: fd.ops.neg(x), x)
        assert torch.equal(found, -x)
        assert found.is_contiguous(memory_format=LAST) or found.is_contiguous()


def test_kernels_read_and_write_along_channels() -> None:
    x, y = (noise(16, 64, 20, 20).contiguous(memory_format=LAST) for _ in range(2))
    found = lowered(record(lambda fd, x, y: fd.ops.relu(fd.ops.add(x, y)), (x, y)), (x, y), H200)
    assert schedulers(found) == ["pointwise"]


def test_results_that_ride_along_are_at_positions_in_memorys_order() -> None:
    """Neighbours in the kernel are neighbours in memory, and no index is divided."""

    def body(fd: Any, x: Any, count: Any, w: Any, y: Any) -> Any:
        return fd.ops.relu(x), fd.ops.add(count, 1), fd.ops.neg(w), fd.ops.neg(y)

    x, y = images(), images(2, 8, 6, 5)
    given = x, torch.tensor(3), noise(8), y
    check(body, *given, facts=small(2))
    found = lowered(record(body, given), given, H200)
    (text,) = texts(found)
    assert "//" not in text and "%" not in text


def test_boxes_of_images_lie_as_the_images_do() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.cat([fd.ops.exp(x), fd.ops.sin(y), fd.ops.neg(x)], 1)

    given = images(), images()
    check(body, *given, facts=NARROW)
    (found,) = ran(body, *given)
    assert found.is_contiguous(memory_format=LAST)


def test_reductions_of_what_no_tensor_of_its_size_makes() -> None:
    """Both are broadcast: there is no order to take."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        wide = fd.ops.add(x, fd.ops.broadcast(y, [True, True, True, False]))
        return fd.ops.sum(wide, [0, 1, 2, 3])

    check(body, noise(2, 5, 1, 6).permute(0, 3, 1, 2), noise(7), facts=NARROW)


@pytest.mark.parametrize("op", ["max", "sum", "var"])
def test_reductions_of_all_dims_read_memory_as_it_lies(op) -> None:
    """In the order of the dims each element would be in another line: ten times as long."""

    def body(fd: Any, x: Any) -> Any:
        return getattr(fd.ops, op)(fd.ops.relu(x), [0, 1, 2, 3])

    shape = (8, 24, 20, 20)
    last = noise(*shape).to(memory_format=LAST)
    found = lowered(body, [torch.empty(64, 96, 40, 40, device="meta").to(memory_format=LAST)])
    rows = lowered(body, [torch.empty(64, 96, 40, 40, device="meta")])
    assert [s.params for s in found.segmented.segments] == [
        s.params for s in rows.segmented.segments
    ]
    times = [timed_kernels(each.segmented, H200).seconds for each in (found, rows)]
    assert times[0] == pytest.approx(times[1], rel=0.01)
    check(body, last, facts=NARROW)


@pytest.mark.parametrize("op", ["max", "sum", "var"])
def test_reductions_of_all_permuted_dims_read_memory_as_it_lies(op: str) -> None:

    def turned(fd: Any, x: Any) -> Any:
        y = fd.ops.relu(fd.ops.permute(x, [3, 2, 0, 1]))
        return getattr(fd.ops, op)(y, [0, 1, 2, 3])

    def straight(fd: Any, x: Any) -> Any:
        return getattr(fd.ops, op)(fd.ops.relu(x), [0, 1, 2, 3])

    absent = [torch.empty(24, 32, 256, 256, device="meta")]
    times = [
        timed_kernels(lowered(body, absent).segmented, H200).seconds for body in (turned, straight)
    ]
    assert times[0] == pytest.approx(times[1], rel=0.02)
    check(turned, noise(4, 6, 8, 10), facts=NARROW)


def test_reductions_of_what_lies_in_two_orders_keep_the_order_of_dims() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.sum(fd.ops.add(fd.ops.permute(x, [1, 0]), y), [0, 1])

    given = [noise(6, 8), noise(8, 6)]
    recorded = record(body, given).fusion.ir
    fusion = concretize(recorded, signature(recorded, given, torch.device("cpu")))
    assert reduce_in_memory_order(fusion) is fusion
    check(body, *given, facts=NARROW)


def test_reductions_of_one_shape_stay_in_one_kernel() -> None:
    """One of them could be in memory order, and the other lies in two."""

    def body(fd: Any, x: Any, z: Any) -> Any:
        y = fd.ops.permute(x, [1, 0])
        return fd.ops.sum(y, [0, 1]), fd.ops.sum(fd.ops.mul(y, z), [0, 1])

    absent = [torch.empty(4096, 4096, device="meta")] * 2
    assert schedulers(lowered(body, absent)) == ["reduction", "reduction"]
    check(body, noise(6, 8), noise(8, 6), facts=NARROW)


def test_a_small_permuted_tensor_is_reduced_beside_what_is_computed_of_it() -> None:
    def body(fd: Any, x: Any, z: Any) -> Any:
        y = fd.ops.permute(x, [1, 0])
        return fd.ops.sum(y, [0, 1]), fd.ops.add(y, z)

    def straight(fd: Any, y: Any, z: Any) -> Any:
        return fd.ops.sum(y, [0, 1]), fd.ops.add(y, z)

    absent = [torch.empty(64, 256, device="meta"), torch.empty(256, 64, device="meta")]
    turned = timed_kernels(lowered(body, absent).segmented, H200).seconds
    assert turned < 1.05 * timed_kernels(lowered(straight, absent[1:] * 2).segmented, H200).seconds


def test_sums_of_many_slices_have_one_order() -> None:
    """Each sum has twice as many slices of its input as the one before it: 4096 in the end."""

    def body(fd: Any, x: Any) -> Any:
        length = 5100
        for step in (1 << k for k in range(12)):
            length -= step
            low = fd.ops.slice(x, [0, 0], [length, 512])
            x = fd.ops.add(low, fd.ops.slice(x, [step, 0], [length + step, 512]))
        return fd.ops.sum(fd.ops.permute(x, [1, 0]), [0, 1])

    given = [torch.empty(5100, 512)]
    recorded = record(body, given).fusion.ir
    fusion = concretize(recorded, signature(recorded, given, torch.device("cpu")))
    orders = common_orders(fusion)
    (operand,) = (node.args[0] for node in fusion.nodes if node.op == "sum")
    assert orders[operand] == (0, 1)
