"""scatter: a copy of a tensor with elements put where an index tensor says, in two kernels."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, again, copied, gpu, round_trip, same_outline
from tests.e2e.ops.library_calls import definition
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch
from tritonfuser.errors import ArgumentError, DefinitionError

D = DataType
INDICES = [torch.int64, torch.int32]
Record = Callable[..., Any]


def run(record: Record, inputs: Sequence[Any], dynamic: bool = True) -> list[torch.Tensor]:
    """The outputs; the printed definition gives the same, and the inputs stay as they are."""
    fd = definition(record, inputs, dynamic)
    given = copied(inputs)
    found = fd.run(given)
    round_trip(fd, inputs, found)
    for one, other in zip(given, inputs, strict=True):
        if isinstance(one, torch.Tensor):
            assert torch.equal(one, other)
    if all(x.device.type == "cpu" for x in inputs if isinstance(x, torch.Tensor)):
        as_on_gpu = Schedule(gpu()).run(fd, copied(inputs))
        assert as_on_gpu is not None
        for one, other in zip(as_on_gpu, found, strict=True):
            torch.testing.assert_close(one, other, equal_nan=True)
    return found


def run_where_places_meet(record: Record, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs where a place is named twice.

    On a GPU any of its elements may come out, in each run another, as in torch: two runs are not
    compared there.
    """
    if inputs[0].device.type == "cpu":
        return run(record, inputs)
    fd = definition(record, inputs)
    same_outline(fd)
    return fd.run(inputs)


def put(dim: int) -> Record:
    return lambda fd, x, index, src: fd.ops.scatter(x, index, src, dim)


def drawn(*shape: int, device: str = "cpu", seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + 7 * sum(shape))
    return torch.randn(shape, generator=generator).to(device)


def places(shape: Sequence[int], size: int, dim: int, device: str = "cpu") -> torch.Tensor:
    """Indices into a dim of ``size``, none twice in a line along it."""
    generator = torch.Generator().manual_seed(size)
    keys = torch.rand([*shape[:dim], size, *shape[dim + 1 :]], generator=generator)
    return keys.argsort(dim).narrow(dim, 0, shape[dim]).to(device)


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("index_dtype", INDICES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_elements_of_a_tensor(
    dim: int, index_dtype: torch.dtype, dynamic: bool, device: str
) -> None:
    """An index smaller than the tensor, and a source larger than the index."""
    x, src = drawn(6, 7, device=device), drawn(4, 5, device=device)
    index = places([3, 4], x.shape[dim], dim % 2, device).to(index_dtype)
    (found,) = run(put(dim), [x, index, src], dynamic)
    assert torch.equal(found, x.scatter(dim, index.long(), src))
    assert found.stride() == (7, 1)


@pytest.mark.parametrize(
    "shape", [(5,), (2, 3, 4), (1, 6), (6, 1), (1,), (1, 1, 1), (2, 1, 3, 1, 2)]
)
def test_ranks_and_dims_of_one(shape: tuple[int, ...], device: str) -> None:
    x, src = drawn(*shape, device=device), drawn(*shape, device=device, seed=1)
    for dim in range(len(shape)):
        index = places(shape, shape[dim], dim, device)
        (found,) = run(put(dim), [x, index, src])
        assert torch.equal(found, x.scatter(dim, index, src))


def test_0_dim_tensors(device: str) -> None:
    x, src = torch.tensor(1.0, device=device), torch.tensor(2.0, device=device)
    index = torch.tensor(0, device=device)
    (found,) = run(put(0), [x, index, src])
    assert torch.equal(found, src)
    (found,) = run(put(-1), [x, index, 3.0])
    assert found.item() == 3.0 and found.shape == ()


@pytest.mark.parametrize(("shape", "count"), [((0, 4), 0), ((3, 0), 0), ((3, 4), 0)])
def test_of_none(shape: tuple[int, int], count: int, device: str) -> None:
    """Without elements, or without places to put any."""
    x = drawn(*shape, device=device)
    index = torch.zeros(count, shape[1], dtype=torch.int64, device=device)
    (found,) = run(put(0), [x, index, index.float()])
    assert torch.equal(found, x)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("shape", [(0, 9), (9, 0), (0, 0)])
def test_an_index_of_none_fits_anything(shape: tuple[int, int], dynamic: bool) -> None:
    """As in torch: its other sizes are not looked at."""
    x, index = drawn(3, 4), torch.zeros(shape, dtype=torch.int64)
    for src in (drawn(*shape), drawn(2, 3), 5.0):
        fd = definition(put(0), [x, index, src], dynamic=dynamic)
        assert torch.equal(fd.run([x, index, src])[0], x)
        # Kept open, sizes refuse what does not fit after it, and take what does.
        if dynamic and not isinstance(src, float):
            with pytest.raises(DefinitionError, match="scatter: expected an index of at most"):
                fd.run([x, torch.zeros(1, 9, dtype=torch.int64), drawn(1, 9)])
            one = torch.zeros(1, 4, dtype=torch.int64), drawn(1, 4)
            assert torch.equal(fd.run([x, *one])[0], torch.scatter(x, 0, *one))


@pytest.mark.gpu
@pytest.mark.parametrize("index_dtype", INDICES, ids=str)
def test_places_outside_are_left_out(index_dtype: torch.dtype) -> None:
    """Nothing is written there, before the tensor or behind it; on a CPU they raise."""
    room = torch.zeros(7, device="cuda")
    x, src = room[2:5], drawn(5, device="cuda")
    index = torch.tensor([-1, 3, 1, 2**31 - 1, -(2**31)], dtype=index_dtype, device="cuda")
    (found,) = definition(put(0), [x, index, src]).run([x, index, src])
    assert torch.equal(found, torch.stack([x[0], src[2], x[2]]))
    assert not room.any()


def test_a_place_named_twice(device: str) -> None:
    """One of the elements; interpreted, the last."""
    x, src = drawn(4, 3, device=device), drawn(9, 3, device=device)
    index = torch.tensor([[0, 1, 1]] * 9, device=device)
    (found,) = run_where_places_meet(put(0), [x, index, src])
    for place in ((0, 0), (1, 1), (1, 2)):
        assert found[place] in src[:, place[1]]
    untouched = torch.ones(4, 3, dtype=torch.bool)
    untouched[0, 0] = untouched[1, 1] = untouched[1, 2] = False
    assert torch.equal(found[untouched], x[untouched])
    if device == "cpu":
        assert torch.equal(found[1, 1:], src[8, 1:])


NUMBERS = [
    (torch.float32, 2.5),
    (torch.float64, 0.1),
    (torch.float16, 1e-3),
    (torch.bfloat16, -7.1),
    (torch.int64, 5),
    (torch.int32, -2),
    (torch.bool, True),
    (torch.float32, 3),
    (torch.complex64, 1.5 - 2j),
    (torch.complex128, 2.5),
]


@pytest.mark.parametrize(("dtype", "number"), NUMBERS, ids=str)
def test_a_number(dtype: torch.dtype, number: Any, device: str) -> None:
    """Given to the run, written into the definition, and computed from what is given."""
    x = (drawn(5, 6, device=device) * 4).to(dtype)
    index = places([5, 2], 6, 1, device)
    wanted = x.scatter(1, index, number)

    def fixed_number(fd: Any, x: Any, index: Any, given: Any) -> list[Any]:
        o = fd.ops
        constant = fd.define_scalar(number, dtype=from_torch(dtype))
        computed = o.logical_not(given) if dtype is torch.bool else o.mul(given, 1)
        return [o.scatter(x, index, s, 1) for s in (given, constant, computed)]

    given, constant, computed = run(fixed_number, [x, index, number])
    assert torch.equal(given, wanted) and given.dtype is dtype
    assert torch.equal(constant, wanted)
    assert torch.equal(computed, x.scatter(1, index, not number if dtype is torch.bool else number))


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: torch.dtype, device: str) -> None:
    x, src = ((drawn(5, 8, device=device, seed=s) * 3).to(dtype) for s in (0, 1))
    index = places([5, 3], 8, 1, device)
    (found,) = run(put(1), [x, index, src])
    assert torch.equal(found, x.scatter(1, index, src))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers(dtype: torch.dtype, device: str) -> None:
    x = torch.complex(drawn(4, 5), drawn(4, 5, seed=1)).to(dtype).to(device)
    src = torch.complex(drawn(6, 5, seed=2), drawn(6, 5, seed=3)).to(dtype).to(device)
    index = places([3, 5], 4, 0, device)
    (found,) = run(put(0), [x, index, src])
    assert torch.equal(found, x.scatter(0, index, src))
    (found,) = run(lambda fd, *xs: fd.ops.scatter(*xs, 0), [x, index[:0], src])
    assert torch.equal(found, x)


def test_both_parts_are_of_one_element(device: str) -> None:
    """Where a place is named twice no real part comes with another's imaginary part."""
    numbers = torch.arange(1.0, 65.0 if device == "cpu" else 2.0**18 + 1)  # by many programs
    src = torch.complex(numbers, -numbers).to(device)
    index = torch.zeros(len(src), dtype=torch.int64, device=device)
    x = torch.zeros(3, dtype=torch.complex64, device=device)
    (found,) = run_where_places_meet(put(0), [x, index, src])
    assert found[0].real == -found[0].imag and found[0] in src
    assert not found[1:].any()
    # Which of the elements it is is decided once: one number is put in place, and not two.
    (putting,) = (
        kernel
        for kernel in definition(put(0), [x, index, src]).kernels([x, index, src])
        if "scatter" in kernel.name
    )
    assert putting.text.count("tl.store(") == 1


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda x: x.t().contiguous().t(),
    "strided": lambda x: torch.stack([x, x], -1).flatten(-2)[:, ::2],
    "stretched": lambda x: x[:1].expand(x.shape),
    "misaligned": lambda x: torch.cat([x[0, :1], x.flatten()])[1:].view(x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    """Of the tensor, of the index and of the source."""
    lay = LAYOUTS[layout]
    x, src = lay(drawn(5, 6, device=device)), lay(drawn(4, 6, device=device))
    index = lay(places([4, 6], 5, 0, device))
    (found,) = run(put(0), [x, index, src])
    assert torch.equal(found, x.scatter(0, index, src))
    number = definition(lambda fd, x, i, s: fd.ops.scatter(x, i, s, 0), [x, index, 1.5])
    assert torch.equal(number.run([x, index, 1.5])[0], x.scatter(0, index, 1.5))


def test_other_sizes_of_one_definition(device: str) -> None:
    fd = definition(put(1), [drawn(3, 4), places([3, 2], 4, 1), drawn(3, 2)])
    for rows, width, count in ((3, 4, 2), (1, 9, 9), (8, 33, 1), (2, 2, 1)):
        x, src = drawn(rows, width, device=device), drawn(rows, count, device=device)
        index = places([rows, count], width, 1, device)
        assert torch.equal(fd.run([x, index, src])[0], x.scatter(1, index, src))


def test_other_tile_sizes() -> None:
    """The copy and what is put into it, over many programs."""
    x, src = drawn(9, 40), drawn(9, 21)
    index = places([9, 21], 40, 1)
    fd = definition(put(1), [x, index, src])
    for seed in range(4):
        found = Schedule(gpu(), random.Random(seed)).run(fd, [x, index, src])
        assert found is None or torch.equal(found[0], x.scatter(1, index, src))


# --- with other ops ------------------------------------------------------------------------------


def test_computed_operands_and_a_reduction_behind(device: str) -> None:
    """What makes the operands runs in the two kernels; the sum reads the result from memory."""

    def record(fd: Any, x: Any, index: Any, src: Any) -> Any:
        o = fd.ops
        turned = o.sub(o.sub(8, index), 1)
        made = o.scatter(o.mul(x, 2.0), turned, o.exp(src), 1)
        return o.sum(made, [1]), made

    x, src = drawn(5, 8, device=device), drawn(5, 3, device=device)
    index = places([5, 3], 8, 1, device)
    total, made = run(record, [x, index, src])
    wanted = (x * 2).scatter(1, 7 - index, src.exp())
    torch.testing.assert_close(made, wanted)
    torch.testing.assert_close(total, wanted.sum(1))
    kernels = definition(record, [x, index, src]).segments([x, index, src])
    assert [s.scheduler for s in kernels.segments] == ["pointwise", "pointwise", "reduction"]


def test_of_reductions(device: str) -> None:
    """A tensor that is a sum, a source and an index that are the result of one."""

    def record(fd: Any, x: Any, src: Any) -> Any:
        o = fd.ops
        row = o.sum(x, [0])
        index = o.cast(o.max(src, [1]), D.Int)
        return o.scatter(row, index, o.sum(src, [1]), 0)

    x, src = drawn(5, 8, device=device), torch.tensor([[3.0, -1.0], [0.0, 6.5]], device=device)
    (found,) = run(record, [x, src])
    torch.testing.assert_close(
        found, x.sum(0).scatter(0, torch.tensor([3, 6], device=device), src.sum(1))
    )


def test_of_a_normalization_that_is_read_again(device: str) -> None:
    """The source is put in place by the kernel that normalizes it, in one pass."""

    def record(fd: Any, x: Any, index: Any, src: Any) -> Any:
        o = fd.ops
        powers = o.exp(o.sub(src, o.max(src, [1], keepdim=True)))
        soft = o.div(powers, o.sum(powers, [1], keepdim=True))
        return o.scatter(x, index, soft, 0), soft

    x, src = drawn(9, 40, device=device), drawn(6, 40, device=device)
    index = places([6, 40], 9, 0, device)
    found, soft = run(record, [x, index, src])
    torch.testing.assert_close(soft, src.softmax(1))
    torch.testing.assert_close(found, x.scatter(0, index, src.softmax(1)))
    cut = definition(record, [x, index, src]).segments([x, index, src])
    assert len(cut.segments) == 2


def test_one_after_another(device: str) -> None:
    """Into the result of one; with what the result holds; and both read by a gather."""

    def record(fd: Any, x: Any, i: Any, j: Any) -> Any:
        o = fd.ops
        first = o.scatter(x, i, o.neg(o.gather(x, i, 1)), 1)
        second = o.scatter(first, j, o.mul(o.gather(first, j, 1), 10.0), 1)
        return second, o.gather(second, i, 1), first

    x = drawn(4, 9, device=device)
    i, j = places([4, 5], 9, 1, device), places([4, 4], 9, 1, device).flip(0)
    second, picked, first = run(record, [x, i, j])
    one = x.scatter(1, i, -x.gather(1, i))
    two = one.scatter(1, j, one.gather(1, j) * 10)
    assert torch.equal(first, one)
    assert torch.equal(second, two)
    assert torch.equal(picked, two.gather(1, i))


def test_two_at_the_same_places_share_their_kernels(device: str) -> None:
    """Keys and values of a cache: one kernel copies both, one puts both in place."""
    keys, values = drawn(2, 8, 4, device=device), drawn(2, 8, 4, device=device, seed=1)
    index = places([2, 3, 4], 8, 1, device)
    new = [drawn(2, 3, 4, device=device, seed=s) for s in (2, 3)]

    def record(fd: Any, k: Any, v: Any, i: Any, a: Any, b: Any) -> Any:
        return fd.ops.scatter(k, i, a, 1), fd.ops.scatter(v, i, b, 1)

    inputs = [keys, values, index, *new]
    found = run(record, inputs)
    assert torch.equal(found[0], keys.scatter(1, index, new[0]))
    assert torch.equal(found[1], values.scatter(1, index, new[1]))
    assert len(definition(record, inputs).segments(inputs).segments) == 2


def test_views_of_the_result(device: str) -> None:
    """They lie in its memory."""
    x, index, src = drawn(4, 6, device=device), places([4, 2], 6, 1, device), drawn(4, 2)

    def record(fd: Any, x: Any, i: Any, s: Any) -> Any:
        made = fd.ops.scatter(x, i, s, 1)
        return made, fd.ops.permute(made, [1, 0]), fd.ops.reshape(made, [2, 12])

    inputs = [x, index, src.to(device)]
    whole, turned, flat = run(record, inputs)
    assert whole.data_ptr() == turned.data_ptr() == flat.data_ptr()
    wanted = x.scatter(1, index, inputs[2])
    assert torch.equal(turned, wanted.t())
    assert torch.equal(flat, wanted.reshape(2, 12))


def test_written_back_into_the_input(device: str) -> None:
    """Other reads of the input see what was there before."""
    x, index, src = drawn(4, 6, device=device), places([4, 2], 6, 1, device), drawn(4, 2)
    src = src.to(device)
    with FusionDefinition() as fd:
        t, i, s = (fd.from_pytorch(a) for a in (x, index, src))
        made = fd.ops.scatter(t, i, s, 1)
        fd.add_output(made, t)
        fd.add_output(fd.ops.sum(t, [1]))
        fd.add_output(made)
    old = x.clone()
    total, shown = fd.run([x, index, src])
    assert torch.equal(x, old.scatter(1, index, src))
    torch.testing.assert_close(total, old.sum(1))
    assert shown.data_ptr() == x.data_ptr()


# --- text and errors -----------------------------------------------------------------------------


def test_the_printed_definition() -> None:
    """A number that is written into the definition stays a scalar."""
    x, index = drawn(4, 6), places([4, 2], 6, 1)
    fd = definition(lambda fd, x, i: fd.ops.scatter(x, i, fd.define_scalar(2.0), -1), [x, index])
    assert "k0 = fd.define_scalar(2.00000, dtype=DataType.Double)" in repr(fd)
    assert "tv2 = fd.ops.scatter(tv0, tv1, k0, dim=1)" in repr(fd)
    assert repr(again(fd)) == repr(fd)


def test_a_python_number_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"scatter\(\): .*'src' must be TensorView \| Val"):
        definition(lambda fd, x, i: fd.ops.scatter(x, i, 2.0, 0), [drawn(4), places([2], 4, 0)])


@pytest.mark.parametrize(
    ("shapes", "dim", "text"),
    [
        (((4, 6), (4,), (4, 6)), 0, "an index of rank 2 as the tensor's, got 1"),
        (((4, 6), (4, 2), (4,)), 0, "a src of rank 2 as the tensor's, got 1"),
        (((4, 6), (4, 7), (4, 7)), 0, "an index of at most the tensor's 6 in dim 1, got 7"),
        (((4, 6), (3, 2), (2, 2)), 0, "an index of at most src's 2 in dim 0, got 3"),
        (((4, 6), (4, 2), (4, 2)), 2, "a dim from -2 to 1"),
    ],
)
def test_shapes_that_do_not_fit(shapes: Any, dim: int, text: str) -> None:
    """Known when it is recorded, or when it is run."""
    x, src = drawn(*shapes[0]), drawn(*shapes[2])
    index = torch.zeros(shapes[1], dtype=torch.int64)
    with pytest.raises(DefinitionError, match=f"scatter: expected {re.escape(text)}"):
        definition(put(dim), [x, index, src], dynamic=False).run([x, index, src])
    with pytest.raises(DefinitionError, match=f"scatter: expected {re.escape(text)}"):
        definition(put(dim), [x, index, src]).run([x, index, src])


def test_dtypes_that_do_not_fit() -> None:
    x, index = drawn(4), places([2], 4, 0)
    for inputs, text in (
        ([x, x > 0, x], "an Int or Int32 tensor for 'index', got DataType.Bool"),
        ([x, index, x.double()], "a src of DataType.Float, as the tensor, got DataType.Double"),
        ([x, index, 1j], "a src that DataType.Float holds, got DataType.ComplexDouble"),
    ):
        with pytest.raises(DefinitionError, match=f"scatter: expected {re.escape(text)}"):
            definition(put(0), inputs)


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e39, 2**31, -(2**31) - 1])
def test_numbers_that_integers_do_not_hold(number: float) -> None:
    """As of torch, which refuses them."""
    x, index = torch.zeros(4, dtype=torch.int32), places([2], 4, 0)
    with pytest.raises(DefinitionError, match=r"expected a src that DataType\.Int32 holds"):
        definition(lambda fd, x, i: fd.ops.scatter(x, i, fd.define_scalar(number), 0), [x, index])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "gfx942"])
def test_compiled(arch: str) -> None:
    """Real code; whatever lies along memory is moved sixteen bytes at a time."""
    x, src = torch.empty(32768, 256, device="meta"), torch.empty(32768, 256, device="meta")
    index = torch.empty(32768, 256, dtype=torch.int64, device="meta")
    copy, put_in = definition(put(1), [x, index, src]).compile_for(arch, [x, index, src])
    assert put_in.name == "s1_pointwise_scatter"
    if arch != "gfx942":
        assert copy.max_load_bytes == copy.max_store_bytes == put_in.max_load_bytes == 16
    assert (copy.spill_bytes, put_in.spill_bytes) == (0, 0)
