"""What wrong runs and wrong calls beside them found: each was a bare error, a hang or no error."""

from __future__ import annotations

import math

import pytest
import torch

import tritonfuser as tf
from tests.e2e.misuse.judging import fault_of
from tests.e2e.misuse.wrong_inputs import Lying
from tests.e2e.misuse.wrong_values import endless
from tritonfuser import DataType, FusionDefinition, TritonFuserError

X = torch.ones(3, 4)


def definition(runs=0):
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.add(t, 1.0))
    for _ in range(runs):
        fd.run([X])
    return fd


def cache(call):
    return lambda fd: call(tf.FusionExecutorCache(fd.fusion))


TYPES = {
    "inputs None": lambda fd: fd.run(None),
    "inputs in themselves": lambda fd: fd.run(endless()),
    "inputs an iterator": lambda fd: fd.run(iter([X])),
    "inputs of a fusion": lambda fd: fd.fusion.execute(None),
    "inputs of a cache": cache(lambda found: found.execute(None)),
    "input as text": lambda fd: fd.repro_script_for(["x"]),
    "_enable_options 1.5": lambda fd: fd.run([X], _enable_options=1.5),
    "varying 3": lambda fd: fd.kernels([X], varying=3),
    "varying explained": lambda fd: fd.explain([X], varying=torch.device("cpu")),
    "atol a str": lambda fd: fd.validate([X], atol="1"),
    "rtol complex": lambda fd: fd.validate([X], rtol=1j),
    "reference_outputs 3": lambda fd: fd.validate([X], 3),
    "reference_outputs numbers": lambda fd: fd.audit([X], [1.0]),
    "cache_compile": lambda fd: tf.LRUCache(max_fusions=3).cache_compile(fd.run),
    "LruFusionCache": lambda fd: tf.LruFusionCache(3)(3),
    "LruFusionCache result": lambda fd: tf.LruFusionCache(3)(lambda: 3)(),
    "FusionExecutorCache": lambda fd: tf.FusionExecutorCache(3),
    "FusionExecutorCache of no plans": lambda fd: tf.FusionExecutorCache(fd.fusion, max_plans=0),
    "compile of no fusion": lambda fd: tf.KernelExecutor().compile(3),
    "translate_fusion": lambda fd: tf.translate_fusion(3),
    "Fusion of a list": lambda fd: tf.Fusion([0]),
    "FusionDefinition of a list": lambda fd: FusionDefinition([0]),
    "FusionGuard": lambda fd: tf.FusionGuard(3),
    "compute_tensor_descriptor": lambda fd: tf.compute_tensor_descriptor(3, [1]),
    "compute_tensor_descriptor of floats": lambda fd: tf.compute_tensor_descriptor([1.5], [1]),
    "inputs of print_kernel": lambda fd: fd.fusion.print_kernel(3),
    "execute_with_dtensors": lambda fd: tf.execute_with_dtensors(fd, 3),
}
VALUES = {
    "input of get_val_tolerances": lambda fd: tf.get_val_tolerances(fd.fusion, [3]),
    "input of validate_with": lambda fd: tf.validate_with_auto_inferred_outputs(
        fd.fusion, [X], [3]
    ),
    "input of more digits than Python writes": lambda fd: fd.run([10**5000]),
    "input without memory": lambda fd: fd.audit([Lying(X)]),
    "_enable_options of dicts": lambda fd: fd.run([X], _enable_options=[{}]),
    "device -1": lambda fd: fd.run([X], device=-1),
    "device 2**63": lambda fd: fd.run([X], device=2**63),
    "atol below 0": lambda fd: fd.validate([X], atol=-0.5),
    "rtol nan": lambda fd: fd.audit([X], rtol=math.nan),
    "empty": lambda fd: tf.FusionExecutorCache(tf.Fusion()),
    "executed yet": cache(lambda found: found.get_most_recent_scheduled_ir()),
}


@pytest.mark.parametrize("runs", [0, 1])
@pytest.mark.parametrize("what", TYPES)
def test_a_wrong_type_is_refused(what, runs):
    with pytest.raises(TypeError) as caught:
        TYPES[what](definition(runs))
    assert isinstance(caught.value, TritonFuserError)
    assert fault_of(caught.value, [what.split()[0]]) is None


@pytest.mark.parametrize("runs", [0, 1])
@pytest.mark.parametrize("what", VALUES)
def test_a_wrong_value_is_refused(what, runs):
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        VALUES[what](definition(runs))
    assert isinstance(caught.value, TritonFuserError)
    assert fault_of(caught.value, [what.split()[0]]) is None


RECORDED = {
    "define_vector": lambda fd, t: fd.define_vector(2**63),
    "define_tensor": lambda fd, t: fd.define_tensor(ndims=2**40),
    "size": lambda fd, t: t.size([0]),
    "reorder": lambda fd, t: t.reorder(3),
    "merge": lambda fd, t: t.merge("0"),
    "rfactor": lambda fd, t: t.rfactor(3),
    "swizzle1d": lambda fd, t: t.swizzle1d("0", 3),
    "set_memory_type": lambda fd, t: t.set_memory_type(3),
    "set_allocation_domain": lambda fd, t: t.set_allocation_domain(3),
    "define_constant": lambda fd, t: fd.define_constant([1]),
}


@pytest.mark.parametrize("what", RECORDED)
def test_a_wrong_call_of_a_definition_or_a_handle(what):
    with FusionDefinition() as fd:
        t = fd.define_tensor([3, 4])
        with pytest.raises(TritonFuserError) as caught:
            RECORDED[what](fd, t)
    assert fault_of(caught.value, [what]) is None


def test_params_that_are_wrong_when_made_have_the_users_line():
    with pytest.raises(ValueError) as error:
        tf.PointwiseParams(block_x=3)
    assert fault_of(error.value, ["block_x"]) is None


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_complex_numbers_over_a_stretched_dim_of_known_size(op, dtype):
    """Their imaginary part is a constant: it has to be stretched as they are."""
    x = torch.tensor([[1.0], [0.0], [1.0]]).to(dtype).expand(3, 5)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x, static_sizes=True)
        fd.add_output(getattr(fd.ops, op)(fd.ops.cast(t, DataType.ComplexDouble), [1]))
    fd.validate([x])


def test_a_parameter_is_written_into():
    given = torch.nn.Parameter(torch.zeros(3))
    with FusionDefinition() as fd:
        t = fd.from_pytorch(given)
        fd.add_output(fd.ops.set(fd.from_pytorch(torch.ones(3))), t)
    for _ in range(2):
        fd.run([given, torch.ones(3)])
        assert torch.equal(given, torch.ones(3))


def test_a_computed_size_that_is_no_number_of_an_op():
    with FusionDefinition() as fd:
        t, size = fd.from_pytorch(X), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.reshape(t, [fd.ops.sub(size, math.inf), 4]))
    with pytest.raises(RuntimeError, match="reshape: a size must be") as error:
        fd.run([X, 3])
    assert fault_of(error.value, ["reshape"]) is None
