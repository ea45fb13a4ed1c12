"""What the reference of validate computes: random numbers, indices, numbers of the dtype."""

from __future__ import annotations

import math
import threading

import pytest
import torch

from tests.e2e.test_index_bounds import OPS, X, definition
from tests.frontend.validation.outputs import BF16, FLOAT, giving
from tritonfuser import DataType, FusionDefinition, ValidationError
from tritonfuser.errors import IndexRangeError
from tritonfuser.frontend.inspect.expectation import Check, expected


@pytest.mark.parametrize("dtype", [FLOAT, DataType.Double, BF16])
def test_random_numbers_are_drawn_again(monkeypatch, dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True, dtype=dtype)
        noise = fd.ops.normal(0.0, 1.0, [1000], dtype=dtype)
        fd.add_output(fd.ops.add(x, fd.ops.uniform(-1.0, 2.0, [1000], dtype=dtype)))
        fd.add_output(fd.ops.mul(noise, fd.ops.rand_like(x)))
    x = torch.zeros(1000, dtype=dtype.info.torch)
    state = torch.get_rng_state()
    outputs = fd.validate([x])
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    assert all(torch.equal(a, b) for a, b in zip(fd.run([x]), outputs, strict=True))
    assert torch.equal(torch.get_rng_state(), after)
    assert not any(row.is_random for row in fd.audit([x]).rows)
    run, other = fd.run, fd.run([x])[1]
    monkeypatch.setattr(fd, "run", lambda inputs, **kwargs: [run(inputs, **kwargs)[0], other])
    with pytest.raises(ValidationError):
        fd.validate([x])


@pytest.mark.parametrize("count", [0, 3])
def test_random_numbers_that_no_element_needs_are_not_counted(count):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.mul(x, fd.ops.uniform(0.0, 1.0, [1])))
        fd.add_output(fd.ops.normal(0.0, 1.0, [5]))
        column = fd.ops.broadcast(x, [True, False])
        fd.add_output(fd.ops.prod(fd.ops.rand_like(column), dims=[1]))
        fd.add_output(fd.ops.randn_like(column))
        fd.add_output(fd.ops.uniform(2.0, 3.0, [4]))
    fd.validate([torch.ones(count)])


@pytest.mark.parametrize("how", ["audit", "validate"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("op", OPS)
def test_an_index_outside_raises(monkeypatch, op, dtype, how):
    """Of a kernel on a GPU nothing may be heard of it, so the reference says so."""
    record, shape, size = OPS[op]
    right, *wrong_ones = (
        shape(torch.tensor([0, wrong, 2], dtype=dtype)).contiguous()
        for wrong in (1, size, 1000, -size - 1, 2**31 - 1)
    )
    fd = definition(record, X, right)
    giving(fd, monkeypatch, *fd.run([X, right]))
    assert getattr(fd, how)([X, right])
    for wrong in wrong_ones:
        text = f"{op}: index -?\\d+ is out of range for a dim of {size} elements"
        with pytest.raises(IndexRangeError, match=text) as error:
            getattr(fd, how)([X, wrong])
        assert "test_index_bounds.py" in str(error.value)
        assert isinstance(error.value, IndexError)


def test_a_scalar_index_outside_raises(monkeypatch):
    with FusionDefinition() as fd:
        x, place = fd.from_pytorch(X), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.select(x, place, 0))
    giving(fd, monkeypatch, X[2])
    assert fd.audit([X, 2]).ok and fd.audit([X, -1]).ok
    for wrong in (3, -4):
        with pytest.raises(IndexRangeError, match=f"select: index {wrong} is out of range"):
            fd.audit([X, wrong])


def test_integers_that_were_summed_can_be_scattered():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Int)
        index = fd.define_tensor([-1], contiguity=True, dtype=DataType.Int)
        total = fd.ops.sum(x, [1])
        fd.add_output(fd.ops.scatter(total, index, fd.ops.max(x, [0]), 0))
    assert fd.audit([torch.arange(16).reshape(4, 4), torch.tensor([2, 0])]).ok


def test_an_input_that_was_written_into_is_returned_as_it_is_then():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(x)
        fd.add_output(fd.ops.add(x, 1.0), x)
        fd.add_output(fd.ops.permute(x, [1, 0]))
    found, turned = fd.validate([torch.zeros(2, 3)])
    assert torch.equal(found, torch.ones(2, 3)) and torch.equal(turned, torch.zeros(3, 2))


def test_ops_that_torch_has_no_function_for_have_no_reference():
    x = torch.tensor([3, 2**63 + 5], dtype=torch.uint64)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.relu(fd.from_pytorch(x)))
    with pytest.raises(NotImplementedError, match="relu: there is no reference") as error:
        fd.validate([x])
    assert "fd.ops.relu(fd.from_pytorch(x))" in str(error.value)


@pytest.mark.parametrize("as_constant", [False, True])
def test_numbers_that_only_unsigned_integers_hold(as_constant):
    """Philox seeds are such."""
    x, seed = torch.ones(4), 2**63 + 2**40
    with FusionDefinition() as fd:
        given = fd.from_pytorch(x)
        number = fd.define_scalar(seed if as_constant else None, dtype=DataType.UInt64)
        fd.add_output(fd.ops.mul(given, number))
        fd.add_output(fd.ops.full([2], number, DataType.UInt64))
        fd.add_output(fd.ops.uniform(0.0, 1.0, [9], rng_seed=number, rng_offset=0))
    product, filled, _ = fd.validate([x] if as_constant else [x, seed])
    assert product.tolist() == [float(seed)] * 4 and filled.tolist() == [seed] * 2


def test_numbers_of_a_run_are_rounded_to_their_dtype():
    """5e-324 is 0 as a Float: a reference or a bound that takes it as it is counts it as true."""
    with FusionDefinition() as fd:
        x, number = fd.define_tensor([-1, -1]), fd.define_scalar(FLOAT)
        place = fd.ops.cast(fd.ops.cast(number, DataType.Bool), DataType.Int)
        index = fd.ops.broadcast(fd.ops.iota(1, place, 1), [False, True])
        fd.add_output(fd.ops.gather(x, index, 0))
    fd.validate([torch.ones(1, 3), 5e-324])


@pytest.mark.parametrize(
    "dtype, number, given",
    [
        (DataType.Half, DataType.Double, 1e19),
        (BF16, DataType.Double, -1e300),
        (DataType.Int32, DataType.Int, 2**62 + 5),
        (DataType.UInt64, DataType.Int, -1),
        (DataType.Float8_e4m3fn, DataType.Double, 1e5),
    ],
)
def test_a_tensor_is_filled_with_a_number_that_its_dtype_does_not_hold(dtype, number, given):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([2, 3], fd.define_scalar(number), dtype))
    fd.validate([given])


@pytest.mark.parametrize("dtype", [DataType.Float, DataType.Double])
def test_the_next_number_is_that_of_the_dtype(dtype):
    """In float64 the one before infinity is no Float."""
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1], dtype=dtype) for _ in "xy")
        near = fd.ops.nextafter(x, y)
        fd.add_output(near)
        fd.add_output(fd.ops.sub(near, x))
    given = [[math.inf, -math.inf, 0.0, 1.0, 3.0], [0.0, 0.0, 1.0, math.inf, 3.0]]
    inputs = [torch.tensor(row, dtype=dtype.info.torch) for row in given]
    fd.validate(inputs)
    wide = expected(fd.fusion.ir, inputs, Check()).wide.outputs
    assert torch.equal(wide[0], torch.nextafter(*inputs).double())
    assert torch.equal(wide[1], (torch.nextafter(*inputs) - inputs[0]).double())


def test_numbers_that_other_threads_draw_are_none_of_the_runs():
    """The reference draws what the run drew, whatever the generator has been used for since."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.uniform(0.0, 1.0, [3, 4], dtype=DataType.Float))
    fd.run([])
    ended = threading.Event()

    def draw():
        while not ended.is_set():
            torch.rand(3)

    other = threading.Thread(target=draw)
    other.start()
    try:
        found = {tuple(fd.validate([])[0].flatten().tolist()) for _ in range(40)}
    finally:
        ended.set()
        other.join()
    assert len(found) == 40
