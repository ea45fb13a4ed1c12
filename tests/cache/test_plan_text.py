"""What a GPU would be given, with launches that are only written down."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, lowered, planned, record
from tritonfuser import DataType
from tritonfuser.cache.calls.binding import Binding
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan import launches, random_state
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.cache.plan.function_text import guarded_text
from tritonfuser.errors import CaptureError, InputError
from tritonfuser.lowering.backend.launch import PreparedLaunch
from tritonfuser.lowering.pipeline import lower


class Gpu:
    """A GPU whose tensors are the CPU's: it notes launches, and computes nothing."""

    def __init__(self):
        self.launches = []
        self.aligned = []
        self.current = 0

    def plan(self, body, inputs, index=0):
        ir = record(body, inputs).fusion.ir
        found = lower(ir, signature(ir, inputs, torch.device("cpu")), H200)
        return make_plan(found, inputs, torch.device("cuda", index), H200), ir

    def loaded(self, wanted, arch, device):
        self.aligned += [aligned for _, aligned in wanted]
        made = PreparedLaunch(lambda *args: self.launches.append(args), (), ())
        return [(made, 0.0) for _ in wanted]

    @contextmanager
    def device(self, device):
        before, self.current = self.current, device.index
        yield
        self.current = before


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    monkeypatch.setattr(launches, "loaded", made.loaded)
    monkeypatch.setattr(torch.cuda, "device", made.device)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: made.current, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda i: 100 + i, raising=False)
    empty = torch._C._dynamo.guards._empty_strided_cpu
    monkeypatch.setattr(torch._C._dynamo.guards, "_empty_strided_cuda", empty)
    return made


def missed(*given):
    raise InputError("missed")


def add(fd, x, y):
    return fd.ops.add(x, y)


def guarded_run(plan, ir, inputs, out=None):
    binding = Binding(plan, ir, inputs)
    return (binding.guarded(inputs) if out is None else binding.guarded_into(inputs, out)).run


# --- nothing to do -------------------------------------------------------------------------------


def test_views_launch_nothing(gpu):
    x = noise(4, 6)

    def body(fd, x):
        return fd.ops.permute(x, [1, 0]), fd.ops.reshape(x, [24]), x

    plan, ir = gpu.plan(body, [x])
    assert plan.steps == ()
    for word in ("k0", "stream", "get_device", "empty", "data_ptr"):
        assert word not in plan.text
    for found in (plan([x]), guarded_run(plan, ir, [x])([x], missed)):
        assert [out.data_ptr() for out in found] == [x.data_ptr()] * 3
        assert found[2] is x
    assert gpu.launches == []


# --- addresses -----------------------------------------------------------------------------------


def test_each_address_is_asked_for_once(gpu):
    x, y = noise(64, 64), noise(64, 64)

    def body(fd, x, y):
        once = fd.ops.cumsum(fd.ops.mul(x, y), 1)
        twice = fd.ops.cumsum(fd.ops.add(once, y), 0)
        return fd.ops.cumsum(fd.ops.mul(fd.ops.mul(once, twice), x), 1)

    plan, _ = gpu.plan(body, [x, y])
    assert len(plan.steps) == 3
    names = [line.split(" = ")[0] for line in plan.text.splitlines() if line.endswith("data_ptr()")]
    assert len(names) == len(set(names))
    assert plan.text.count("tv0.data_ptr()") == plan.text.count("tv1.data_ptr()") == 1
    plan([x, y])
    assert {x.data_ptr(), y.data_ptr()} <= {arg for args in gpu.launches for arg in args}


def test_a_warm_call_misses_for_a_tensor_whose_storage_was_freed(gpu):
    """torch's guards take it; its pointer is there anyway, and null."""
    inputs = [noise(8), noise(8)]
    plan, ir = gpu.plan(add, inputs)
    given, freed = [torch.empty(8)], noise(8)
    freed.untyped_storage().resize_(0)
    for lost in (0, 1):
        wrong = [freed if place == lost else x for place, x in enumerate(inputs)]
        with pytest.raises(InputError, match="missed"):
            guarded_run(plan, ir, inputs)(wrong, missed)
        with pytest.raises(InputError, match="missed"):
            guarded_run(plan, ir, inputs, given)(wrong, given, missed)
    assert gpu.launches == []
    guarded_run(plan, ir, inputs)(inputs, missed)
    assert len(gpu.launches) == 1


def test_a_tensor_without_elements_has_no_address_and_is_taken(gpu):
    inputs = [noise(0, 4), noise(3, 4)]
    plan, ir = gpu.plan(lambda fd, x, y: fd.ops.cat([x, fd.ops.neg(y)], 0), inputs)
    guarded_run(plan, ir, inputs)(inputs, missed)
    assert len(gpu.launches) == 1


def test_a_launch_goes_to_the_stream_of_its_device(gpu):
    inputs = [noise(8), noise(8)]
    plan, ir = gpu.plan(add, inputs, index=1)
    given = [torch.empty(8)]
    ways = [
        lambda: plan(inputs),
        lambda: guarded_run(plan, ir, inputs)(inputs, missed),
        lambda: guarded_run(plan, ir, inputs, given)(inputs, given, missed),
    ]
    for way in ways:
        for current in (0, 1):
            gpu.current = current
            way()
            assert gpu.launches[-1][3] == 101
            assert gpu.current == current
    assert gpu.launches[-1][-1] == given[0].data_ptr()


# --- alignment -----------------------------------------------------------------------------------


def test_inputs_must_be_as_aligned_as_the_kernel_counts_on(gpu):
    whole = torch.zeros(100)
    aligned, odd = whole[:16], whole[17:33]
    plan, ir = gpu.plan(add, [aligned, odd])
    assert gpu.aligned == [(True, False, True)]
    assert [value.name for value in plan.body.aligned] == ["tv0"]
    run = guarded_run(plan, ir, [aligned, odd])
    run([aligned, odd], missed)
    run([whole[36:52], whole[52:68]], missed)  # more than is needed
    assert len(gpu.launches) == 2
    with pytest.raises(InputError, match="missed"):
        run([odd, aligned], missed)
    error = Binding(plan, ir, [aligned, odd]).input_error([odd, aligned])
    assert "input 0, tv0, to have an address that is a multiple of 16" in str(error)
    assert len(gpu.launches) == 2


def test_results_are_aligned(gpu):
    whole = torch.zeros(100)
    inputs = [noise(16), noise(16)]
    plan, ir = gpu.plan(add, inputs)
    run = guarded_run(plan, ir, inputs, [whole[:16]])
    (out,) = run(inputs, [whole[4:20]], missed)
    assert gpu.launches[-1][-1] == out.data_ptr() == whole[4:].data_ptr()
    with pytest.raises(InputError, match="missed"):
        run(inputs, [whole[1:17]], missed)


def test_what_no_kernel_reads_may_lie_anywhere(gpu):
    whole = torch.zeros(100)

    def body(fd, x, y):
        return fd.ops.exp(x), fd.ops.reshape(y, [4, 4])

    plan, ir = gpu.plan(body, [whole[:16], whole[16:32]])
    run = guarded_run(plan, ir, [whole[:16], whole[16:32]])
    (_, view) = run([whole[:16], whole[1:17]], missed)
    assert view.data_ptr() == whole[1:].data_ptr()


# --- nothing is allocated ------------------------------------------------------------------------


def test_results_that_are_given_are_not_allocated(gpu, monkeypatch):
    inputs = [noise(16), noise(16)]
    plan, ir = gpu.plan(lambda fd, x, y: (fd.ops.add(x, y), fd.ops.mul(x, y)), inputs)
    out = [torch.empty(16), torch.empty(16)]
    run = guarded_run(plan, ir, inputs, out)
    monkeypatch.setitem(run.__globals__, "empty", missed)
    found = run(inputs, out, missed)
    assert found[0] is out[0]
    assert found[1] is out[1]
    assert [gpu.launches[-1][place] for place in (-2, -1)] == [x.data_ptr() for x in out]


# --- random numbers ------------------------------------------------------------------------------


def drawn(fd, x):
    for _ in range(2):
        x = fd.ops.add(x, fd.ops.uniform(0.0, 1.0, [8], dtype=DataType.Float))
    return x


class Generator:
    """A CUDA generator."""

    offset = 40

    def get_offset(self):
        return self.offset

    def set_offset(self, offset):
        self.offset = offset

    def initial_seed(self):
        return 1234


def test_seeds_are_the_generator_s(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "default_generators", [Generator()], raising=False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    plan, _ = gpu.plan(drawn, [noise(8)])
    for first in (10, 12):
        plan([noise(8)])
        assert [arg for arg in gpu.launches[-1][4:] if isinstance(arg, int) and arg < 5000] == [
            1234,
            first,
            1234,
            first + 1,
        ]


def test_in_a_capture_seeds_are_drawn_on_the_device(monkeypatch):
    """What a kernel is given then is where the seed lies, and an offset below zero."""
    made = []

    def randint(low, high, size, device):
        made.append(torch.full(size, 99, dtype=torch.int64))
        return made[-1]

    monkeypatch.setattr(torch, "randint", randint)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    seed, offset, held = random_state.draw(torch.device("cuda", 0), 3)
    assert held is made[0]
    assert (seed, offset) == (held.data_ptr(), -3)


def test_kernels_take_a_seed_or_the_place_of_one():
    """Offsets below zero count from the last op to the first: each its own."""

    def body(fd):
        return [fd.ops.uniform(0.0, 1.0, [64], dtype=DataType.Float) for _ in range(2)]

    found = lowered(body, [], CPU)
    plan = planned(found, [], CPU)
    held = torch.tensor([77])
    results = {}
    for name, drawn in {
        "number": (77, 0, None),
        "place": (held.data_ptr(), -2, held),
        "other": (78, 0, None),
    }.items():
        plan._scope["draw"] = lambda device, count, drawn=drawn: drawn
        results[name] = plan.defined(plan.text, "run")([])
    one, other = results["place"]
    assert torch.equal(one, results["number"][1])
    assert torch.equal(other, results["number"][0])
    assert not torch.equal(one, other)
    assert not torch.equal(results["other"][0], results["number"][0])


# --- capture -------------------------------------------------------------------------------------


def test_scalars_on_the_cpu_cannot_be_captured(gpu, monkeypatch):
    def body(fd, x):
        scale = fd.define_tensor(shape=[], contiguity=[], is_cpu=True)
        fd.add_output(fd.ops.mul(x, scale))

    fd = record(body, [noise(4)])
    ir, device = fd.fusion.ir, torch.device("cuda", 0)
    inputs = [torch.empty(4, device="meta"), torch.tensor(2.0)]
    plan = make_plan(lower(ir, signature(ir, inputs, device), H200), inputs, device, H200)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(CaptureError, match="on the CPU cannot be read"):
        plan([noise(4), torch.tensor(2.0)])
    assert gpu.launches == []


def test_the_text_of_a_guarded_call(gpu):
    """One call of the guard, then what the plain function does."""
    inputs = [noise(16), noise(16)]
    plan, _ = gpu.plan(add, inputs)
    text = guarded_text(plan.body, [])
    plain = [line.strip() for line in plan.text.splitlines()]
    lines = [line.strip() for line in text.splitlines()]
    assert lines[:5] == [
        "def make(guard, heat):",
        "def run(inputs, miss):",
        "try:",
        "[tv0, tv1] = inputs",
        "fits = not dispatch._is_in_torch_dispatch_mode"
        " and not (tv0.is_nested or tv1.is_nested) and guard(tv0, tv1)",
    ]
    launch = next(line for line in plain if line.startswith("k0("))
    assert launch in lines
    assert "if (tv0_at | tv1_at) & 15 or not (tv0_at and tv1_at):" in lines
    counted = guarded_text(plan.body, [], counted=True)
    assert [line.strip() for line in counted.splitlines() if line.strip() not in lines] == [
        "heat.left = left = heat.left - 1",
        "if left < 0:",
    ]
