"""Inputs that require grad: outputs are detached, all of them, and one warning says so."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
from torch.autograd import forward_ad

from tests.frontend.travel.modules import gelu
from tests.lowering.graphs import noise
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.calls import gradient_warning

HEAD = "input 1 requires grad, and no gradient flows"


@pytest.fixture(autouse=True)
def not_warned_yet(monkeypatch):
    monkeypatch.setattr(gradient_warning, "_warned", False)


def summed():
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.add(a, b))
    return fd


def graded(*shape):
    return noise(*shape).requires_grad_()


CALLS = {
    "run": lambda fd, x: fd.run(x),
    "nested": lambda fd, x: fd.run([[x[0]], x[1]]),
    "execute": lambda fd, x: fd.fusion.execute(x),
    "with params": lambda fd, x: fd.run(x, params=fd.heuristics([t.detach() for t in x])),
    "run_kernel": lambda fd, x: fd.run_kernel(x),
    "plan": lambda fd, x: fd.plan(x),
    "validate": lambda fd, x: fd.validate(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_warning_in_a_process(name):
    fd, x = summed(), [noise(3, 4), graded(3, 4)]
    with pytest.warns(UserWarning, match=HEAD) as caught:
        CALLS[name](fd, x)
    (warning,) = caught
    assert warning.filename == __file__
    for part in ("tensor.detach()", "torch.no_grad()", "torch.autograd.Function"):
        assert part in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[name](summed(), x)
        CALLS[name](fd, [graded(5, 4), graded(5, 4)])


def test_a_definition_that_ran_on_plain_tensors_first():
    fd, x, y = summed(), noise(3, 4), noise(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            fd.run([x, y])
        plan = fd.plan([x, y])
        out = plan.allocate()
        plan([x, y], out=out)
    calls = (
        lambda w: fd.run([x, w]),
        lambda w: plan([x, w]),
        lambda w: plan([x, w], out=out),
    )
    for call in calls:
        gradient_warning._warned = False
        with pytest.warns(UserWarning, match=HEAD):
            # After fd.plan the first call only finds the plan, and asks nothing.
            for _ in range(2):
                call(graded(3, 4))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_warning_where_torch_records_nothing(mode):
    fd, x = summed(), [noise(3, 4), graded(3, 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mode():
            for _ in range(3):
                fd.run(x)
        fd.heuristics(x)
        fd.explain(x)
        fd.kernels(x)
    with pytest.warns(UserWarning, match=HEAD):
        fd.run([graded(2, 4).detach(), graded(2, 4)])


def test_no_warning_in_a_function_of_autograd():
    fd = gelu(FusionDefinition())

    class Gelu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return fd.run([x])[0]

        @staticmethod
        def backward(ctx, grad):
            return grad

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Gelu.apply(graded(2, 3)).requires_grad


def everything():
    """Outputs of kernels, of torch, views of inputs and of results, and inputs."""
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        c = fd.define_tensor([-1], contiguity=True, dtype=DataType.ComplexFloat)
        product = fd.ops.matmul(a, b)
        made = (
            fd.ops.relu(a),
            product,
            fd.ops.permute(product, [1, 0]),
            fd.ops.matmul(product, fd.ops.permute(a, [1, 0])),
            fd.ops.permute(a, [1, 0]),
            fd.ops.slice(b, [1, 0], [3, 2]),
            fd.ops.neg(c),
            fd.ops.reshape(c, [2, 2]),
            fd.ops.real(c),
            fd.ops.topk(b, 2, 1)[0],
        )
        for one in made:
            fd.add_output(one)
    return fd, [noise(4, 4), noise(4, 4), torch.complex(noise(4), noise(4))]


@pytest.mark.filterwarnings("ignore:input")
def test_outputs_are_detached():
    fd, plain = everything()
    wanted = fd.run(plain)
    leaves = [x.clone().requires_grad_() for x in plain]
    for given in (leaves, [leaf * 1.0 for leaf in leaves]):
        for run in (fd.run, fd.plan(given), fd.plan(plain), fd.run):
            for out, expected in zip(run(given), wanted, strict=True):
                assert not out.requires_grad
                assert out.grad_fn is None
                assert torch.equal(out, expected)


@pytest.mark.filterwarnings("ignore:input")
def test_outputs_have_no_tangents():
    """None of them: those of views and of torch would be a part of the derivative."""
    fd, plain = everything()
    wanted = fd.run(plain)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, torch.ones_like(x)) for x in plain]
        for run in (fd.run, fd.plan(duals), fd.plan(plain), fd.run):
            for out, expected in zip(run(duals), wanted, strict=True):
                assert forward_ad.unpack_dual(out).tangent is None
                assert torch.equal(out, expected)


@pytest.mark.parametrize("name", CALLS)
def test_a_tangent_is_warned_of(name):
    with forward_ad.dual_level():
        given = [noise(3, 4), forward_ad.make_dual(noise(3, 4), noise(3, 4))]
        with pytest.warns(UserWarning, match="input 1 has a tangent, and none flows"):
            CALLS[name](summed(), given)


@pytest.mark.filterwarnings("ignore:input")
def test_views_are_of_the_inputs_memory():
    fd, _ = everything()
    given = [graded(4, 4), graded(4, 4), torch.complex(noise(4), noise(4)).requires_grad_()]
    outputs = fd.run(given)
    assert outputs[4].data_ptr() == given[0].data_ptr()
    assert outputs[7].data_ptr() == given[2].data_ptr()


@pytest.mark.filterwarnings("ignore:input")
def test_an_input_that_is_written_and_one_that_is_returned():
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.mul(a, 2.0), b)
        fd.add_output(a)
    x, y = noise(3), noise(3)
    a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
    (returned,) = fd.run([a, b])
    assert returned is a
    assert torch.equal(b.detach(), x * 2)
    assert b.is_leaf
    assert b.grad_fn is None


@pytest.mark.filterwarnings("ignore:input")
def test_nothing_is_kept():
    fd, x = summed(), graded(3, 4)
    fd.run([x, x])
    gc.collect()
    assert x.grad_fn is None
