"""Bound plans on a real device."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser import InputError, Profiler

pytestmark = pytest.mark.gpu

TWO = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


def noise(*shape, seed=0, device="cuda:0"):
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randn(*shape, generator=generator, device=device)


def add(fd, x, y):
    return fd.ops.add(x, y)


def several(fd, x, y):
    """Three kernels, a matrix product, views, and an input that is written."""
    once = fd.ops.cumsum(fd.ops.mul(x, y), 1)
    twice = fd.ops.cumsum(fd.ops.add(once, y), 0)
    fd.add_output(twice)
    fd.add_output(fd.ops.permute(once, [1, 0]))
    fd.add_output(fd.ops.matmul(x, y))
    fd.add_output(fd.ops.permute(x, [1, 0]))
    fd.add_output(fd.ops.mul(y, 2.0), y)


def wanted(x, y):
    once = torch.cumsum(x * y, 1)
    return torch.cumsum(once + y, 0), once.t(), x @ y, x.t()


def assert_results(found, x, y):
    for one, other in zip(found, wanted(x, y), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_a_plan_and_what_is_given_for_results():
    x, y = noise(64, 64), noise(64, 64, seed=1)
    plan = record(several, [x, y]).plan([x, y.clone()])
    out = plan.allocate()
    assert all(tensor.is_cuda for tensor in out)
    for seed in range(3):
        x, y = noise(64, 64, seed=seed), noise(64, 64, seed=seed + 9)
        mine, theirs = y.clone(), y.clone()
        assert_results(plan([x, mine]), x, y)
        found = plan([x, theirs], out)
        assert_results(found, x, y)
        assert [a is b for a, b in zip(found, out, strict=True)] == [True] * 4
        assert torch.equal(mine, y * 2)
        assert torch.equal(theirs, y * 2)


def test_no_memory_is_allocated_for_results_that_are_given():
    x, y = noise(1024, 1024), noise(1024, 1024)
    plan = record(add, [x, y]).plan([x, y])
    out = plan.allocate()
    plan([x, y], out)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    for _ in range(5):
        plan([x, y], out)
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: x[:4], "shape"),
        (lambda x: x.double(), "dtype"),
        (lambda x: x.cpu(), "is on the CPU"),
        (lambda x: torch.zeros(65, device="cuda")[1:], "multiple of 16"),
    ],
    ids=["shape", "dtype", "device", "alignment"],
)
def test_misuse_is_an_error(make, text):
    x = torch.zeros(64, device="cuda")
    plan = record(add, [x, x[:]]).plan([x, x[:]])
    for _ in range(2):
        with pytest.raises(InputError, match=text):
            plan([x, make(x)])
    assert torch.equal(plan([x, x + 1])[0], x + 1)


def test_a_result_that_is_misaligned():
    x = torch.zeros(64, device="cuda")
    plan = record(add, [x, x[:]]).plan([x, x[:]])
    with pytest.raises(InputError, match="multiple of 16"):
        plan([x, x + 1], [torch.zeros(65, device="cuda")[1:]])


def test_the_current_stream_is_used():
    size = 1 << 24
    x = torch.ones(size, device="cuda")
    plan = record(add, [x, x[:]]).plan([x, x[:]])
    buffers = [torch.empty_like(x) for _ in range(2)]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        for turn in range(8):
            plan([x if turn == 0 else buffers[turn % 2], x], [buffers[1 - turn % 2]])
    stream.synchronize()
    assert buffers[0].eq(9).all()


@TWO
def test_plans_of_several_devices():
    fd = record(add, [noise(64), noise(64)])
    plans = {}
    for device in ("cuda:0", "cuda:1"):
        x = noise(64, device=device)
        plans[device] = fd.plan([x, x[:]])
    for current in (0, 1):
        with torch.cuda.device(current):
            for device, plan in plans.items():
                x, y = noise(64, device=device), noise(64, seed=1, device=device)
                assert torch.equal(plan([x, y])[0], x + y)
                out = plan.allocate()
                assert out[0].device == torch.device(device)
                assert torch.equal(plan([x, y], out)[0], x + y)
                assert torch.equal(fd.run([x, y])[0], x + y)
    with pytest.raises(InputError, match="device"):
        plans["cuda:0"]([noise(64, device="cuda:1"), noise(64, device="cuda:1")])


def test_views_launch_nothing():
    x = noise(64, 64)
    plan = record(lambda fd, x: fd.ops.permute(x, [1, 0]), [x]).plan([x])
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        (out,) = plan([x])
        torch.cuda.synchronize()
    assert out.data_ptr() == x.data_ptr()
    on_device = (e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA)
    assert [e.name for e in on_device if "Sync" not in e.name] == []
    assert plan.kernels == []


def test_profilers_see_it():
    x, y = noise(64), noise(64)
    plan = record(add, [x, y]).plan([x, y])
    with Profiler() as profiler:
        plan([x, y])
        plan([x, y], plan.allocate())
    assert len(profiler.profiles) == 2
    for found in profiler.profiles:
        assert [kernel.name for kernel in found.kernel_profiles] == ["s0_pointwise_add"]


def test_32_threads_on_one_plan():
    plan = record(add, [noise(64), noise(64)]).plan([noise(64), noise(64)])
    start = threading.Barrier(32)

    def run(number):
        torch.cuda.set_device(0)
        x, y = noise(64, seed=number), noise(64, seed=number + 1)
        out = plan.allocate()
        start.wait()
        for _ in range(50):
            assert torch.equal(plan([x, y])[0], plan([x, y], out)[0])
        assert torch.equal(out[0], x + y)

    with ThreadPoolExecutor(32) as pool:
        for task in [pool.submit(run, number) for number in range(32)]:
            task.result()


def test_a_result_of_bool_beside_a_number_that_is_one():
    """``torch.bool`` is a name of the plan, and ``bool`` one of what it looks at."""
    x = noise(64)
    fd = record(lambda fd, x, flag: [fd.ops.gt(x, 0.0), fd.ops.where(flag, x, 0.0)], [x, True])
    plan = fd.plan([x, True])
    for found in (plan([x, True]), plan([x, True], out=plan.allocate()), fd.run([x, True])):
        assert torch.equal(found[0], x > 0) and torch.equal(found[1], x)


def test_nested_tensors_are_refused_by_warm_calls():
    """torch's own guard would end the process."""

    def body(fd, x):
        return fd.ops.add(x, 1.0)

    x = torch.ones(2, 8, device="cuda")
    fd = record(body, [x])
    for _ in range(3):
        fd.run([x])
    nested = torch.nested.nested_tensor([x[0], x[1]])
    with pytest.raises(InputError, match="nested"):
        fd.run([nested])
    plan = fd.plan([x])
    plan([x])
    with pytest.raises(InputError, match="nested"):
        plan([nested])
    out = plan.allocate()
    plan([x], out=out)
    with pytest.raises(InputError):
        plan([nested], out=out)
