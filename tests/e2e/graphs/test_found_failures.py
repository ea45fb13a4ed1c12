"""Small definitions that once went wrong: what random ones found, made small."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
import torch

from tests.e2e.checking import Schedule, again, gpu, round_trip
from tests.e2e.graphs.grown_checks import check
from tests.e2e.graphs.resized import expectations
from tests.e2e.graphs.test_random_graphs import KINDS
from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import DefinitionError
from tritonfuser.frontend.inspect.oracle import reference
from tritonfuser.ops.registry import OPS

D = DataType


def test_ops_that_no_output_needs_may_not_fit(device: str) -> None:
    """They are not run, so nothing is wrong; the printed definition does not have them."""
    x, y = torch.ones(4, 3, device=device), torch.ones(5, 3, device=device)
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor(shape=[-1, -1], contiguity=True) for _ in range(2))
        fd.ops.add(a, b)
        fd.add_output(fd.ops.mul(a, 2.0))
    found = fd.run([x, y])
    assert torch.equal(found[0], x * 2)
    round_trip(fd, [x, y], found)


@pytest.mark.parametrize(("given", "into"), [(1, 5), (5, 1), (4, 5)])
def test_what_is_written_into_an_input_has_its_shape(given: int, into: int, device: str) -> None:
    x, y = torch.ones(given, device=device), torch.ones(into, device=device)
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor(shape=[-1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.mul(a, 2.0), b)
    with pytest.raises(DefinitionError, match=rf"add_output: .*\[{given}\].*\[{into}\]"):
        fd.run([x, y])
    assert torch.equal(y.cpu(), torch.ones(into))
    fd.run([y, y])
    assert torch.equal(y.cpu(), torch.full((into,), 2.0))


def test_an_expanded_input_cannot_be_written_into(device: str) -> None:
    """Its elements are one: nothing tells which of the numbers it should be."""
    x = torch.ones(3, device=device)
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.add(a, 1.0), a)
    with pytest.raises(DefinitionError, match=r"add_output: .*expanded"):
        fd.run([x[:1].expand(3)])
    fd.run([x])
    assert x.tolist() == [2.0] * 3


def test_nothing_gathered_of_nothing(device: str) -> None:
    """As torch has it: an index without elements fits every tensor."""
    x, index = torch.ones(0, 4, device=device), torch.ones(5, 0, dtype=torch.int64, device=device)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.gather(fd.from_pytorch(x), fd.from_pytorch(index), 1))
    assert fd.run([x, index])[0].shape == x.gather(1, index).shape == (5, 0)


def test_a_0_dim_part_of_a_complex_number(device: str) -> None:
    """It is a tensor like the other one, for the reference too."""
    x = torch.arange(6.0, device=device)
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        fd.add_output(fd.ops.complex(a, fd.ops.sum(a, [0])))
    (found,) = fd.validate([x])
    assert torch.equal(found, torch.complex(x, x.sum().expand(6)))


def test_a_size_of_one_in_a_dim_that_is_not_contiguous(device: str) -> None:
    """The dim before it is contiguous to it, and it to nothing."""
    x = torch.arange(64.0, device=device).reshape(4, 2, 8)
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1, -1, -1], contiguity=[True, False, True])
        fd.add_output(fd.ops.mul(a, 2.0))
    for size in (2, 1):
        room = torch.zeros(4, size, 9, device=device)
        part = room[:, :, 1:].copy_(x[:, :size])
        assert torch.equal(fd.run([part])[0], part * 2)
    with pytest.raises(RuntimeError, match="Stride mismatch"):
        fd.run([torch.zeros(4, 3, 8, device=device)[:, :2]])


def test_a_scatter_beside_sums_in_two_steps() -> None:
    """The kernel that copies makes nothing that is not the other kernel's too."""
    x, y = torch.arange(64.0).reshape(8, 8), torch.ones(64, 33)
    index = torch.arange(64).reshape(8, 8) % 8
    with FusionDefinition() as fd:
        a, b, i = fd.from_pytorch(x), fd.from_pytorch(y), fd.from_pytorch(index)
        fd.add_output(fd.ops.scatter(a, i, a, 0))
        fd.add_output(fd.ops.sum(b, [0]))
        fd.add_output(fd.ops.sub(b, fd.ops.sum(b, [1], keepdim=True)))
    for multiprocessors in (4, 132):
        found = Schedule(gpu(multiprocessors)).run(fd, [x, y, index])
        assert found is not None
        assert torch.equal(found[0], x.scatter(0, index, x))
        assert torch.equal(found[1], y.sum(0))
        assert torch.equal(found[2], y - 33)


def unsigned(*values: int, device: str = "cpu") -> torch.Tensor:
    return torch.tensor(values, dtype=torch.uint64).to(device)


def test_bounds_of_unsigned_numbers(device: str) -> None:
    """The highest of them is no int64."""
    x = unsigned(2**64 - 1, 2**63, 7, 2**63 + 1, device=device)
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        top = fd.define_scalar(2**64 - 2, dtype=D.UInt64)
        outs = [fd.ops.min(a, [0]), fd.ops.max(a, [0]), fd.ops.cummin(a, 0), fd.ops.clamp(a)]
        outs += [fd.ops.minimum(a, top), fd.ops.full([2], top, D.UInt64), fd.ops.add(a, top)]
        for out in outs:
            fd.add_output(out)
    found = fd.run([x])
    wanted = [7, 2**64 - 1, [2**64 - 1, 2**63, 7, 7], x.tolist()]
    wanted += [[2**64 - 2, 2**63, 7, 2**63 + 1], [2**64 - 2] * 2]
    wanted.append([2**64 - 3, 2**63 - 2, 5, 2**63 - 1])
    assert [y.tolist() for y in found] == wanted
    assert all(y.dtype is torch.uint64 for y in found)
    round_trip(fd, [x], found)


def test_arithmetic_of_unsigned_numbers(device: str) -> None:
    """No sign, and all bits set where a number is divided by zero."""
    many = 2**64 - 1
    x, y = unsigned(many, 2**63, 7, 5, device=device), unsigned(2, many, 0, 3, device=device)
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        names = ("div", "mod", "fmod", "remainder", "gt", "pow", "sub", "gcd")
        for out in (*(getattr(fd.ops, name)(a, b) for name in names), fd.ops.bitwise_not(a)):
            fd.add_output(out)
    found = dict(zip((*names, "not"), [z.tolist() for z in fd.run([x, y])], strict=True))
    assert found["div"] == [2**63 - 1, 0, many, 1]
    assert found["mod"] == found["fmod"] == found["remainder"] == [1, 2**63, many, 2]
    assert found["gt"] == [True, False, True, True]
    assert found["pow"] == [1, 0, 1, 125]
    assert found["sub"] == [2**64 - 3, 2**63 + 1, 7, 2]
    assert found["gcd"] == [1, 1, 7, 1]
    assert found["not"] == [0, 2**63 - 1, 2**64 - 8, 2**64 - 6]
    power = fd_power(unsigned(many, 3, device=device), unsigned(many, 2**63 + 1, device=device))
    assert power == [pow(many, many, 2**64), pow(3, 2**63 + 1, 2**64)]


def fd_power(x: torch.Tensor, y: torch.Tensor) -> list[int]:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.pow(fd.from_pytorch(x), fd.from_pytorch(y)))
    found: list[int] = fd.run([x, y])[0].tolist()
    return found


@pytest.mark.parametrize("name", ["log", "rsqrt", "atan2", "pow", "lgamma", "exp"])
def test_numbers_close_to_zero_are_not_taken_for_it(name: str) -> None:
    """Nothing flushes what it reads to zero: a logarithm of 1e-40 is finite."""
    x = torch.ones(64)
    with FusionDefinition() as fd:
        operands = [fd.from_pytorch(x) for _ in OPS[name].params]
        fd.add_output(getattr(fd.ops, name)(*operands))
    (kernel,) = fd.compile_for("sm_90", [x] * len(OPS[name].params))
    flushing = set(re.findall(r"[a-z0-9.]+\.ftz\.[a-z0-9.]+", kernel.asm["ptx"]))
    assert flushing <= {"ex2.approx.ftz.f32", "rcp.approx.ftz.f32"}, flushing


@pytest.mark.parametrize(("dtype", "number"), [(D.Int, 3), (D.Half, 0.3), (D.Bool, True)])
def test_scalars_that_an_op_keeps_in_their_dtype(dtype: DataType, number: float) -> None:
    """The reference rounds and truncates them as the kernel does."""
    x = torch.ones(4)
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        fd.add_output(fd.ops.mul(a, fd.ops.silu(fd.define_scalar(None, dtype=dtype))))
    (found,) = fd.run([x, number])
    exact = torch.nn.functional.silu(torch.tensor(number, dtype=dtype.info.torch).float())
    assert torch.equal(found, exact.to(dtype.info.torch).float().expand(4))
    for double in (False, True):
        (wanted,) = reference(fd.fusion, [x, number], double)
        assert torch.equal(wanted.float(), found)


def test_kernels_do_not_depend_on_the_order_of_recording() -> None:
    """Of two results that are as large, the one of the first output says how loops run."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(7, 33, generator=generator)
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        turned = fd.ops.stride_order(fd.ops.mul(a, 1.5), [0, 1])
        total = fd.ops.sum(fd.ops.exp(a), [0, 1], keepdim=True)
        fd.add_output(fd.ops.mul(a, total))
        fd.add_output(turned)
    loops = [
        [axis.extent for axis in definition.segments([x]).segments[0].reduced]
        for definition in (fd, again(fd))
    ]
    assert loops == [[7, 33], [7, 33]]
    round_trip(fd, [x], fd.run([x]))


@pytest.mark.parametrize("size", [1, 5])
def test_a_dim_that_turns_out_to_be_one_is_stretched(size: int, device: str) -> None:
    """To a size from elsewhere, which may be its own."""
    x, y = torch.arange(float(size), device=device), torch.ones(5, device=device)
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor(shape=[-1], contiguity=True) for _ in range(2))
        n = fd.define_scalar(None, dtype=D.Int)
        wide = fd.ops.broadcast_in_dim(a, [1, b.size(0)], [1])
        outs = [wide, fd.ops.broadcast_in_dim(a, [n, 1], [0]), fd.ops.expand(a, [n])]
        outs += [fd.ops.sum(fd.ops.expand(a, [b.size(0)]), [0]), fd.ops.sum(wide, [1])]
        for out in outs:
            fd.add_output(fd.ops.mul(out, 2.0))
    found = fd.run([x, y, 5])
    whole = 2 * x.expand(5)
    wanted = [whole.unsqueeze(0), whole.unsqueeze(1), whole, whole.sum(), whole.sum(0, True)]
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert torch.equal(one, other)
    round_trip(fd, [x, y, 5], found)


def test_a_variance_of_squares_that_no_float_holds(device: str) -> None:
    """It is infinite. Torch's of a CPU is not, which adds up in float64: no measure of a kernel."""
    signs = torch.tensor([[1.0, -1.0, 1.0, -1.0]], device=device)
    with FusionDefinition() as fd:
        var, mean = fd.ops.var_mean(fd.from_pytorch(signs), [1])
        fd.add_output(fd.ops.mul(var, mean))
        fd.add_output(var)
    infinite, held = signs * 2.0**63, (signs, signs * 2.0**60, signs * 2.0**66)
    assert [x.tolist() for x in fd.run([infinite])][1] == [math.inf]
    assert expectations(fd, [infinite]) is None
    assert all(expectations(fd, [x]) is not None for x in held)


def test_operands_of_a_cat_that_lie_far_apart(tmp_path: Path) -> None:
    """The third one is subtracted 3.2e9 elements from an address, as a number without a sign."""
    stride = 230_000_000
    sparse = torch.from_file(
        str(tmp_path / "sparse"), shared=True, size=6 * stride + 1, dtype=torch.bool
    )
    x = sparse.as_strided([7], [stride])
    x.copy_(torch.tensor([True, False, True, True, False, False, True]))
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[7], contiguity=False, dtype=D.Bool)
        fd.add_output(fd.ops.logical_not(fd.ops.cat([a, a, a], 0)))
    assert torch.equal(fd.run([x])[0], torch.cat([x, x, x]).logical_not())


FOUND = {
    "all 1442": "random numbers at indices read at run time were drawn for neighbours",
    "eights 21": "the byte of a float8 maximum was taken for the number in a walk",
    "eights 5017": "a load shared by neighbours had a guard that was not the same for all",
    "products 90": "a maximum over the rows of a walk was taken for one along them",
    "reductions 90": "a reduction was split into one along rows and one along nothing",
    "small dims 17": "the same, over dims of one",
    "small dims 28": "as products 90, of few elements",
}
"""Seeds of random definitions, and what was wrong with their kernels."""


@pytest.mark.parametrize("seed", FOUND)
def test_random_definitions_that_went_wrong(seed: str) -> None:
    rng = random.Random(seed)
    check(KINDS[seed.rsplit(" ", 1)[0]].grow(rng, "cpu"), rng)
