"""Each pointwise row on each dtype it takes, through the whole path, in every layout."""

from __future__ import annotations

import pytest
import torch

from tests.e2e.ops import calls as many
from tests.e2e.ops.samples import Call, on_devices, pointwise_calls, pointwise_rows, takes
from tests.ops.pointwise_harness import ALL_DTYPES, EIGHTS, FLOATS, INTEGERS, specials
from tests.ops.pointwise_harness import samples as drawn
from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops import registry
from tritonfuser.ops.parameters import Kind

D = DataType
_OF_ITS_DTYPE = frozenset({"nextafter"})
"""Ops whose result says something about the dtype itself: no float64 reference."""

CASES = [
    (op.name, dtype)
    for op in pointwise_rows()
    for dtype in ALL_DTYPES
    if takes(op, dtype) and not any(p.kind is Kind.DTYPE for p in op.params)
]


ON_GPU = (D.Float, D.BFloat16, D.Int32)


@pytest.mark.covering(apart=True, times=3)
@pytest.mark.parametrize(("name", "dtype", "device"), on_devices(CASES, ON_GPU))
def test_row(name: str, dtype: DataType, device: str) -> None:
    op = registry.get(name)
    calls = pointwise_calls(op, dtype, device)
    if device == "cuda" and name == "silu" and dtype in INTEGERS:
        # Converting what no int holds to an int has no one meaning.
        calls = [Call(c.what, tuple(x.clamp(-1000, 1000) for x in c.args)) for c in calls]
    recorded = many.record(name, calls)
    found = many.run(recorded)
    wanted = many.reference(name, calls, double=name not in _OF_ITS_DTYPE)
    on_gpu = device == "cuda"
    many.assert_close(found, wanted, recorded, times=4 if on_gpu else 1, signs=not on_gpu)


def _castable(source: DataType, target: DataType) -> torch.Tensor:
    """Numbers whose conversion has one meaning."""
    (plain,) = drawn(registry.get("set"), source, 256)
    x = torch.cat([specials(source), plain])
    if source in FLOATS and target not in FLOATS and target is not D.Bool:
        x = x[x.double().isfinite()].double().clamp(-3e4, 3e4).to(x.dtype)
    return x


@pytest.mark.parametrize("source", ALL_DTYPES, ids=lambda x: x.name)
def test_casts(source: DataType, device: str) -> None:
    (name,) = (op.name for op in pointwise_rows() if any(p.kind is Kind.DTYPE for p in op.params))
    calls = [
        Call(target.name, (_castable(source, target).to(device),), {"dtype": target})
        for target in ALL_DTYPES
    ]
    recorded = many.record(name, calls)
    many.assert_close(many.run(recorded), many.reference(name, calls, double=False), recorded)


@pytest.mark.parametrize("dtype", EIGHTS, ids=lambda x: x.name)
def test_float8(dtype: DataType, device: str) -> None:
    """Operands of eight bits are widened, and results of arithmetic are Floats."""
    x = torch.linspace(-7, 7, 64).to(dtype.info.torch).to(device)
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(x)
        outs = [fd.ops.add(a, b), fd.ops.mul(a, 0.5), fd.ops.relu(a), fd.ops.cast(a, D.Half)]
        outs += [fd.ops.cast(fd.ops.mul(a, b), dtype), fd.ops.gt(a, 0.0), fd.ops.sum(a, [0])]
        for out in outs:
            fd.add_output(out)
    found = [y.cpu() for y in fd.run([x, x])]
    wide = x.cpu().float()
    wanted = [
        wide + wide,
        wide * 0.5,
        wide.relu().to(x.dtype),
        wide.half(),
        (wide * wide).to(x.dtype),
        wide > 0,
        wide.sum(0).to(x.dtype),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype
        assert torch.equal(one.float(), other.float())
