"""How many kernels known patterns take on an H200, and by which schedulers."""

from __future__ import annotations

import pytest
import torch

from bench import cases
from bench.recorded.definitions import load, make_inputs, record
from tritonfuser import DataType, FusionDefinition

ARCH = "sm_90"

ONE_KERNEL = {
    "softmax": "inner_persistent",
    "softmax_bwd": "inner_persistent",
    "layernorm": "inner_persistent",
    "rmsnorm": "inner_persistent",
    "bias_gelu": "pointwise",
    "sum_inner": "reduction",
}


def schedulers(fd: FusionDefinition, inputs: list[torch.Tensor]) -> list[str]:
    return [s.scheduler for s in fd.segments(inputs, arch=ARCH).segments]


def of_case(name: str, shape: tuple[int, ...]) -> list[str]:
    case = cases.BY_NAME[name]
    fd = case.record(shape, torch.bfloat16)
    return schedulers(fd, case.inputs(shape, torch.bfloat16, "meta"))


@pytest.mark.parametrize("name", ONE_KERNEL)
@pytest.mark.parametrize("shape", [(64, 768), (2048, 4096), (1024, 20480)])
def test_one_kernel(name, shape):
    assert of_case(name, shape) == [ONE_KERNEL[name]]


@pytest.mark.parametrize("name", ["layernorm_bwd", "rmsnorm_bwd"])
@pytest.mark.parametrize("shape", [(2048, 768), (2048, 4096), (1024, 8192)])
def test_norm_backward_is_one_walk_over_the_rows_and_a_small_sum(name, shape):
    assert of_case(name, shape) == ["inner_outer_persistent", "reduction"]


@pytest.mark.parametrize("name", ["layernorm_bwd", "rmsnorm_bwd"])
def test_norm_backward_of_rows_that_leave_no_room_for_partial_results(name):
    """Programs share rows, of any length."""
    for columns in (20480, 20482):
        assert of_case(name, (16384, columns)) == ["inner_outer_persistent", "reduction"]


def test_weights_of_an_instance_norm_are_summed_along_with_its_rows():
    """A sum over (n, h, w) is one over n of the sums over (h, w) that the rows' kernel adds up."""
    assert of_case("instancenorm_bwd", (64, 32, 28, 28)) == ["inner_persistent", "reduction"]


def normalised(rows: int, columns: int) -> tuple[FusionDefinition, list[torch.Tensor]]:
    """Columns normalised over the rows, as batch norm does."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[rows, columns], contiguity=True, dtype=DataType.Float)
        var, mean = fd.ops.var_mean(x, dims=[0], correction=0)
        centered = fd.ops.sub(x, fd.ops.broadcast(mean, [True, False]))
        rstd = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
        fd.add_output(fd.ops.mul(centered, fd.ops.broadcast(rstd, [True, False])))
    return fd, [torch.empty(rows, columns, device="meta")]


def test_outer_normalisation_is_one_kernel():
    assert schedulers(*normalised(512, 8192)) == ["outer_persistent"]


def test_few_long_columns_are_reduced_by_more_programs_first():
    found = schedulers(*normalised(1 << 17, 64))
    assert found[-1] == "pointwise"
    assert set(found[:-1]) <= {"reduction", "outer_persistent", "inner_persistent"}


def test_a_chain_of_silu_and_scale_is_one_kernel():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[1024, 4096], contiguity=True, dtype=DataType.BFloat16)
        for _ in range(5):
            x = fd.ops.mul(fd.ops.silu(x), 1.5)
        fd.add_output(x)
    assert schedulers(fd, [torch.empty(1024, 4096, dtype=torch.bfloat16, device="meta")]) == [
        "pointwise"
    ]


def test_tensors_along_different_axes_are_transposed_by_tiles():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[1024, 2048], contiguity=True, dtype=DataType.Float)
        y = fd.define_tensor(shape=[2048, 1024], contiguity=True, dtype=DataType.Float)
        fd.add_output(fd.ops.add(x, fd.ops.permute(y, [1, 0])))
    inputs = [torch.empty(1024, 2048, device="meta"), torch.empty(2048, 1024, device="meta")]
    assert schedulers(fd, inputs) == ["transpose"]


def test_views_of_inputs_launch_nothing():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[4, 6], contiguity=True)
        fd.add_output(fd.ops.reshape(fd.ops.permute(x, [1, 0]), [6, 2, 2]))
    x = torch.randn(4, 6)
    assert fd.segments([x]).segments == ()
    (out,) = fd.run([x])
    assert out.data_ptr() == x.data_ptr()
    assert torch.equal(out, x.t().reshape(6, 2, 2))


KERNELS = {"nanogpt": 33, "hf-bert": 24, "hf-llama3-block": 29, "convnet": 25}
"""Kernels of one run of each definition; fewer is welcome, more is a finding. Two of the Llama's
compute sines and cosines once for all heads."""


@pytest.mark.parametrize("model", KERNELS)
def test_kernels_of_the_recorded_definitions(model):
    total = 0
    for entry in load():
        if entry.model == model:
            fd = record(entry)
            total += len(schedulers(fd, make_inputs(entry, fd.fusion.ir, "meta")))
    assert total <= KERNELS[model]
