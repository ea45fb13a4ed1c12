"""A whole training step in one definition: embedding, norms, attention, MLP, loss, gradients."""

from __future__ import annotations

import pytest
import torch

from bench.model import REAL, SMALL, Sizes, make_inputs, record, reference
from tests.e2e.checking import Schedule, gpu, round_trip

LIMIT = {torch.float32: 2e-5, torch.bfloat16: 4e-2}
"""By how much an output may be off, of its largest number: sums of products of that dtype."""
UNEVEN = Sizes(batch=1, tokens=9, width=24, heads=3, hidden=40, vocabulary=33)


def assert_near(sizes: Sizes, found: list[torch.Tensor], wanted: list[torch.Tensor], limit: float):
    for name, one, other in zip(["loss", *sizes.weights()], found, wanted, strict=True):
        assert one.shape == other.shape, name
        wide = one.double()
        assert bool(wide.isfinite().all()), name
        error = float((wide - other).abs().max() / other.abs().max())
        assert error < limit, f"{name}: off by {error:.1e} of its largest number"
        spread = float((wide - other).norm() / other.norm())
        assert spread < limit / 2, f"{name}: off by {spread:.1e} of its norm"


@pytest.mark.parametrize("dtype", LIMIT, ids=str)
@pytest.mark.parametrize("sizes", [SMALL, UNEVEN], ids=["small", "uneven"])
def test_a_small_step(sizes: Sizes, dtype: torch.dtype) -> None:
    inputs = make_inputs(sizes, dtype)
    wanted = reference(sizes, inputs)
    fd = record(sizes, dtype)
    found = fd.run(inputs)
    assert_near(sizes, found, wanted, LIMIT[dtype])
    if dtype is torch.bfloat16:
        round_trip(fd, inputs, found)
        scheduled = Schedule(gpu(1)).run(fd, inputs)
        assert scheduled is not None
        assert_near(sizes, scheduled, wanted, LIMIT[dtype])


def test_what_runs_it() -> None:
    """Attention and plain products by torch; the rest in few kernels, of several kinds."""
    sizes = SMALL
    inputs = make_inputs(sizes, torch.bfloat16)
    segments = record(sizes, torch.bfloat16).segments(inputs, arch="sm_90").segments
    by_torch = {node.op for s in segments if s.scheduler == "expr_eval" for node in s.nodes}
    assert by_torch <= {"linear", "matmul", "sdpfa_fwd", "sdpfa_bwd"}
    assert {"sdpfa_fwd", "sdpfa_bwd"} <= by_torch
    generated = [s.scheduler for s in segments if s.scheduler != "expr_eval"]
    assert "inner_persistent" in generated
    assert len(generated) <= 40


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LIMIT, ids=str)
def test_a_real_step(dtype: torch.dtype) -> None:
    """Sizes of a model, against float64 on the same device."""
    sizes = REAL
    inputs = make_inputs(sizes, dtype, "cuda")
    fd = record(sizes, dtype)
    found = fd.run(inputs)
    torch.cuda.empty_cache()
    # Products of float32 are summed in another order over thousands of elements.
    limit = LIMIT[dtype] * (10 if dtype is torch.float32 else 2)
    assert_near(sizes, found, reference(sizes, inputs), limit)
    # torch's flash attention adds its gradients up in no fixed order.
    again = fd.run(inputs)
    assert_near(sizes, again, [x.double() for x in found], LIMIT[dtype] / 4 + 1e-3)
