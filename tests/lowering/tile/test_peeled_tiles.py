"""Rows cut into whole blocks and the tiles of what they leave: any cut gives the same numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from bench.measure.errors import flat, max_error
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics.params import InnerOuterPersistentParams, InnerPersistentParams

ROWS = [(6, 1100), (33, 257), (70, 44)]
CASES = [
    *("softmax", "softmax_bwd", "layernorm", "rmsnorm", "sum_inner", "max_inner", "var_inner"),
    *("sum_epilogue", "layernorm_bwd", "rmsnorm_bwd", "rmsnorm_residual_bwd"),
]


def _cut(params, row, how):
    """The params with the row in registers and two tails, or walked with one or two."""
    block = 1 << (row.bit_length() - 1)
    whole = replace(params, block_r=block, tails=(block // 2, block // 2))
    if isinstance(params, InnerOuterPersistentParams):
        return replace(whole, block_m=4)
    if how == "whole":
        return replace(whole, block_x=2, persistent=True)
    return replace(params, block_x=2, block_r=16, tails=(8, 8), persistent=False)


@pytest.mark.covering
@pytest.mark.parametrize("how", ["whole", "walked"])
@pytest.mark.parametrize("size", ROWS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_any_cut_gives_the_same(name, size, how):
    case = BY_NAME[name]
    fd = case.record(size, torch.float32)
    inputs = case.inputs(size, torch.float32, "cpu")
    params = [
        _cut(p, size[1], how) if hasattr(p, "tails") and place == 0 else p
        for place, p in enumerate(fd.heuristics(inputs))
    ]
    actual = fd.run(inputs, params=params)
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    expected = flat(case.eager(*wide))
    assert (
        max_error(actual, [e.reshape(a.shape) for a, e in zip(actual, expected, strict=False)])
        < 1e-5
    )


def _softmax():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        top = fd.ops.broadcast(fd.ops.max(x, dims=[1]), is_broadcast_dim=[False, True])
        exps = fd.ops.exp(fd.ops.sub(x, top))
        total = fd.ops.broadcast(fd.ops.sum(exps, dims=[1]), is_broadcast_dim=[False, True])
        fd.add_output(fd.ops.div(exps, total))
    return fd


@pytest.mark.covering
@pytest.mark.parametrize("block_x", [16, 2, 1])
@pytest.mark.parametrize(("block_r", "tails"), [(64, ()), (64, (32, 8)), (512, (256, 256))])
def test_softmax_of_what_is_not_finite(block_x, block_r, tails):
    x = torch.randn(40, 1000)
    x[3], x[4, :900], x[4, 950:] = -torch.inf, -torch.inf, -torch.inf
    x[5, 7], x[6, 999], x[7] = torch.inf, torch.nan, 1e30
    params = InnerPersistentParams(
        block_x=block_x, block_r=block_r, tails=tails, persistent=block_r == 512
    )
    (actual,) = _softmax().run([x], params=[params])
    torch.testing.assert_close(actual, torch.softmax(x, 1), equal_nan=True)


def test_the_sum_goes_along_with_the_maximum():
    """Two walks over a long row, not three."""
    row = [torch.empty(512, 1 << 17, device="meta")]
    (source,) = _softmax().kernels(row, arch="sm_90")
    assert source.text.count("for r_") == 2
    assert source.text.count('eviction_policy="evict_last"') == 1
    assert source.text.count('eviction_policy="evict_first"') == 1


def test_tails_that_do_not_hold_the_rest_are_refused():
    params = InnerPersistentParams(block_x=1, block_r=512, tails=(256,), persistent=True)
    with pytest.raises(ParamsError, match="tails"):
        _softmax().run([torch.randn(4, 1000)], params=[params])


def test_weights_are_not_vectors_beside_rows_of_odd_width():
    """Triton gives a thread as many neighbours as the widest load takes."""
    case = BY_NAME["rmsnorm"]
    for width, widest in ((403, 2), (406, 4), (408, 16)):
        size = (4096, width)
        fd = case.record(size, torch.bfloat16)
        inputs = case.inputs(size, torch.bfloat16, "meta")
        (report,) = fd.compile_for("sm_90", inputs)
        assert report.max_load_bytes == widest


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.bfloat16])
def test_the_maximum_of_a_walk_is_a_number_not_its_bytes(dtype):
    """A float of eight bits is stored as a byte, and computed with as a Float."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=from_torch(dtype))
        top = fd.ops.broadcast(fd.ops.max(x, dims=[1]), is_broadcast_dim=[False, True])
        exps = fd.ops.exp(fd.ops.sub(fd.ops.cast(x, DataType.Float), top))
        fd.add_output(fd.ops.sum(exps, dims=[1]))
    given = (8 * torch.randn(3, 70)).to(dtype)
    own = fd.heuristics([given])[0]
    chosen = replace(own, block_x=1, block_r=16, persistent=False)
    (actual,) = fd.run([given], params=[chosen])
    wide = given.double()
    expected = torch.exp(wide - wide.amax(1, keepdim=True)).sum(1)
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=0)
