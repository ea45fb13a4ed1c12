"""Bound plans: what they give, and what they refuse."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser import (
    CaptureError,
    DataType,
    Fusion,
    FusionDefinition,
    FusionGuard,
    InputError,
    ParallelType,
    PointwiseParams,
    define_tensor,
    multidevice,
    ops,
)
from tritonfuser.cache.calls import profiling
from tritonfuser.cache.calls.binding import Binding
from tritonfuser.cache.calls.guarded_calls import MAX_TORCH_GUARDS
from tritonfuser.compat import nvfuser_direct
from tritonfuser.frontend.vocabulary.unavailable import UnavailableError


def summed():
    """a + b of two matrices of any size."""
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1, -1], contiguity=False)
        b = fd.define_tensor([-1, -1], contiguity=False)
        fd.add_output(fd.ops.add(a, b))
    return fd


@pytest.fixture
def looks(monkeypatch):
    """A list that gets an entry whenever a call is looked at closely."""
    seen = []
    refusal = Binding.input_error

    def counted(self, inputs):
        seen.append(inputs)
        return refusal(self, inputs)

    monkeypatch.setattr(Binding, "input_error", counted)
    return seen


# --- inputs --------------------------------------------------------------------------------------


def test_it_gives_what_a_run_gives(looks):
    fd = summed()
    plan = fd.plan([noise(3, 5), noise(3, 5)])
    for seed in range(3):
        a, b = noise(3, 5, seed=seed), noise(3, 5, seed=seed + 9)
        assert torch.equal(plan([a, b])[0], a + b)
        assert torch.equal(plan((b, b[:]))[0], b + b)
    assert looks == []


def test_results_of_two_calls_do_not_share_memory():
    a, b = noise(3, 5), noise(3, 5)
    plan = summed().plan([a, b])
    (one,), (other,) = plan([a, b]), plan([a, b])
    one.zero_()
    assert torch.equal(other, a + b)


WRONG = {
    "too few": (lambda a: [a], "Expected 2 inputs but got 1"),
    "too many": (lambda a: [a, a, a], "Expected 2 inputs but got 3"),
    "none": (lambda a: [], "Expected 2 inputs but got 0"),
    "shape": (lambda a: [a, a[:2]], "input 1, tv1, to have shape [3, 5]"),
    "transposed": (lambda a: [a, noise(5, 3).t()], "to have strides [5, 1], as the plan is bound"),
    "gaps": (lambda a: [noise(3, 8)[:, :5], a], "got strides [8, 1]"),
    "dtype": (lambda a: [a, a.double()], "but got a tensor of dtype double"),
    "device": (lambda a: [a, a.to("meta")], "to be a tensor with memory, but got a meta tensor"),
    "rank": (lambda a: [a, a[0]], "to be bound to a tensor of rank 2"),
    "a number": (lambda a: [a, 2.0], "to be an at::Tensor but got scalar 2"),
    "nothing": (lambda a: [a, None], "to be an at::Tensor"),
    "sparse": (lambda a: [a, a.to_sparse()], "to be a strided tensor"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("way", ["call", "out", "profiled"])
def test_misuse_is_an_error(name, way):
    a = noise(3, 5)
    plan = summed().plan([a, a])
    make, text = WRONG[name]
    out = plan.allocate() if way == "out" else None
    if out is not None:
        plan([a, a], out)
        out[0].fill_(7)
    listener = [].append
    if way == "profiled":
        profiling.add_listener(listener)
    try:
        with pytest.raises(InputError) as error:
            plan(make(a), out)
        assert text in str(error.value)
        assert out is None or bool(out[0].eq(7).all())
        assert torch.equal(plan([a, a])[0], a + a)
    finally:
        profiling.remove_listener(listener)


def test_an_error_names_the_line_of_the_input_and_says_what_to_do():
    a = noise(3, 5)
    with pytest.raises(InputError) as error:
        summed().plan([a, a])([a, a[:1]])
    assert "b = fd.define_tensor([-1, -1]" in str(error.value)
    assert "fd.run(inputs) takes inputs of any size" in str(error.value)


def test_inputs_that_fit_no_plan_are_refused_when_it_is_made():
    with pytest.raises(InputError, match="rank 2"):
        summed().plan([noise(3), noise(3, 5)])
    with pytest.raises(TypeError, match="must be a list or a tuple"):
        summed().plan(noise(3, 5))


def scaled():
    """reshape(x, [n, -1]) * s"""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        n, s = fd.define_vector(1)[0], fd.define_scalar()
        fd.add_output(fd.ops.mul(fd.ops.reshape(x, [n, -1]), s))
    return fd


def test_numbers_vary_but_not_those_in_shapes(looks):
    x = noise(12)
    plan = scaled().plan([x, 3, 2.0])
    for s in (1.5, float("nan"), float("inf"), -0.0):
        torch.testing.assert_close(plan([x, 3, s])[0], (x * s).view(3, 4), equal_nan=True)
    assert looks == []
    for s in (2, True, np.float64(0.5)):  # of other types, which the definition takes
        assert torch.equal(plan([x, 3, s])[0], (x * float(s)).view(3, 4))
    with pytest.raises(InputError, match="input 1, c0, to have value 3, as the plan is bound to"):
        plan([x, 4, 2.0])
    with pytest.raises(InputError, match="is not compatible with the expected data type"):
        plan([x, 3, 1j])
    (out,) = plan.allocate()
    for s in (np.float64(0.5), 2, 0.25):
        assert plan([x, 3, s], [out])[0] is out
        assert torch.equal(out, (x * float(s)).view(3, 4))


@pytest.mark.parametrize("given", [2**63, -(2**63) - 1])
def test_integers_that_do_not_fit(given):
    fd = record(lambda fd, x, n: fd.ops.mul(x, n), [noise(4), 1])
    plan = fd.plan([noise(4), 1])
    with pytest.raises(InputError, match="is not compatible with the expected data type"):
        plan([noise(4), given])


def test_nested_lists_are_opened():
    x = noise(12)
    plan = scaled().plan([x, [3], 2.0])
    for inputs in ([x, [3], 2.0], ([x], 3, [2.0]), [[x, 3, 2.0]]):
        assert torch.equal(plan(inputs)[0], x.view(3, 4) * 2)
        assert torch.equal(plan(inputs, plan.allocate())[0], x.view(3, 4) * 2)


def test_what_a_guard_of_torch_s_refuses_though_it_fits(looks):
    """The same tensor twice, another class, another mode: looked at once, and taken."""
    a, b = noise(3, 5), noise(3, 5, seed=1)
    plan = summed().plan([a, b])

    def runs(x, y):
        before = len(looks)
        for _ in range(3):
            assert torch.equal(plan([x, y])[0], x.detach() + y.detach())
        assert len(looks) <= before + 1

    runs(a, a)
    runs(torch.nn.Parameter(a), b)
    runs(a, b.clone().requires_grad_())
    for mode in (torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu")):
        with mode():
            runs(a, b)
    runs(a, b)


def test_guards_are_not_made_for_ever(looks):
    """Two kinds of inputs in turn: after some calls a guard for both is found."""
    a, b = noise(3, 5), torch.nn.Parameter(noise(3, 5))
    plan = summed().plan([a, a[:]])
    for _ in range(MAX_TORCH_GUARDS):
        plan([a, b])
        plan([a, a[:]])
    looks.clear()
    for x in (b, a, a[:], b):
        assert torch.equal(plan([a, x])[0], a + x.detach())
    assert looks == []


def test_signs_that_are_off():
    """torch marks the imaginary part of a conjugated tensor as negated."""
    z = torch.view_as_complex(noise(8, 2))
    plan = record(lambda fd, x: fd.ops.exp(x), [z.imag]).plan([z.imag])
    for x in (z.conj().imag, z.imag, z.conj().imag):
        torch.testing.assert_close(plan([x])[0], x.exp())
        torch.testing.assert_close(plan([x], plan.allocate())[0], x.exp())


def test_a_definition_without_inputs():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([3], 2.0, DataType.Float))
    plan = fd.plan([])
    assert plan([])[0].tolist() == [2, 2, 2]
    (out,) = plan.allocate()
    assert plan([], out=[out])[0] is out
    assert out.tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="Expected 0 inputs but got 1"):
        plan([1])


def test_params_and_what_it_shows():
    a = noise(3, 5)
    plan = summed().plan([a, a[:]], params=PointwiseParams(block_x=8))
    assert plan.params == [PointwiseParams(block_x=8, axes=(0, 1))]
    assert [kernel.name for kernel in plan.kernels] == ["s0_pointwise_add"]
    assert repr(plan) == "<BoundPlan on cpu: s0_pointwise_add>"
    assert plan.device == torch.device("cpu")
    assert plan.text.startswith("def run(inputs):")
    assert torch.equal(plan([a, a[:]])[0], a + a)


def test_it_keeps_no_tensors():
    a, b = noise(3, 5), noise(3, 5)
    plan = summed().plan([a, b])
    out = plan.allocate()
    plan([a, b], out)
    refs = [weakref.ref(x) for x in (a, b, out[0])]
    del a, b, out
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3


def test_every_way_to_a_definition_has_plans():
    x = noise(4)
    fusion = Fusion()
    with FusionGuard(fusion):
        t = define_tensor(shape=[-1], contiguity=True)
        fusion.add_input(t)
        fusion.add_output(ops.relu(t))
    assert torch.equal(fusion.plan([x])([x])[0], x.relu())
    fd = record(lambda fd, x: fd.ops.relu(x), [x])
    fd.run([x])
    assert torch.equal(fd.fec.plan([x])([x])[0], x.relu())
    with nvfuser_direct.FusionDefinition() as direct:
        t = direct.define_tensor(shape=[-1], contiguity=True)
        direct.add_output(direct.ops.relu(t))
    with pytest.raises(ValueError, match="unsupported device cpu"):
        direct.plan([x])


def test_a_mesh_has_none():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        y = fd.ops.relu(x)
        fd.add_output(y)
        for value in (x, y):
            value.set_device_mesh(multidevice.DeviceMesh([0]))
            value.outer_split(0, 1)
            value.axis(0).parallelize(ParallelType.mesh_x)
    with pytest.raises(UnavailableError, match="over a mesh"):
        fd.plan([noise(2, 3)])


# --- profilers, graphs ----------------------------------------------------------------------------


def test_profilers_see_bound_plans():
    a, b = noise(3, 5), noise(3, 5)
    plan = summed().plan([a, b])
    heard = []
    listener = heard.append
    profiling.add_listener(listener)
    try:
        (out,) = plan.allocate()
        assert torch.equal(plan([a, b])[0], a + b)
        assert plan([a, b], [out])[0] is out
        assert torch.equal(out, a + b)
        assert plan([a, b], [None])[0] is not out
        assert len(heard) == 3
    finally:
        profiling.remove_listener(listener)
    plan([a, b])
    plan([a, b], [out])
    assert len(heard) == 3


def test_a_plan_on_a_cpu_has_no_graph():
    a, b = noise(3, 5), noise(3, 5)
    plan = summed().plan([a, b])
    with pytest.raises(CaptureError, match="runs on cpu cannot be captured"):
        plan.graph([a, b])
    with pytest.raises(InputError, match="shape"):
        plan.graph([a, b[:1]])


def test_a_plan_at_sizes_that_vary():
    """Several signatures of one definition: each plan takes its own alone."""
    fd = summed()
    sizes = [(3, 5), (4, 6), (7, 9), (12, 33), (5, 33)]
    plans = {size: fd.plan([noise(*size), noise(*size)]) for size in sizes}
    outs = {size: plan.allocate() for size, plan in plans.items()}
    for _ in range(2):
        for size, plan in plans.items():
            a, b = noise(*size, seed=1), noise(*size, seed=2)
            assert torch.equal(plan([a, b])[0], a + b)
            assert torch.equal(plan([a, b], outs[size])[0], a + b)
            for other in sizes:
                if other != size:
                    with pytest.raises(InputError, match="shape"):
                        plan([noise(*other), noise(*other)])
                    with pytest.raises(InputError, match=r"out\[0\]: expected shape"):
                        plan([a, b], outs[other])
