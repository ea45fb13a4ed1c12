"""Columns of rows that begin inside lines of memory: a sum in two steps, then a flat kernel."""

from __future__ import annotations

import pytest
import torch

from bench.cases import BY_NAME

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
