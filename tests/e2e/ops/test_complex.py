"""Complex numbers: every op that takes them, against torch in complex128."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.e2e.checking import copied, round_trip
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import Category
from tritonfuser.errors import DefinitionError, TritonFuserError
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.registry import OPS

D = DataType
SINGLE, DOUBLE = torch.complex64, torch.complex128
LIMIT = {SINGLE: 2e-5, DOUBLE: 1e-12, torch.float32: 2e-5, torch.float64: 1e-12}
Record = Callable[..., Any]


def numbers(
    *shape: int, dtype: torch.dtype = DOUBLE, device: str = "cpu", seed: int = 0
) -> torch.Tensor:
    """Random numbers around 0, up to 2 in size."""
    generator = torch.Generator().manual_seed(seed + 31 * len(shape))
    found = torch.randn(shape, dtype=DOUBLE, generator=generator) * 1.3
    return (found if dtype.is_complex else found.real).to(dtype).to(device)


def definition(record: Record, inputs: Sequence[Any]) -> FusionDefinition:
    """``record(fd, *handles)`` gives the outputs; numbers become scalar inputs."""
    with FusionDefinition() as fd:
        handles = [
            fd.from_pytorch(x) if isinstance(x, torch.Tensor) else fd.define_scalar(None, kind(x))
            for x in inputs
        ]
        found = record(fd, *handles)
        for out in found if isinstance(found, list | tuple) else [found]:
            fd.add_output(out)
    return fd


def kind(number: complex) -> DataType:
    return D.ComplexDouble if isinstance(number, complex) else D.Double


def run(record: Record, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs; the printed definition has to give the same."""
    fd = definition(record, inputs)
    found = fd.run(copied(inputs))
    round_trip(fd, inputs, found)
    return found


def assert_near(found: torch.Tensor, wanted: torch.Tensor, times: float = 1.0) -> None:
    """The dtype of ``found``, the numbers of ``wanted``."""
    assert found.shape == wanted.shape
    limit = times * LIMIT.get(found.dtype, 0.0)
    torch.testing.assert_close(
        found.cpu(), wanted.cpu().to(found.dtype), rtol=limit, atol=limit, equal_nan=True
    )


# --- elementwise ---------------------------------------------------------------------------------

ROWS = [op for op in OPS.values() if isinstance(op.form, Pointwise) and op.complex is not None]
COUNTS = {n: [op.name for op in ROWS if len(op.params) == n] for n in (1, 2)}
_PARTS = frozenset({"complex", "cast"})
"""Rows whose operands are not two complex tensors: they have tests of their own."""


def op_of(name: str) -> Record:
    return lambda fd, *operands: getattr(fd.ops, name)(*operands)


def test_rows_with_a_rule() -> None:
    """What nvFuser takes complex numbers for."""
    wanted = (
        "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 reciprocal "
        "rsqrt sigmoid silu sin sinh sqrt tan tanh neg abs real imag set segment_set isfinite "
        "isinf isnan isreal logical_not add sub mul div truediv pow eq ne where lerp addcmul "
        "logical_and logical_or cast complex"
    )
    assert {op.name for op in ROWS} == set(wanted.split())


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("name", COUNTS[1])
def test_one_operand(name: str, dtype: torch.dtype, device: str) -> None:
    x = numbers(6, 5, dtype=dtype, device=device)
    # Numbers on the axes, where branch cuts are, on either side of them.
    axes = [1.5, -1.5, 0.5, -0.5, 1.5j, -1.5j, 0.5j, complex(-2, -0.0), complex(0, -0.5), 0]
    x[0], x[1] = torch.tensor(axes[:5]), torch.tensor(axes[5:])
    (found,) = run(op_of(name), [x])
    wanted = OPS[name].oracle(x.cpu().to(DOUBLE))
    assert found.dtype is (dtype if wanted.is_complex() else like(wanted, dtype))
    assert_near(found, wanted)


def like(wanted: torch.Tensor, dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if wanted.is_floating_point() else wanted.dtype


@pytest.mark.parametrize("name", [n for n in COUNTS[2] if n not in _PARTS])
def test_two_operands(name: str, device: str) -> None:
    """Of one dtype, of two, and one real operand, with broadcasting."""
    z = numbers(4, 1, 5, device=device)
    others = [
        numbers(4, 3, 5, device=device, seed=1),
        numbers(3, 1, device=device, dtype=SINGLE, seed=2),
        numbers(5, device=device, dtype=torch.float32, seed=3),
        numbers(device=device, seed=4),
        torch.arange(1, 6, device=device),
        z.clone(),
    ]
    for other in others:
        for pair in ([z, other], [other, z]):
            (found,) = run(op_of(name), pair)
            wanted = OPS[name].oracle(*pair)
            assert found.dtype is wanted.dtype
            assert_near(found, wanted)


@pytest.mark.covering
@pytest.mark.parametrize("number", [2.5 - 0.5j, 1j, 2.0, 3, -1, 0.5, 0, True])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "eq"])
def test_numbers(name: str, number: complex, device: str) -> None:
    """Written into the definition, or given to a run: a real one is weak, a complex one is not."""
    for dtype in (SINGLE, torch.float32, torch.int64):
        drawn = numbers(7, device=device) * 4 + 0.1
        x = (drawn if dtype.is_complex else drawn.real).to(dtype)
        if not (dtype.is_complex or isinstance(number, complex)) or (
            name == "div" and number in (0, False)
        ):
            continue
        for place in (0, 1):
            if name == "pow" and number == place == 0:
                continue
            pair = [x, x]
            pair[place] = number
            wanted = OPS[name].oracle(*pair)

            def written(fd: Any, x: Any, place: int = place) -> Any:
                return getattr(fd.ops, name)(*((number, x) if place == 0 else (x, number)))

            (found,) = run(written, [x])
            assert found.dtype is wanted.dtype
            assert_near(found, wanted, 20)
            if isinstance(number, complex):
                (given,) = run(op_of(name), pair)
                assert_near(given, wanted, 20)


def test_a_complex_number_beside_a_real_tensor(device: str) -> None:
    """The imaginary part is kept: the result is complex, of the tensor's width as torch has it."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = torch.tensor([1.0, 2.0], dtype=dtype, device=device)

        def record(fd: Any, x: Any, z: Any) -> list[Any]:
            zero_dim = fd.ops.full([], 1 + 2j, D.ComplexDouble)
            return [fd.ops.add(x, other) for other in (1 + 2j, z, zero_dim)]

        wanted = torch.tensor([2 + 2j, 3 + 2j], device=device)
        for found in run(record, [x, 1 + 2j]):
            assert found.dtype is (DOUBLE if dtype is torch.float64 else SINGLE)
            assert torch.equal(found, wanted.to(found.dtype))


def test_scalars_alone(device: str) -> None:
    """Scalars computed of scalars, which a tensor then takes."""

    def record(fd: Any, x: Any, s: Any, t: Any) -> Any:
        power = fd.ops.exp(fd.ops.mul(s, fd.ops.reciprocal(t)))
        size = fd.ops.abs(fd.ops.sub(s, 1j))
        return fd.ops.mul(x, power), fd.ops.mul(fd.ops.real(x), size)

    x, s, t = numbers(4, device=device), 0.5 - 1.5j, 2.0 + 1j
    found = run(record, [x, s, t])
    assert_near(found[0], x * torch.exp(torch.tensor(s / t, dtype=DOUBLE)).to(device))
    assert_near(found[1], x.real * abs(s - 1j))


@pytest.mark.parametrize("number", [1, 2.5, True])
def test_a_real_number_for_a_complex_scalar(number: float) -> None:
    fd = definition(lambda fd, x, s: fd.ops.mul(x, s), [numbers(3), 1j])
    (found,) = fd.run([numbers(3), number])
    assert_near(found, numbers(3) * number)


def test_three_operands(device: str) -> None:
    x, y, z = (numbers(3, 4, device=device, seed=s) for s in range(3))
    mask = torch.tensor([True, False, True, False], device=device)
    (found,) = run(op_of("where"), [mask, x, y])
    assert torch.equal(found, torch.where(mask, x, y))
    real = y.real.float().clone()
    (found,) = run(op_of("where"), [mask, x, real])
    assert_near(found, torch.where(mask, x, real))
    (found,) = run(op_of("lerp"), [x, y, z])
    assert_near(found, x + z * (y - x))
    (found,) = run(lambda fd, *xs: fd.ops.addcmul(*xs, 2.0 - 1j), [x, y, z])
    assert_near(found, x + y * z * (2 - 1j))


CASTS = [SINGLE, DOUBLE, torch.float64, torch.float16, torch.int32, torch.bool]


@pytest.mark.parametrize("target", CASTS, ids=str)
@pytest.mark.parametrize("source", CASTS, ids=str)
def test_casts(source: torch.dtype, target: torch.dtype, device: str) -> None:
    if not (source.is_complex or target.is_complex):
        pytest.skip("nothing complex")
    x = numbers(9, device=device) * 3
    x[0], x[1] = 0, 2j
    x = OPS["cast"].oracle(x, dtype_of(source))
    (found,) = run(lambda fd, x: fd.ops.cast(x, dtype_of(target)), [x])
    wanted = x if target.is_complex or target is torch.bool else x.real
    assert found.dtype is target
    assert torch.equal(found, wanted.to(target))


def dtype_of(dtype: torch.dtype) -> DataType:
    return next(d for d in DataType if d.info.torch is dtype)


def test_parts_and_back(device: str) -> None:
    x, y = (numbers(3, 1, dtype=torch.float64, device=device), numbers(2, device=device).real)
    found = run(op_of("complex"), [x, y.clone()])
    assert torch.equal(found[0], torch.complex(x.expand(3, 2), y.expand(3, 2)))
    z = numbers(4, device=device)
    re, im, again = run(
        lambda fd, z: [
            fd.ops.real(z),
            fd.ops.imag(z),
            fd.ops.complex(fd.ops.imag(z), fd.ops.real(z)),
        ],
        [z],
    )
    assert torch.equal(re, z.real)
    assert torch.equal(im, z.imag)
    assert torch.equal(again, torch.complex(z.imag, z.real))


# --- hard numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "x", "wanted"),
    [
        ("abs", complex(3e200, 4e200), 5e200),
        ("abs", complex(-math.inf, math.nan), math.inf),
        ("reciprocal", complex(1e200, 1e200), complex(5e-201, -5e-201)),
        ("reciprocal", complex(math.inf, 1.0), 0),
        ("exp", complex(math.inf, 0.0), complex(math.inf, 0.0)),
        ("exp", complex(-math.inf, 1.0), 0),
        ("sinh", complex(1000.0, 0.0), complex(math.inf, 0.0)),
        ("sin", complex(0.0, 1000.0), complex(0.0, math.inf)),
        ("tanh", complex(500.0, 1.0), complex(1.0, 0.0)),
        ("tanh", complex(-math.inf, 0.0), complex(-1.0, 0.0)),
        ("tan", complex(1.0, 500.0), complex(0.0, 1.0)),
        ("sigmoid", complex(-1000.0, 1.0), 0),
        ("sigmoid", complex(1000.0, 1.0), 1),
        ("sqrt", complex(-4.0, -0.0), complex(0.0, -2.0)),
        ("sqrt", complex(1e300, 1e300), complex(1.0986841134678098e150, 4.550898605622274e149)),
        ("sqrt", complex(math.nan, math.inf), complex(math.inf, math.inf)),
        ("log", 0j, complex(-math.inf, 0.0)),
        ("log", complex(-1.0, -0.0), complex(0.0, -math.pi)),
        ("expm1", complex(1e-12, 1e-12), complex(1e-12, 1.000000000001e-12)),
        ("log1p", complex(1e-12, 0.0), complex(1e-12, 0.0)),
    ],
)
def test_hard_numbers(name: str, x: complex, wanted: complex) -> None:
    """Neither overflow on the way nor nan from a zero times infinity."""
    (found,) = run(op_of(name), [torch.tensor([x], dtype=DOUBLE)])
    expected = torch.tensor([wanted], dtype=found.dtype)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=0)


def test_powers_of_zero() -> None:
    zeros = torch.zeros(3, dtype=DOUBLE)
    (found,) = run(op_of("pow"), [zeros, torch.tensor([2 + 0j, 0.5 + 3j, 0j])])
    assert torch.equal(found, torch.tensor([0j, 0j, 1 + 0j], dtype=DOUBLE))


def test_division_of_large_and_by_zero() -> None:
    top = torch.tensor([1e200 + 1e200j, 1 + 2j, 0j, 1 + 1j], dtype=DOUBLE)
    low = torch.tensor([1e200 - 1e200j, 0j, 0j, 1e-308 + 0j], dtype=DOUBLE)
    (found,) = run(op_of("div"), [top, low])
    assert found[0] == 1j
    assert found[1] == complex(math.inf, math.inf)
    assert found[2].isnan()
    assert found[3].abs() > 1e307


# --- reductions and scans ------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [0, 1, 2]])
def test_reductions(dims: list[int], device: str) -> None:
    x = numbers(3, 4, 5, device=device)

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        var, mean = o.var_mean(x, dims)
        avg, squares, count = o.welford(x, dims)
        made = [o.sum(x, dims), o.prod(x, dims), o.sum(x, dims, keepdim=True), var, mean]
        return [*made, o.var(x, dims, correction=0), avg, squares, count]

    found = run(record, [x])
    var, mean = torch.var_mean(x, dims)
    n = math.prod(x.shape[d] for d in dims)
    flat = x.movedim(dims, list(range(-len(dims), 0))).flatten(-len(dims))
    wanted = [
        x.sum(dims),
        flat.prod(-1),
        x.sum(dims, keepdim=True),
        var,
        mean,
        x.var(dims, correction=0),
        mean,
        var * (n - 1),
        torch.full(mean.shape, n),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype
        assert_near(one, other, 10)


def test_prod_of_zeros_and_of_none() -> None:
    x = numbers(3, 4)
    x[1, 2] = 0
    empty = torch.zeros(2, 0, dtype=SINGLE)
    found = run(lambda fd, x, e: [fd.ops.prod(x, [1]), fd.ops.prod(e, [1])], [x, empty])
    assert_near(found[0], x.prod(1))
    assert found[0][1] == 0
    assert torch.equal(found[1], torch.ones(2, dtype=SINGLE))


def test_a_sum_in_another_dtype() -> None:
    x = numbers(8, dtype=SINGLE)
    found = run(
        lambda fd, x: [
            fd.ops.sum(x, [0], dtype=D.ComplexDouble),
            fd.ops.sum(x, [0], dtype=D.Float),
        ],
        [x],
    )
    assert (found[0].dtype, found[1].dtype) == (DOUBLE, torch.float32)
    assert_near(found[0], x.to(DOUBLE).sum(0))
    assert_near(found[1], x.real.sum(0))


def test_a_sum_over_stretched_dims() -> None:
    """Known elements are not added up again: multiplied, and raised to a power."""
    x = numbers(1, 4)
    found = run(
        lambda fd, x: [
            fd.ops.sum(fd.ops.expand(x, [3, 4]), [0]),
            fd.ops.prod(fd.ops.expand(x, [3, 4]), [0]),
        ],
        [x],
    )
    assert_near(found[0], x[0] * 3)
    assert_near(found[1], x[0] ** 3)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
def test_scans(dtype: torch.dtype, device: str) -> None:
    x = numbers(3, 6, dtype=dtype, device=device)
    x[0, 3] = 0
    x[1, 2:] = -1

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        sums = [o.cumsum(x, 1), o.cumsum(x, 0, 1j)]
        return [*sums, o.cumprod(x, 1), o.cumprod(x, -2, 2 - 1j), o.cumprod(o.mul(x, 1j), 1)]

    found = run(record, [x])
    wide = x.to(DOUBLE)
    wanted = [
        wide.cumsum(1),
        wide.cumsum(0) + 1j,
        wide.cumprod(1),
        wide.cumprod(0) * (2 - 1j),
        (wide * 1j).cumprod(1),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is dtype
        assert_near(one, other, 10)
    assert not found[2][0, 3:].any()


def test_reductions_that_keep_their_dims(device: str) -> None:
    x = numbers(3, 4, 5, device=device)

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        made = [o.prod(x, [0, 2], keepdim=True), o.prod(x, 1, True), o.sum(x, keepdim=True)]
        return [*made, *o.var_mean(x, [1], keepdim=True), o.var(x, [2], 1, True), o.prod(x)]

    found = run(record, [x])
    var, mean = torch.var_mean(x, 1, keepdim=True)
    wanted = [
        x.prod(0, keepdim=True).prod(2, keepdim=True),
        x.prod(1, keepdim=True),
        x.sum((0, 1, 2), keepdim=True),
        var,
        mean,
        x.var(2, keepdim=True),
        x.prod(),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype
        assert_near(one, other, 100)


def test_a_normalization(device: str) -> None:
    """Reductions and what reads them, in one definition, over rows."""

    def record(fd: Any, x: Any, w: Any) -> Any:
        var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
        scale = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
        return fd.ops.mul(fd.ops.mul(fd.ops.sub(x, mean), scale), w)

    x, w = numbers(6, 40, dtype=SINGLE, device=device), numbers(40, dtype=SINGLE, device=device)
    (found,) = run(record, [x, w])
    wide = x.to(DOUBLE)
    var, mean = torch.var_mean(wide, 1, correction=0, keepdim=True)
    assert_near(found, (wide - mean) * (var + 1e-5).rsqrt() * w)


# --- views ---------------------------------------------------------------------------------------

VIEWS: dict[str, tuple[Record, Callable[[torch.Tensor], torch.Tensor]]] = {
    "permute": (lambda fd, x: fd.ops.permute(x, [2, 0, 1]), lambda x: x.permute(2, 0, 1)),
    "reshape": (lambda fd, x: fd.ops.reshape(x, [6, 4]), lambda x: x.reshape(6, 4)),
    "slice": (
        lambda fd, x: fd.ops.slice(x, [0, 1, 1], [2, 3, 4]),
        lambda x: x[:, 1:, 1:],
    ),
    "broadcast": (
        lambda fd, x: fd.ops.broadcast(x, [False, True, False, False]),
        lambda x: x.unsqueeze(1),
    ),
    "expand": (
        lambda fd, x: fd.ops.broadcast_in_dim(x, [5, 2, 3, 4], [1, 2, 3]),
        lambda x: x.expand(5, 2, 3, 4),
    ),
    "squeeze": (
        lambda fd, x: fd.ops.squeeze(fd.ops.slice(x, [1, 0, 0], [2, 3, 4]), [0]),
        lambda x: x[1:2].squeeze(0),
    ),
    "select": (lambda fd, x: fd.ops.select(x, 2, 1), lambda x: x.select(1, 2)),
    "stride_order": (
        lambda fd, x: fd.ops.stride_order(x, [0, 2, 1]),
        lambda x: x.movedim(0, 2).contiguous().movedim(2, 0),
    ),
    "pad": (
        lambda fd, x: fd.ops.pad(x, [1, 2, 0, 1], 1 - 2j),
        lambda x: torch.nn.functional.pad(x - (1 - 2j), [1, 2, 0, 1]) + (1 - 2j),
    ),
    "cat": (lambda fd, x: fd.ops.cat([x, x, fd.ops.neg(x)], 1), lambda x: torch.cat([x, x, -x], 1)),
    "triu": (lambda fd, x: fd.ops.triu(x, 1), lambda x: x.triu(1)),
}
_OF_INPUTS = frozenset({"permute", "reshape", "slice", "broadcast", "expand", "squeeze", "select"})


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, computed: bool, device: str) -> None:
    """Of an input they are views of it; strides are those of a real tensor in any case."""
    record, wanted = VIEWS[name]
    x = numbers(2, 3, 4, device=device)

    def made(fd: Any, x: Any) -> Any:
        return record(fd, fd.ops.mul(x, 1j) if computed else x)

    fd = definition(made, [x])
    (found,) = fd.run([x])
    given = x * 1j if computed else x
    assert_near(found, wanted(given))
    real = definition(
        lambda fd, x: (
            record(fd, fd.ops.neg(x) if computed else x)
            if name != "pad"
            else fd.ops.pad(x, [1, 2, 0, 1], 1.0)
        ),
        [x.real.clone()],
    )
    (twin,) = real.run([x.real.clone()])
    assert found.stride() == twin.stride()
    if name in _OF_INPUTS and not computed:
        assert found.stride() == wanted(x).stride()
        assert found.data_ptr() == wanted(x).data_ptr()
    else:
        assert found.data_ptr() != x.data_ptr()
    round_trip(fd, [x], [found])


def test_indices(device: str) -> None:
    x = numbers(4, 5, device=device)
    rows = torch.tensor([3, 0, 3], device=device)
    places = torch.tensor([[1, 0, 4], [2, 2, 2], [0, 0, 0]], device=device)
    found = run(
        lambda fd, x, r, p: [
            fd.ops.index_select(x, r, 0),
            fd.ops.gather(x, p, 1),
            fd.ops.take_along_axis(x, fd.ops.slice(p, [0, 0], [1, 3]), 1),
            fd.ops.embedding_fwd(r, x),
        ],
        [x, rows, places],
    )
    wanted = [x[rows], x.gather(1, places), x.take_along_dim(places[:1], 1), x[rows]]
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


def test_full(device: str) -> None:
    found = run(
        lambda fd, x, s: [
            fd.ops.mul(x, fd.ops.full([3], 2 - 1j, D.ComplexFloat)),
            fd.ops.full([2, 2], s, D.ComplexDouble),
        ],
        [numbers(3, dtype=SINGLE, device=device), 1 + 1j],
    )
    assert_near(found[0], numbers(3, dtype=SINGLE, device=device) * (2 - 1j))
    assert torch.equal(found[1].cpu(), torch.full((2, 2), 1 + 1j, dtype=DOUBLE))


# --- memory --------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[str], torch.Tensor]] = {
    "dense": lambda d: numbers(4, 6, device=d),
    "transposed": lambda d: numbers(6, 4, device=d).T,
    "strided": lambda d: numbers(8, 12, device=d)[::2, ::2],
    "offset": lambda d: numbers(5, 7, device=d)[1:, 1:],
    "expanded": lambda d: numbers(4, 1, device=d).expand(4, 6),
    "conjugated": lambda d: numbers(4, 6, device=d).conj(),
    "conjugated and strided": lambda d: numbers(5, 12, device=d)[1:, ::2].conj(),
    "conjugated and expanded": lambda d: numbers(6, device=d).expand(4, 6).conj(),
    "0-dim": lambda d: numbers(device=d),
    "empty": lambda d: numbers(0, 6, device=d),
    "empty and conjugated": lambda d: numbers(4, 0, device=d).conj(),
    "one": lambda d: numbers(1, 1, device=d),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    x = LAYOUTS[layout](device)
    fd = definition(
        lambda fd, x: [fd.ops.mul(x, x), fd.ops.abs(x), x, fd.ops.set(x), fd.ops.real(x)], [x]
    )
    found = fd.run([x])
    wanted = [x * x, x.abs(), x, x, x.real]
    for one, other in zip(found, wanted, strict=True):
        assert_near(one, other.resolve_conj())
    assert found[2] is x
    if x.numel():
        assert found[3].data_ptr() != x.data_ptr()
        assert found[4].data_ptr() != x.data_ptr()


def test_an_input_that_is_written(device: str) -> None:
    """Reads see the old value; what is returned is the input."""
    x, y = numbers(3, 4, device=device), numbers(3, 4, device=device, seed=1)
    old, other = x.clone(), y.clone()
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        total = fd.ops.add(a, b)
        fd.add_output(total, a)
        fd.add_output(fd.ops.mul(a, 2j))
        fd.add_output(fd.ops.imag(a))
        fd.add_output(total)
    doubled, imag, back = fd.run([x, y])
    assert back.data_ptr() == x.data_ptr()
    assert_near(x, old + other)
    assert_near(doubled, old * 2j)
    assert torch.equal(imag, old.imag)


def test_inputs_written_crosswise(device: str) -> None:
    x, y = numbers(3, 4, device=device), numbers(4, 3, device=device, seed=1)
    old = x.clone(), y.clone()
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        fd.add_output(fd.ops.permute(a, [1, 0]), b)
        fd.add_output(fd.ops.permute(b, [1, 0]), a)
    assert fd.run([x, y]) == []
    assert torch.equal(x, old[1].T)
    assert torch.equal(y, old[0].T)


def test_other_sizes_later(device: str) -> None:
    fd = definition(lambda fd, x: fd.ops.mul(x, x), [numbers(3, 4, device=device)])
    for shape in ((3, 4), (5, 2), (0, 4), (3, 4)):
        x = numbers(*shape, device=device)
        assert_near(fd.run([x])[0], x * x)


@pytest.mark.gpu
def test_a_scalar_tensor_of_the_cpu_beside_cuda_ones() -> None:
    x, s = numbers(4, device="cuda"), numbers()
    fd = definition(lambda fd, x, s: [fd.ops.mul(x, s), s], [x, s])
    product, same = fd.run([x, s])
    assert_near(product, x.cpu() * s)
    assert same is s


# --- what is refused -----------------------------------------------------------------------------


_REFUSING = "relu ceil erf lgamma sign lt ge minimum atan2 fmod remainder cummax hypot"


@pytest.mark.parametrize("name", _REFUSING.split())
def test_ops_without_a_rule(name: str) -> None:
    """The error says which op it is and what came, at the line that recorded it."""
    x = numbers(3)
    operands = [p for p in OPS[name].params if p.kind.is_operand]
    more = [1] if name == "cummax" else []
    with pytest.raises(DefinitionError, match=f"{name}: .*ComplexDouble"), FusionDefinition() as fd:
        given = [fd.from_pytorch(x) for p in operands if p.default is not None]
        getattr(fd.ops, name)(*given, *([0] if more else []))


def test_a_complex_bound_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"clamp.*ComplexDouble"), FusionDefinition() as fd:
        fd.ops.clamp(fd.define_tensor([3]), 1j, 2.0)


def test_no_row_takes_complex_numbers_by_accident() -> None:
    """Every elementwise row has a rule or refuses."""
    for op in OPS.values():
        if not isinstance(op.form, Pointwise) or op.complex is not None:
            continue
        with pytest.raises(TritonFuserError), FusionDefinition() as fd:
            tensors = [
                fd.define_tensor([3], dtype=D.Bool if p.name == "condition" else D.ComplexFloat)
                for p in op.params
                if p.kind.name == "OPERAND"
            ]
            fd.add_output(getattr(fd.ops, op.name)(*tensors, *_numbers(op)))


def _numbers(op: Any) -> list[float]:
    return [1.0 for p in op.params if p.kind.name == "SCALAR" and p.default is not None]


def test_no_kernel_sees_a_complex_number() -> None:
    x = numbers(4, 6)
    fd = definition(lambda fd, x, s: [fd.ops.exp(fd.ops.mul(x, s)), fd.ops.sum(x, [0])], [x, 1j])
    fd.run([x, 1j])
    lowered: Lowered = fd.fec.core.newest().lowered
    for piece in lowered.segmented.segments:
        values = [*piece.inputs, *piece.outputs, *(v for n in piece.nodes for v in n.outs)]
        assert all(v.dtype.info.category is not Category.COMPLEX for v in values)
    kinds = {(part.how, part.value.is_tensor) for part in lowered.parts}
    assert kinds == {("view_as_real", True), ("real", False), ("imag", False)}


def test_kernels_compile_for_a_gpu() -> None:
    x = numbers(8, 64, dtype=SINGLE)
    fd = definition(
        lambda fd, x: [fd.ops.div(fd.ops.tanh(x), x), fd.ops.sqrt(x), fd.ops.prod(x, [1])], [x]
    )
    assert {report.spill_bytes for report in fd.compile_for("sm_90", [x])} == {0}


def test_validate() -> None:
    x = numbers(4, 6, dtype=SINGLE)
    fd = definition(lambda fd, x: [fd.ops.exp(x), fd.ops.sum(fd.ops.mul(x, x), [1])], [x])
    assert len(fd.validate([x])) == 2
