"""nvFuser's names: what programs import, and the members of what they hold."""

from __future__ import annotations

import inspect

import pytest
import torch

import tritonfuser
from tritonfuser import FusionDefinition, FusionExecutorCache, LRUCache, LruFusionCache
from tritonfuser.compat import nvfuser_direct
from tritonfuser.compat.nvfuser_direct import nvfuser_direct_version

ENUMS = {
    "DataType": "Double Float Half BFloat16 Int Int32 UInt64 Index Bool Float8_e4m3fn Float8_e5m2 "
    "Float8_e8m0fnu Float4_e2m1fn Float4_e2m1fn_x2 ComplexFloat ComplexDouble Null",
    "SchedulerType": "none no_op pointwise matmul reduction inner_persistent "
    "inner_outer_persistent outer_persistent transpose expr_eval resize",
    "ParallelType": "mesh_x mesh_y mesh_z grid_x grid_y grid_z cluster_x block_x block_y block_z "
    "mma tma unroll unswitch vectorize stream serial",
    "LoadStoreOpType": "set ld_matrix cp_async tma",
    "MemoryType": "local shared global tensor symmetric",
    "CacheOp": "unspecified all_levels streaming global",
    "IdMappingMode": "exact almost_exact broadcast permissive loop",
    "CommunicatorBackend": "nccl ucc cuda none",
}


@pytest.mark.parametrize("name", ENUMS)
def test_members_of_enumerations(name):
    for namespace in (tritonfuser, nvfuser_direct):
        found = getattr(namespace, name)
        for member in ENUMS[name].split():
            assert getattr(found, member) is found[member]


MEMBERS = {
    "FusionDefinition": "ops sched fusion fec ke define_tensor define_scalar define_vector "
    "from_pytorch add_output execute manual_execute validate manual_validate validate_definition "
    "repro_script_for last_repro_script",
    "TensorView": "ndim size shape dtype is_tensor is_symbolic definition uses str domain axis "
    "split outer_split inner_split reorder merge rfactor swizzle1d set_memory_type "
    "set_device_mesh set_allocation_domain "
    "get_logical_domain get_loop_domain get_root_domain has_root",
    "Val": "dtype is_tensor is_symbolic definition uses str",
    "Expr": "inputs outputs input output str",
    "IterDomain": "extent parallelize is_broadcast is_reduction is_symbolic str",
    "TensorDomain": "logical loop str",
    "Fusion": "inputs outputs vals add_input add_output print_math print_kernel __eq__ __ne__",
    "FusionExecutorCache": "execute is_compiled fusion get_scheduled_ir "
    "get_most_recent_scheduled_ir get_cuda_kernel get_output_shardings",
    "KernelExecutor": "compile run is_compiled",
    "LRUCache": "cache_compile num_fusions stats",
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_classes(name):
    for namespace in (tritonfuser, nvfuser_direct):
        held = dir(getattr(namespace, name))
        if name == "FusionDefinition":
            held = [*held, *vars(namespace.FusionDefinition())]
        missing = [member for member in MEMBERS[name].split() if member not in held]
        assert not missing
        for member in MEMBERS[name].split():
            documented = inspect.getattr_static(getattr(namespace, name), member, None)
            assert documented is None or inspect.getdoc(documented), member


def test_classes_derive_as_nvfusers_do():
    for namespace in (tritonfuser, nvfuser_direct):
        assert issubclass(namespace.TensorView, namespace.Val)
        assert issubclass(namespace.Val, namespace.Statement)
        for name in ("Merge", "Split", "BroadcastOp", "SqueezeOp", "ReshapeOp"):
            assert issubclass(getattr(namespace, name), namespace.Expr)
        assert issubclass(namespace.Expr, namespace.Statement)
        for name in ("PointwiseParams", "ReductionParams"):
            assert issubclass(getattr(namespace, name), namespace.HeuristicParams)


def test_members_are_there_when_they_are_used():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4], contiguity=True)
        y = fd.ops.add(x, 1.0)
        fd.add_output(y)
    assert (x.ndim, x.is_tensor(), x.is_symbolic(), x.definition()) == (2, True, True, None)
    assert [use.op for use in x.uses()] == ["add"]
    assert fd.fusion.inputs() == [x]
    assert fd.fusion.outputs() == [y]
    assert x in fd.fusion.vals()
    for absent in ("fec", "ke"):
        assert not hasattr(fd, absent)
    fd.run([torch.ones(2, 4)])
    assert isinstance(fd.fec, FusionExecutorCache)
    assert not hasattr(fd, "ke")


def test_the_decorated_function_of_the_lru_cache():
    made = LruFusionCache(max_fusions=2)(FusionDefinition)
    assert made.num_fusions() == 0
    assert made.stats() == LRUCache(2).stats()


def test_submodules():
    for name in (
        "torch_dtype_to_nvfuser_dtype",
        "python_scalar_to_nvfuser_dtype",
        "retry_on_oom_or_skip_test",
        "DEVICE_PROPERTIES",
    ):
        assert hasattr(nvfuser_direct.pytorch_utils, name)
    for name in ("CuptiTimer", "FusionProfileTimer"):
        assert hasattr(nvfuser_direct.benchmark_utils, name)
    assert nvfuser_direct_version.Version(nvfuser_direct.version()) >= "0.2.34"
    assert nvfuser_direct.multidevice.DeviceMesh
    assert nvfuser_direct.idm.IdModel
    assert nvfuser_direct.schedule.can_schedule
