"""Each op beside torch's own result in the same dtypes, on the same device: what users compare.

They do so with ``atol=1e-3, rtol=0, equal_nan=True``, by which large results must be equal to the
bit. On a GPU every row, dtype and layout; here the numbers at the ends of what a dtype holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch

from tests.e2e.ops import calls as many
from tests.e2e.ops.samples import (
    CALLS,
    Call,
    pointwise_calls,
    reduced_rows,
    reduction_calls,
    scan_calls,
    scanned_rows,
)
from tests.e2e.ops.test_ops_pointwise import CASES
from tests.e2e.ops.test_ops_reductions import REDUCED, SCANNED
from tests.ops.pointwise_harness import ALL_DTYPES, INTEGERS, operand_dtypes
from tritonfuser import DataType
from tritonfuser.dtypes import Category
from tritonfuser.ops import registry
from tritonfuser.ops.forms import Factory, Random
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import Op

D = DataType
COMPLEX = (D.ComplexFloat, D.ComplexDouble)
FLOATS = (D.Float, D.Double, D.Half, D.BFloat16)
STEPS = {torch.float16: 2**-10, torch.bfloat16: 2**-7}
STEPS |= {torch.float8_e4m3fn: 2**-3, torch.float8_e5m2: 2**-2}
"""One step of dtypes in which a result near the middle of two numbers may be either."""


def reference(name: str, calls: Sequence[Call]) -> list[torch.Tensor]:
    """The oracle's results, of the operands as they are, where they are."""
    found: list[torch.Tensor] = []
    for call in calls:
        args = [_signed(arg) for arg in call.args]
        try:
            made = registry.get(name).oracle(*args, **call.kwargs)
        except (NotImplementedError, RuntimeError):
            made = _by_floats(name, args, call)
        found.extend(made if isinstance(made, tuple) else (made,))
    return found


def _by_floats(name: str, args: list[Any], call: Call) -> torch.Tensor:
    """What torch does not do with floats of eight bits, done in float32 and rounded."""
    dtypes = {x.dtype for x in args if isinstance(x, torch.Tensor) and x.dtype.itemsize == 1}
    (dtype,) = dtypes & {torch.float8_e4m3fn, torch.float8_e5m2}
    wide = [x.float() if isinstance(x, torch.Tensor) and x.dtype is dtype else x for x in args]
    made = registry.get(name).oracle(*wide, **call.kwargs)
    assert isinstance(made, torch.Tensor)
    return made.to(dtype)


def _signed(arg: Any) -> Any:
    """Unsigned numbers as the signed ones of the same bits, which torch moves about."""
    if isinstance(arg, list):
        return [_signed(item) for item in arg]
    is_unsigned = isinstance(arg, torch.Tensor) and arg.dtype is torch.uint64
    return arg.view(torch.int64) if is_unsigned else arg


def check(name: str, calls: Sequence[Call], steps: float = 0.0) -> None:
    """The calls in one definition, against torch; ``steps`` of the dtype's precision may differ."""
    recorded = many.record(name, calls)
    found = recorded.fd.run(recorded.inputs)
    for what, one, other in zip(recorded.names, found, reference(name, calls), strict=True):
        one = _signed(one)
        assert one.dtype is other.dtype, what
        wide = [torch.view_as_real(x) if x.is_complex() else x for x in (one, other)]
        limits = torch.finfo(wide[0].dtype).eps if wide[0].is_floating_point() else 0.0
        torch.testing.assert_close(
            *(x.double() if x.is_floating_point() else x for x in wide),
            rtol=max(STEPS.get(one.dtype, 0.0), steps * limits),
            atol=1e-3 if limits else 0,
            equal_nan=True,
            msg=lambda text, what=what: f"{what}: {text}",
        )


# --- the ends of what a dtype holds --------------------------------------------------------------


def extremes(dtype: DataType) -> torch.Tensor:
    """The largest and the smallest numbers, those next to 1, and numbers without all digits."""
    limits = torch.finfo(dtype.info.torch)
    least = limits.smallest_normal * limits.eps
    ends = [limits.max, limits.tiny, least, limits.tiny / 2, 1 + limits.eps, 1 - limits.eps / 2]
    ends += [limits.eps, limits.max / 2]
    found = torch.tensor(ends, dtype=torch.float64)
    return torch.cat([found, -found]).to(dtype.info.torch)


def ends(op: Op, dtype: DataType, device: str) -> list[Call]:
    """Each such number beside each; of three operands the last one is ordinary."""
    x = extremes(dtype).to(device)
    first, second = torch.meshgrid(x, x, indexing="ij")
    given = [first.contiguous(), second.contiguous(), torch.full_like(first, 0.5)]
    if op.params[0].name == "condition":
        given = [first > 0, second.contiguous(), first.contiguous()]
    args: list[Any] = []
    for place, param in enumerate(p for p in op.params if p.kind.is_operand):
        number = {"threshold": 0.0, "min": -1.0, "max": 1.0}.get(param.name, 0.5)
        scalar = param.kind.name == "SCALAR"
        args.append(number if scalar else given[min(place, 2)])
    return [Call("ends", tuple(args))]


_STEPS = {"lgamma": 1e3, "pow": 8, "lerp": 4, "addcmul": 4, "tan": 64}
"""By how many steps the interpreter's functions, which are NumPy's, are off there."""


_CUDA_STEPS = {"erfcinv": 1e3, "hypot": 1, "lerp": 4, "addcmul": 4}
"""By how many steps the oracle's formula (erfcinv) or the order of its products is another."""


@pytest.mark.covering(apart=True)
@pytest.mark.parametrize(
    ("name", "dtype"), [c for c in CASES if c[1] in FLOATS[:3]], ids=lambda x: getattr(x, "name", x)
)
def test_ends(name: str, dtype: DataType, device: str) -> None:
    op = registry.get(name)
    assert len(operand_dtypes(op, dtype)) <= 4
    steps = _CUDA_STEPS.get(name, 0) if device == "cuda" else _STEPS.get(name, 4)
    check(name, ends(op, dtype, device), steps)


# --- everything, on a GPU ------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda x: getattr(x, "name", x))
def test_pointwise(name: str, dtype: DataType) -> None:
    calls = pointwise_calls(registry.get(name), dtype, "cuda")
    if name == "silu" and dtype in INTEGERS:
        # Converting what no int holds to an int has no one meaning.
        calls = [Call(c.what, tuple(x.clamp(-1000, 1000) for x in c.args)) for c in calls]
    if name == "signbit" and dtype.info.bits == 8:
        # The conversion to a float keeps no sign of a nan.
        calls = [Call(c.what, tuple(_without_nan(x) for x in c.args)) for c in calls]
    check(name, calls, _CUDA_STEPS.get(name, 0))


def _without_nan(x: torch.Tensor) -> torch.Tensor:
    return x.float().nan_to_num(nan=1.0).to(x.dtype) if x.is_floating_point() else x


def complex_rows() -> list[Op]:
    """Pointwise rows of one operand and of two that take complex numbers."""
    named = ("complex", "cast", "where", "lerp", "addcmul")
    return [
        op
        for op in OPS.values()
        if op.category == "pointwise" and op.complex is not None and op.name not in named
    ]


def complex_calls(op: Op, dtype: DataType, device: str) -> list[Call]:
    """Numbers up to 2 in size, laid out in several ways; nothing, one, and all."""
    generator = torch.Generator().manual_seed(5)
    count = sum(param.kind.is_operand for param in op.params)
    shape = (count, 16, 16)
    x = torch.randn(shape, dtype=dtype.info.torch, generator=generator).to(device)
    return [
        Call("dense", tuple(x)),
        Call("transposed", tuple(y.t() for y in x)),
        Call("strided", tuple(y[:, ::2] for y in x)),
        Call("0-dim", tuple(y[1, 2] for y in x)),
        Call("empty", tuple(y[:0] for y in x)),
    ]


@pytest.mark.covering
@pytest.mark.parametrize("dtype", COMPLEX, ids=lambda d: d.name)
@pytest.mark.parametrize("name", [op.name for op in complex_rows()])
def test_complex(name: str, dtype: DataType, device: str) -> None:
    calls = complex_calls(registry.get(name), dtype, device)
    check(name, calls, 64)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "dtype"), REDUCED, ids=lambda x: getattr(x, "name", x))
def test_reductions(name: str, dtype: DataType) -> None:
    assert registry.get(name) in reduced_rows()
    check(name, reduction_calls(registry.get(name), dtype, "cuda"), 16)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "dtype"), SCANNED, ids=lambda x: getattr(x, "name", x))
def test_scans(name: str, dtype: DataType) -> None:
    assert registry.get(name) in scanned_rows()
    check(name, scan_calls(registry.get(name), dtype, "cuda"), 16)


MOVED = [n for n in CALLS if not isinstance(OPS[n].form, Factory | Random)]
RARE = (D.UInt64, *COMPLEX)
"""Dtypes that only move on a CPU: others are tried there by tests of their own."""
ANYWHERE = [
    pytest.param(name, dtype, device, marks=[pytest.mark.gpu] if device == "cuda" else [])
    for name, dtype, device in product(MOVED, (*ALL_DTYPES, *RARE), ("cpu", "cuda"))
    if device == "cuda" or dtype in RARE
]


@pytest.mark.parametrize(("name", "dtype", "device"), ANYWHERE, ids=lambda x: getattr(x, "name", x))
def test_others(name: str, dtype: DataType, device: str) -> None:
    calls = CALLS[name](dtype, device)
    if not calls:
        pytest.skip(f"{name} does not take {dtype}")
    check(name, calls, 8 if dtype.info.category is Category.FLOAT else 0)
