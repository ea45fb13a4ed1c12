"""Every recorded definition: torch's values, and kernels for GPUs that are not here."""

from __future__ import annotations

import pytest
import torch

from bench.measure.errors import max_error
from bench.recorded.definitions import load, make_inputs, record
from bench.recorded.shrink import shrink
from tritonfuser import DataType
from tritonfuser.frontend.inspect.oracle import Evaluation

ENTRIES = load()
by_name = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)


def tolerance(fusion):
    """Relative to an output's largest magnitude: one step of the narrowest type on the way."""
    dtypes = {v.dtype for n in fusion.nodes for v in n.outs} | {v.dtype for v in fusion.inputs}
    return 2**-7 if DataType.BFloat16 in dtypes else 1e-5


def check(entry, device):
    fd = record(entry)
    fusion = fd.fusion.ir
    inputs = make_inputs(entry, fusion, device)
    expected = Evaluation(fusion, inputs, double=True).outputs
    actual = fd.run(inputs)
    places = [place for place, out in enumerate(fusion.outputs) if not out.hidden]
    assert [t.dtype for t in actual] == [fusion.outputs[i].value.dtype.info.torch for i in places]
    assert max_error(actual, [expected[i] for i in places]) <= tolerance(fusion)
    for out, value in zip(fusion.outputs, expected, strict=True):
        if out.alias_of is not None:
            written = inputs[fusion.inputs.index(out.alias_of)]
            assert max_error([written], [value]) <= tolerance(fusion)
    again = fd.run(make_inputs(entry, fusion, device))
    for one, other in zip(actual, again, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@by_name
def test_values_at_reduced_size(entry):
    check(shrink(entry), "cpu")


@pytest.mark.slow
@by_name
def test_values_at_full_size(entry):
    check(entry, "cpu")


@pytest.mark.gpu
@by_name
def test_values_on_the_gpu(entry):
    check(entry, "cuda")


def compiled(entry, arch):
    fd = record(entry)
    return fd.compile_for(arch, make_inputs(entry, fd.fusion.ir, "meta"))


@pytest.mark.covering
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
@by_name
def test_compiles(entry, arch):
    binary = "hsaco" if arch.startswith("gfx") else "cubin"
    for report in compiled(entry, arch):
        assert report.asm[binary]
        assert report.spill_bytes == 0 or arch != "sm_90", report.name
