"""Columns of rows that begin inside lines of memory: a sum in two steps, then a flat kernel."""

from __future__ import annotations

import pytest
import torch

from bench.cases import BY_NAME
from bench.random_graphs.growing import entry
from bench.recorded.definitions import make_inputs, record
from tests.lowering.harness import compare, lowered, planned, poisoned, small
from tritonfuser import FusionDefinition
from tritonfuser.devices import known
from tritonfuser.frontend.inspect.oracle import reference

ARCH = "sm_90"


def of_case(name, size, dtype=torch.bfloat16):
    case = BY_NAME[name]
    fd = case.record(size, dtype)
    return fd, case.inputs(size, dtype, "meta")


def schedulers(name, size):
    fd, inputs = of_case(name, size)
    return [s.scheduler for s in fd.segments(inputs, arch=ARCH).segments]


@pytest.mark.parametrize("columns", [8193, 8194, 8200])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_kernel_behind_the_sum_has_the_widest_loads(columns, dtype):
    fd, inputs = of_case("softmax_columns_bwd", (8192, columns), dtype)
    reports = fd.compile_for(ARCH, inputs)
    assert [r.scheduler for r in reports] == ["reduction", "reduction", "pointwise"]
    assert (reports[2].max_load_bytes, reports[2].max_store_bytes) == (16, 16)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("softmax_columns", (8192, 8192)),
        ("softmax_columns_bwd", (8192, 8192)),
        ("softmax_columns_bwd", (128, 262145)),
    ],
)
def test_one_kernel_where_two_would_read_no_less(name, size):
    assert schedulers(name, size) == ["outer_persistent"]


@pytest.mark.parametrize("count", [1, 4])
def test_loads_ahead_of_several_tensors_fit_in_shared_memory(count):
    """An average of image batches: a program has 4 KiB of each row of every tensor."""
    images = [torch.empty(64, 150528, device="meta") for _ in range(count)]
    with FusionDefinition() as fd:
        product, *others = [fd.from_pytorch(image) for image in images]
        for other in others:
            product = fd.ops.mul(product, other)
        fd.add_output(fd.ops.sum(product, [0]))
    (report,) = fd.compile_for("sm_90", images)
    assert report.shared_bytes <= known("sm_90").shared_bytes_per_block
    assert report.max_load_bytes == 16


def test_reductions_over_other_dims_share_rows_out_alike():
    """A sum over the rows of 64 x 64, and moments over both dims of 1 x 64 x 64 before the last."""
    grown = entry(52014, 22, bytes=1 << 15)
    fd = record(grown)
    inputs = make_inputs(grown, fd.fusion.ir, torch.device("cpu"))
    wanted = reference(fd.fusion.ir, inputs)
    found = lowered(fd, inputs, small(1))
    with poisoned():
        compare(planned(found, inputs, small(1)).run(inputs), wanted)
