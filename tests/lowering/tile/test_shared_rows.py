"""Rows that several programs share: numbers by the interpreter, what is refused, what compiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.graphs import layer_norm_backward, noise
from tests.lowering.harness import CPU, in_one_line_each, lowered, record
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.dtypes import DataType
from tritonfuser.errors import ParamsError
from tritonfuser.lowering.backend.compile import compile_kernel


def layer_norm(fd, x, dy, w, mean, scale):
    """Backward, from the statistics that forward has kept."""
    hat = fd.ops.mul(fd.ops.sub(x, mean), scale)
    grad = fd.ops.mul(dy, w)
    means = [along(fd, item) for item in (fd.ops.mul(grad, hat), grad)]
    dx = fd.ops.sub(fd.ops.sub(grad, means[1]), fd.ops.mul(hat, means[0]))
    sums = [fd.ops.sum(item, [0]) for item in (fd.ops.mul(dy, hat), dy)]
    return fd.ops.mul(scale, dx), *sums


def rms_norm(fd, x, dy, w, mean, scale):
    hat, grad = fd.ops.mul(x, scale), fd.ops.mul(dy, w)
    dx = fd.ops.sub(grad, fd.ops.mul(hat, along(fd, fd.ops.mul(grad, hat))))
    return fd.ops.mul(scale, dx), fd.ops.sum(fd.ops.mul(dy, hat), [0])


def moments(fd, x, dy, w, mean, scale):
    """Mean and variance of each column beside a sum along each row."""
    grad = fd.ops.mul(x, w)
    return fd.ops.add(fd.ops.sub(grad, along(fd, grad)), dy), *fd.ops.var_mean(grad, [0], 1)


def along(fd, x):
    return fd.ops.mul(fd.ops.sum(x, [-1], keepdim=True), 1 / 64)


BACKWARDS = {"layernorm": layer_norm, "rmsnorm": rms_norm, "moments": moments}


def shared(fd, inputs, **changes):
    """What comes out where the first kernel's rows are shared."""
    first, *rest = fd.heuristics(inputs)
    return fd.run(inputs, params=[replace(first, **{"block_m": 1, **changes}), *rest])


def inputs_of(rows, columns, dtype):
    """x, dy, the weight, and each row's mean and reciprocal of its deviation."""
    x, dy = noise(rows, columns, seed=1), noise(rows, columns, seed=2)
    rest = [noise(columns), x.mean(1, keepdim=True), 1 / x.std(1, keepdim=True)]
    return [tensor.to(dtype) for tensor in (x, dy, *rest)]


@pytest.mark.covering
@pytest.mark.parametrize("delay", [1, 2, 5])
@pytest.mark.parametrize(
    ("parts", "block", "tails"),
    [(2, 64, ()), (8, 16, ()), (2, 32, (32,)), (4, 16, (8, 8)), (3, 32, (16,)), (7, 16, (4,))],
)
@pytest.mark.parametrize("kind", BACKWARDS)
def test_any_parts_give_the_same(kind, parts, block, tails, delay):
    inputs = inputs_of(7, 128, torch.float32)
    fd = record(BACKWARDS[kind], inputs)
    found = shared(fd, inputs, parts=parts, block_r=block, tails=tails, delay=delay)
    expected = fd.run(inputs)
    doubled = [x.double() for x in inputs]
    exact = record(BACKWARDS[kind], doubled).run(doubled)
    for one, same, true in zip(found, expected, exact, strict=True):
        torch.testing.assert_close(one, same, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(one.double(), true, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_types(dtype):
    inputs = inputs_of(9, 96, dtype)
    fd = record(layer_norm, inputs)
    found = shared(fd, inputs, parts=2, block_r=32, tails=(16,), delay=2, num_stages=3)
    for one, same in zip(found, fd.run(inputs), strict=True):
        torch.testing.assert_close(one, same)


def test_what_is_not_finite_stays_in_its_row():
    x, dy, *rest = inputs_of(6, 64, torch.float32)
    x[1, 3], dy[2, 60], x[4] = torch.nan, torch.inf, 0.0
    # The pattern that stands for "not there yet" is one of a nan, which an input may bring along.
    dy[3, 7] = torch.tensor(-1, dtype=torch.int32).view(torch.float32)
    fd = record(layer_norm, [x, dy, *rest])
    dx, *sums = shared(fd, [x, dy, *rest], parts=4, block_r=16, delay=1)
    expected, *others = fd.run([x, dy, *rest])
    torch.testing.assert_close(dx, expected, equal_nan=True)
    assert dx[[0, 4, 5]].isfinite().all() and dx[3].isnan().all()
    for one, same in zip(sums, others, strict=True):
        torch.testing.assert_close(one, same, equal_nan=True)


def test_random_numbers_do_not_depend_on_who_draws_them():
    case = BY_NAME["dropout_layernorm_bwd"]
    inputs = case.inputs((8, 128), torch.bfloat16, "cpu")
    fd = case.record((8, 128), torch.bfloat16)
    found = shared(fd, inputs, parts=2, block_r=32, tails=(32,), delay=3)
    for one, same in zip(found, fd.run(inputs), strict=True):
        assert torch.equal(one, same)


def test_rows_of_several_dims():
    x, dy, *rest = inputs_of(20, 32, torch.float32)
    x, dy = x.view(4, 5, 32), dy.view(4, 5, 32).transpose(0, 1).contiguous().transpose(0, 1)
    inputs = [x, dy, rest[0], rest[1].view(4, 5, 1), rest[2].view(4, 5, 1)]

    def backward(fd, x, dy, w, mean, scale):
        hat, grad = fd.ops.mul(fd.ops.sub(x, mean), scale), fd.ops.mul(dy, w)
        dx = fd.ops.sub(grad, fd.ops.mul(hat, along(fd, fd.ops.mul(grad, hat))))
        return dx, fd.ops.sum(fd.ops.mul(dy, hat), [0, 1])

    fd = record(backward, inputs)
    for one, same in zip(shared(fd, inputs, parts=2, block_r=16), fd.run(inputs), strict=True):
        torch.testing.assert_close(one, same, rtol=1e-5, atol=1e-5)


# --- what a GPU is given -------------------------------------------------------------------------


def long_rows(case="layernorm_bwd", size=(16384, 20480), dtype=torch.bfloat16):
    inputs = BY_NAME[case].inputs(size, dtype, "meta")
    return lowered(BY_NAME[case].record(size, dtype), inputs)


def test_a_norm_backward_of_long_rows_reads_them_once_from_memory():
    found = long_rows()
    walk, finish = found.segmented.segments
    assert walk.scheduler == "inner_outer_persistent" and finish.scheduler == "reduction"
    source, params, groups = found.sources[0], walk.params, walk.problem.outer_batch
    assert params.parts > 1 and source.grid == (groups * params.parts, 1, 1)
    rows = -(-16384 // groups)
    assert source.workspace.count == groups * rows * 2 * params.parts
    assert source.workspace.dtype is DataType.Int32
    lines = in_one_line_each(source.text).splitlines()
    policies = [line for line in lines if "tv0 = tl.load" in line]
    assert policies and all("evict_last" in line for line in policies)


def test_the_kernel_says_how_it_is_launched():
    source = long_rows().sources[0]
    launch = source.text[source.text.index("def launch") :]
    assert "launch_cooperative_grid=True" in launch and "maxnreg=" in launch
    count = source.workspace.count
    assert f"workspace = torch.full(({count},), -1, dtype=torch.int32" in launch
    assert "workspace" not in launch.partition("):")[0]
    assert all(len(line) <= 100 for line in launch.splitlines())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("case", ["layernorm_bwd", "rmsnorm_residual_bwd"])
def test_it_compiles_and_spills_nothing(case, arch):
    source = long_rows(case).sources[0]
    kernel = compile_kernel(source, arch, tuple(arg.is_tensor for arg in source.args))
    assert kernel.binary.metadata.launch_cooperative_grid
    assert kernel.binary.metadata.maxnreg == source.max_registers == 255
    assert kernel.asm["ptx"].count("ld.relaxed.gpu") == len(source.text.split(" = wait_for(")) - 1


def test_it_compiles_for_amd():
    source = long_rows(size=(256, 20480)).sources[0]
    kernel = compile_kernel(source, "gfx942", tuple(arg.is_tensor for arg in source.args))
    assert kernel.asm["amdgcn"]


def test_sums_that_depend_on_one_another_are_not_shared():
    shapes = [(4096, 20480), (4096, 20480), (20480,)]
    found = lowered(layer_norm_backward, [torch.empty(s, device="meta") for s in shapes])
    assert all(getattr(p.params, "parts", 1) == 1 for p in found.segmented.segments)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": 2, "block_r": 32}, "rows of 96 elements, which 2 parts of 32 do not cut up"),
        ({"parts": 4, "block_r": 32}, "rows of 96 elements, which 4 parts of 32 do not cut up"),
        ({"parts": 2, "block_r": 32, "tails": (16,), "block_m": 2}, "take one at a time"),
        ({"parts": 0, "block_r": 32}, "parts: expected 1 to 4096"),
        ({"parts": 2, "block_r": 32, "tails": (16,), "align": 4}, "cannot begin at vectors of 4"),
        ({"parts": 2, "block_r": 32, "tails": (16,), "delay": 0}, "delay: expected 1 or more"),
        ({"max_registers": 8}, "max_registers: expected 0, or 16 to 255"),
    ],
)
def test_params_that_do_not_fit(changes, message):
    inputs = inputs_of(8, 96, torch.float32)
    fd = record(layer_norm, inputs)
    with pytest.raises(ParamsError, match=message):
        shared(fd, inputs, **changes)


def test_results_that_cannot_be_told():
    def counted(fd, x):
        positive = fd.ops.gt(x, 0.0)
        many = fd.ops.broadcast_in_dim(fd.ops.sum(positive, [1]), [8, 64], [0])
        scaled = fd.ops.mul(x, fd.ops.cast(many, DataType.Float))
        return scaled, fd.ops.sum(scaled, [0])

    x = noise(8, 64)
    fd = record(counted, [x])
    with pytest.raises(ParamsError, match="not all float or all double"):
        shared(fd, [x], parts=2, block_r=32)


def test_the_plan_of_a_gpu_fills_the_board():
    """The interpreter runs a kernel that tells twice: the first time nobody has told anything."""
    inputs = inputs_of(6, 64, torch.float32)
    fd = record(rms_norm, inputs)
    first, *rest = fd.heuristics(inputs)
    chosen = [replace(first, block_m=1, parts=4, block_r=16), *rest]
    found = lowered(fd, inputs, CPU, chosen)
    plan = make_plan(found, inputs, torch.device("cpu"), CPU)
    for _ in range(2):
        for one, same in zip(plan.run(inputs), fd.run(inputs), strict=True):
            torch.testing.assert_close(one, same, rtol=1e-5, atol=1e-5)
