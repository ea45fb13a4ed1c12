"""GPU tensors beside CPU scalars: refused and accepted by rule, with stand-ins for GPU tensors."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tritonfuser import FusionDefinition
from tritonfuser.cache.calls.diagnosis import explain_mismatch
from tritonfuser.frontend.run.arguments import run_options, with_device

TEXT = "KernelExecutor does not support the Fusion provided."


@pytest.fixture
def gpu():
    """Makes tensors that say they are on a GPU."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield lambda *sizes, index=0: torch.empty(sizes, device=f"cuda:{index}")


def recorded(record):
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1], contiguity=True)
        s = fd.define_tensor([], is_cpu=True)
        t = fd.define_tensor([], is_cpu=True)
        record(fd, a, s, t)
    return fd.fusion.ir


def explained(record, inputs):
    error = explain_mismatch(recorded(record), inputs, abstract=True)
    return None if error is None else str(error)


def on_cpu(*sizes):
    return torch.empty(sizes, device="cpu")


def test_cpu_scalars_may_stand_beside_gpu_tensors(gpu):
    def record(fd, a, s, t):
        fd.add_output(fd.ops.mul(fd.ops.mul(a, s), t))
        fd.add_output(fd.ops.mul(fd.ops.mul(s, t), a))
        fd.add_output(s)

    assert explained(record, [gpu(3), on_cpu(), on_cpu()]) is None
    assert explained(record, [gpu(3), gpu(), gpu()]) is None
    assert explained(record, [on_cpu(3), on_cpu(), on_cpu()]) is None


def test_other_cpu_tensors_may_not(gpu):
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1], contiguity=True)
        b = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.add(a, b))
    error = explain_mismatch(fd.fusion.ir, [gpu(3), on_cpu(3)], abstract=True)
    assert TEXT in str(error)
    assert "Input 1 is on the CPU" in str(error)


def test_a_kernel_cannot_be_made_of_cpu_scalars_alone(gpu):
    def record(fd, a, s, t):
        fd.add_output(fd.ops.neg(a))
        fd.add_output(fd.ops.neg(fd.ops.mul(s, t)))

    found = explained(record, [gpu(3), on_cpu(), on_cpu()])
    assert f"{TEXT} neg takes CPU scalars alone" in found
    assert f"at {__file__}" in found
    assert explained(record, [gpu(3), gpu(), on_cpu()]) is None
    assert explained(record, [on_cpu(3), on_cpu(), on_cpu()]) is None


def test_a_device_asked_for_must_be_that_of_the_tensors(gpu):
    inputs = [gpu(3), on_cpu(), on_cpu()]
    for device in ("cuda", "cuda:0", 0, torch.device("cuda", 0), None):
        # the tensors say where; nothing is asked of the executor
        assert with_device(run_options(device=device), inputs).device is None
    for device in ("cuda:1", 1, "cpu"):
        with pytest.raises(RuntimeError, match="was asked for, but inputs are on cuda:0"):
            with_device(run_options(device=device), inputs)


def test_naming_the_device_of_the_inputs_leaves_nothing_to_ask(monkeypatch):
    """Tracers name it in every call; no options are made of it then."""
    x = torch.arange(3.0)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.from_pytorch(x)))
    fd.run([x])

    def with_options(*args):
        raise AssertionError("options were made")

    monkeypatch.setattr(fd, "_run", with_options)
    (found,) = fd.run([x], device=x.device)
    assert torch.equal(found, -x)
    with pytest.raises(AssertionError, match="options were made"):
        fd.run([x], device="cpu")
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="'cuda:0' was asked for, but inputs are on cpu"):
        fd.run([x], device=0)
    with pytest.raises(RuntimeError, match="to be an at::Tensor but got scalar 3"):
        fd.run([3], device=x.device)


def test_one_tensor_says_where_a_run_is(gpu):
    """That of most dims: 0-dim ones may be CPU scalars."""
    with FusionDefinition() as fd:
        s = fd.define_tensor([], is_cpu=True)
        a = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.mul(a, s))
    assert not fd._decides_device([on_cpu(), gpu(3)], 0)  # nothing was run: nobody decides yet
    fd.run([torch.ones(()), torch.ones(3)])
    for device in (0, torch.device("cuda", 0)):
        assert fd._decides_device([on_cpu(), gpu(3)], device)
        assert fd._decides_device([gpu(), gpu(3)], device)
    for device in (1, -1, True, "cuda:0", "cuda", torch.device("cuda"), torch.device("cpu")):
        assert not fd._decides_device([on_cpu(), gpu(3)], device)
    assert fd._decides_device([on_cpu(), on_cpu(3)], torch.device("cpu"))
    assert not fd._decides_device([on_cpu(), on_cpu(3)], -1)
    for inputs in ([on_cpu()], [[on_cpu(), gpu(3)]], [on_cpu(), 3.0], iter(())):
        assert not fd._decides_device(inputs, 0)


def test_a_cpu_scalar_alone_does_not_say_where_a_run_is():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([], is_cpu=True)))
    fd.run([torch.ones(())])
    assert not fd._decides_device([on_cpu()], torch.device("cpu"))


def test_from_pytorch_wants_one_device(gpu):
    with FusionDefinition() as fd:
        fd.from_pytorch(gpu(3))
        fd.from_pytorch(on_cpu())
        with pytest.raises(ValueError, match="Found unsupported device cpu"):
            fd.from_pytorch(on_cpu(3))
    assert "is_cpu=True" in repr(fd).splitlines()[2]


def test_tensors_that_are_not_strided_are_refused():
    fusion = recorded(lambda fd, a, s, t: fd.add_output(a))
    error = explain_mismatch(fusion, [torch.ones(3).to_sparse(), on_cpu(), on_cpu()])
    assert "to be a strided tensor, but got a Tensor of layout torch.sparse_coo" in str(error)
