"""Complex numbers, element by element: every op that takes them, against torch in complex128."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.e2e.ops.complex_numbers import (
    COUNTS,
    DOUBLE,
    ROWS,
    SINGLE,
    D,
    assert_near,
    definition,
    numbers,
    op_of,
    run,
)
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import Category
from tritonfuser.errors import DefinitionError, TritonFuserError
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.registry import OPS

_PARTS = frozenset({"complex", "cast"})
"""Rows whose operands are not two complex tensors: they have tests of their own."""


# --- elementwise ---------------------------------------------------------------------------------


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
