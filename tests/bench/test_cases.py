"""The benchmark cases: right numbers, and kernels that look right for GPUs that are not here."""

from __future__ import annotations

import pytest
import torch

from bench.cases import CASES, SHAPES
from bench.report import flat, max_error

by_name = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def run(case, shape, dtype, device):
    torch.manual_seed(0)
    inputs = case.inputs(shape, dtype, device)
    expected = flat(case.eager(*(t.double() for t in inputs)))
    actual = case.record(shape, dtype).run(inputs)
    assert len(actual) <= len(expected)
    return max_error(actual, [e.reshape(a.shape) for a, e in zip(actual, expected, strict=False)])


@pytest.mark.parametrize("shape", [(24, 96), (7, 130), (33, 17)], ids=str)
@by_name
def test_values_on_the_cpu(case, shape):
    assert run(case, shape, torch.bfloat16, "cpu") <= 2**-8
    assert run(case, shape, torch.float32, "cpu") <= 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@by_name
def test_values_on_the_gpu(case, shape):
    assert run(case, shape, torch.bfloat16, "cuda") <= 2**-8


def compiled(case, shape, arch):
    inputs = case.inputs(shape, torch.bfloat16, "meta")
    return case.record(shape, torch.bfloat16).compile_for(arch, inputs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@by_name
def test_kernels_for_sm_90(case, shape):
    reports = compiled(case, shape, "sm_90")
    assert len(reports) <= (2 if "_bwd" in case.name or "sum" in case.name else 1)
    assert [r.spill_bytes for r in reports] == [0] * len(reports)
    assert [r.max_load_bytes for r in reports] == [16] * len(reports)


@pytest.mark.parametrize("arch", ["sm_80", "sm_100", "gfx942"])
@by_name
def test_compiles_for_other_targets(case, arch):
    binary = "hsaco" if arch.startswith("gfx") else "cubin"
    for shape in SHAPES:
        assert all(report.asm[binary] for report in compiled(case, shape, arch))
