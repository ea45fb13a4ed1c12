"""Launches on a real device: every argument type, streams, devices, and the time a call takes."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
import triton

from tests.lowering.kernels import kernel, program_numbers, scalar, spilling, tensor, vector_add
from tritonfuser import devices
from tritonfuser.dtypes import DataType
from tritonfuser.errors import LoweringError
from tritonfuser.lowering.build import compile_kernel, report

pytestmark = pytest.mark.gpu

FLOATS = (DataType.Double, DataType.Float, DataType.Half, DataType.BFloat16)


def arch():
    return devices.of(torch.device("cuda", 0)).arch


def launcher(source, aligned=True):
    return compile_kernel(source, arch(), (aligned,) * len(source.args)).launcher(0)


@pytest.mark.parametrize("dtype", [*FLOATS, DataType.Int, DataType.Int32])
@pytest.mark.parametrize("aligned", [True, False])
def test_vector_add(dtype, aligned):
    size = 100_003
    x, y = ((torch.randn(size + 1, device="cuda") * 100).to(dtype.info.torch) for _ in range(2))
    x, y = (x[:-1], y[:-1]) if aligned else (x[1:], y[1:])
    out = torch.empty_like(x)
    launcher(vector_add(dtype, size), aligned)(x, y, out)
    assert torch.equal(out, x + y)


SCALARS = [
    (DataType.Int, 2**40 + 1),
    (DataType.Int, -1),
    (DataType.Int32, -5),
    (DataType.UInt64, 2**63 + 1),
    (DataType.Double, 0.1),
    (DataType.Float, 0.1),
    (DataType.Half, 0.5),
    (DataType.BFloat16, 0.5),
    (DataType.Bool, True),
    (DataType.Bool, False),
]


@pytest.mark.parametrize(("dtype", "value"), SCALARS)
def test_scalars_arrive(dtype, value):
    source = kernel(
        "store_scalar",
        """
        @triton.jit
        def store_scalar(s, out, UNUSED: tl.constexpr):
            tl.store(out, s)
        """,
        [scalar("s", dtype), tensor("out", dtype)],
        [("UNUSED", 3)],
    )
    out = torch.zeros((), dtype=dtype.info.torch, device="cuda")
    launcher(source)(value, out)
    assert torch.equal(out.cpu(), torch.tensor(value, dtype=dtype.info.torch))


def test_the_direct_way_and_the_general_one_agree():
    source = vector_add(size=5000)
    found = launcher(source)
    if triton.__version__.startswith("3.6."):
        assert type(found.prepared.launch).__name__ == "builtin_function_or_method"
    x = torch.randn(5000, device="cuda")
    out = torch.zeros_like(x)
    stream = torch.cuda.current_stream().cuda_stream
    launch, head, tail, _ = found.prepare()
    launch(*source.grid, stream, *head, x.data_ptr(), x.data_ptr(), out.data_ptr(), *tail)
    assert torch.equal(out, x + x)


def test_grid_of_three_axes():
    out = torch.full((2, 3, 4), -1, dtype=torch.int32, device="cuda")
    launcher(program_numbers())(out)
    assert out.flatten().tolist() == [
        x * 100 + y * 10 + z for x in range(2) for y in range(3) for z in range(4)
    ]


def test_an_empty_grid_launches_nothing():
    out = torch.full((8,), 3.0, device="cuda")
    launcher(replace(vector_add(size=8, block=8), grid=(0, 1, 1)))(out, out, out)
    torch.cuda.synchronize()
    assert out.eq(3).all()


def test_the_current_stream_is_used():
    size = 1 << 24
    run = launcher(vector_add(size=size))
    stream = torch.cuda.Stream()
    x = torch.ones(size, device="cuda")
    out = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(8):
            run(x, out, out)
    stream.synchronize()
    assert out.eq(8).all()


def test_a_launch_can_be_captured_in_a_graph():
    run = launcher(vector_add(size=256, block=256))
    x, out = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(x, out, out)
    out.zero_()
    for _ in range(3):
        graph.replay()
    assert out.eq(3).all()


def test_a_kernel_is_loaded_once_a_device():
    compiled = compile_kernel(vector_add(), arch(), (True,) * 3)
    assert compiled.launcher(0) is compiled.launcher(0)
    assert compiled.binary.module is None


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_another_device_than_the_current():
    compiled = compile_kernel(vector_add(), arch(), (True,) * 3)
    for index in (0, 1):
        x = torch.randn(1024, device=f"cuda:{index}")
        out = torch.empty_like(x)
        compiled.launcher(index)(x, x, out)
        assert torch.equal(out, x + x)


def test_too_much_shared_memory():
    source = kernel(
        "greedy",
        """
        @triton.jit
        def greedy(x, out):
            i = tl.arange(0, 128)
            j = tl.arange(0, 64)
            c = tl.zeros([128, 128], tl.float32)
            for k in tl.range(0, 4096, 64, num_stages=10):
                a = tl.load(x + i[:, None] * 4096 + (k + j)[None, :])
                b = tl.load(x + (k + j)[:, None] * 4096 + i[None, :])
                c = tl.dot(a, b, c)
            tl.store(out + i[:, None] * 128 + i[None, :], c)
        """,
        [tensor("x", DataType.BFloat16), tensor("out")],
        num_stages=10,
    )
    compiled = compile_kernel(source, arch(), (True, True))
    assert compiled.shared_bytes > devices.of(torch.device("cuda", 0)).shared_bytes_per_block
    with pytest.raises(LoweringError, match="out of resource"):
        compiled.launcher(0)


def test_report_agrees_with_the_driver():
    for source in (vector_add(), spilling()):
        run = launcher(source)
        found = report(source, "pointwise", arch(), (True,) * len(source.args))
        assert found.registers == run.registers
        assert (found.spill_bytes > 0) == (run.spills > 0)


def test_facts_of_this_device():
    facts = devices.of(torch.device("cuda"))
    assert facts is devices.of(torch.device("cuda", torch.cuda.current_device()))
    if facts.name == "NVIDIA H200":
        assert facts == devices.known("sm_90")


@pytest.mark.slow
def test_a_launch_costs_a_few_microseconds():
    source = vector_add()
    launch, head, tail, _ = launcher(source).prepare()
    x = torch.ones(1024, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    pointers = (x.data_ptr(),) * 3
    best = float("inf")
    for _ in range(20):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(200):
            launch(1, 1, 1, stream, *head, *pointers, *tail)
        best = min(best, (time.perf_counter() - started) / 200)
    assert best < 8e-6, f"{best * 1e6:.2f} us a launch"
