"""Wrong calls of everything beside a run: caches, profilers, guards, handles, schedules, compat."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch

import tritonfuser as tf
from tests.e2e.misuse.judging import fault_of
from tests.e2e.misuse.outcome import Wrong
from tests.e2e.misuse.wrong_values import PLAIN, foreign
from tritonfuser import FusionDefinition
from tritonfuser.compat import nvfuser_direct

Call = Callable[[FusionDefinition, Any, Any], Any]
"""``(fd, t, value)``: in a definition being recorded, or of one that is recorded."""

X = torch.ones(3, 4)

RECORDING: Mapping[str, Call] = {
    "define_tensor": lambda fd, t, v: fd.define_tensor(v),
    "define_tensor contiguity": lambda fd, t, v: fd.define_tensor([2, 3], v),
    "define_tensor dtype": lambda fd, t, v: fd.define_tensor([2], True, v),
    "define_tensor stride_order": lambda fd, t, v: fd.define_tensor([2, 3], stride_order=v),
    "define_tensor is_cpu": lambda fd, t, v: fd.define_tensor([2], is_cpu=v),
    "define_tensor sizes": lambda fd, t, v: fd.define_tensor(sizes=v, strides=[4, 1]),
    "define_tensor strides": lambda fd, t, v: fd.define_tensor(sizes=[3, 4], strides=v),
    "define_tensor symbolic_sizes": lambda fd, t, v: fd.define_tensor(symbolic_sizes=v),
    "define_tensor ndims": lambda fd, t, v: fd.define_tensor(ndims=v),
    "define_scalar": lambda fd, t, v: fd.define_scalar(v),
    "define_scalar dtype": lambda fd, t, v: fd.define_scalar(3, dtype=v),
    "define_constant": lambda fd, t, v: fd.define_constant(v),
    "define_vector": lambda fd, t, v: fd.define_vector(v) if v != 2**40 else None,
    "from_pytorch": lambda fd, t, v: fd.from_pytorch(v),
    "from_pytorch static_sizes": lambda fd, t, v: fd.from_pytorch(X, v),
    "add_output": lambda fd, t, v: fd.add_output(v),
    "add_output alias": lambda fd, t, v: fd.add_output(fd.ops.neg(t), v),
    "size": lambda fd, t, v: t.size(v),
    "split": lambda fd, t, v: t.split(v, 2),
    "split factor": lambda fd, t, v: t.split(0, v),
    "reorder": lambda fd, t, v: t.reorder(v),
    "axis": lambda fd, t, v: t.axis(v),
    "set_device_mesh": lambda fd, t, v: t.set_device_mesh(v),
    "parallelize": lambda fd, t, v: t.axis(0).parallelize(v),
    "set_allocation_domain": lambda fd, t, v: t.set_allocation_domain(v, True),
    "merge": lambda fd, t, v: t.merge(v),
    "merge inner": lambda fd, t, v: t.merge(0, v),
    "rfactor": lambda fd, t, v: t.rfactor(v),
    "swizzle1d": lambda fd, t, v: t.swizzle1d(v, tf.ParallelType.mesh_x),
    "swizzle1d type": lambda fd, t, v: t.swizzle1d(0, v),
    "set_memory_type": lambda fd, t, v: t.set_memory_type(v),
    "cache_before": lambda fd, t, v: t.cache_before(v),
    "operator": lambda fd, t, v: fd.fusion.ir and (t @ v),
    "run": lambda fd, t, v: fd.run([X]),
    "plan": lambda fd, t, v: fd.plan([X]),
    "validate": lambda fd, t, v: fd.validate([X]),
    "sched": lambda fd, t, v: fd.sched.schedule(v),
    "enter again": lambda fd, t, v: fd.__enter__(),
    "add_input": lambda fd, t, v: fd.fusion.add_input(v),
    "FusionGuard": lambda fd, t, v: tf.FusionGuard(v).__enter__(),
    "schedule": lambda fd, t, v: tf.schedule.schedule(v),
    "idm": lambda fd, t, v: tf.idm.IdModel(v),
}
RECORDED: Mapping[str, Call] = {
    "LRUCache": lambda fd, t, v: tf.LRUCache(v),
    "cache_compile": lambda fd, t, v: tf.LRUCache(max_fusions=3).cache_compile(v),
    "LruFusionCache": lambda fd, t, v: tf.LruFusionCache(v),
    "LruFusionCache function": lambda fd, t, v: tf.LruFusionCache(3)(lambda: v)(),
    "LruFusionCache of what": lambda fd, t, v: tf.LruFusionCache(3)(v),
    "FusionExecutorCache": lambda fd, t, v: tf.FusionExecutorCache(v),
    "FusionExecutorCache execute": lambda fd, t, v: tf.FusionExecutorCache(fd.fusion).execute(v),
    "FusionExecutorCache plans": lambda fd, t, v: tf.FusionExecutorCache(fd.fusion, max_plans=v),
    "is_compiled": lambda fd, t, v: tf.FusionExecutorCache(fd.fusion).is_compiled(v),
    "get_cuda_kernel": lambda fd, t, v: tf.FusionExecutorCache(fd.fusion).get_cuda_kernel(v),
    "get_scheduled_ir": lambda fd, t, v: tf.FusionExecutorCache(fd.fusion).get_scheduled_ir(v),
    "get_most_recent_scheduled_ir": lambda fd, t, v: tf.FusionExecutorCache(
        fd.fusion
    ).get_most_recent_scheduled_ir(),
    "KernelExecutor run": lambda fd, t, v: tf.KernelExecutor().run([X]),
    "KernelExecutor params": lambda fd, t, v: tf.KernelExecutor().params,
    "KernelExecutor compile": lambda fd, t, v: tf.KernelExecutor().compile(v),
    "KernelExecutor inputs": lambda fd, t, v: tf.KernelExecutor().compile(fd.fusion, v),
    "get_fusion_profile": lambda fd, t, v: (tf.reset_profiler(), tf.get_fusion_profile()),
    "PythonProfiler.profile": lambda fd, t, v: tf.PythonProfiler().profile,
    "compute_tensor_descriptor": lambda fd, t, v: tf.compute_tensor_descriptor(v, [4, 1]),
    "compute_tensor_descriptor strides": lambda fd, t, v: tf.compute_tensor_descriptor([3, 4], v),
    "get_val_tolerances": lambda fd, t, v: tf.get_val_tolerances(fd.fusion, v),
    "validate_with_auto_inferred_outputs": lambda fd, t, v: tf.validate_with_auto_inferred_outputs(
        fd.fusion, v, [X]
    ),
    "validate_with_auto_inferred_outputs inputs": lambda fd, t, v: (
        tf.validate_with_auto_inferred_outputs(fd.fusion, [X], v)
    ),
    "translate_fusion": lambda fd, t, v: tf.translate_fusion(v),
    "define_tensor outside": lambda fd, t, v: tf.define_tensor([3]),
    "define_scalar outside": lambda fd, t, v: tf.define_scalar(3),
    "ops outside": lambda fd, t, v: tf.ops.neg(t),
    "ops after": lambda fd, t, v: fd.ops.neg(t),
    "add_output after": lambda fd, t, v: fd.add_output(t),
    "define_tensor after": lambda fd, t, v: fd.define_tensor([3]),
    "enter after": lambda fd, t, v: fd.__enter__(),
    "foreign": lambda fd, t, v: fd.add_output(foreign()),
    "Fusion": lambda fd, t, v: tf.Fusion(v) if v is not None else None,
    "FusionDefinition": lambda fd, t, v: FusionDefinition(v) if v is not None else None,
    "last_repro_script": lambda fd, t, v: fd.last_repro_script(),
    "compile_for": lambda fd, t, v: fd.compile_for(v, [X]),
    "compile_for inputs": lambda fd, t, v: fd.compile_for("sm_90", v),
    "print_kernel": lambda fd, t, v: fd.fusion.print_kernel(v) if v is not None else None,
    "validate_definition": lambda fd, t, v: fd.validate_definition(v),
    "run_kernel after run": lambda fd, t, v: (fd.run([X]), fd.run_kernel([X])),
    "run after run_kernel": lambda fd, t, v: (fd.run_kernel([X]), fd.run([X])),
    "empty": lambda fd, t, v: FusionDefinition().run([]),
    "graph on a CPU": lambda fd, t, v: fd.plan([X]).graph([X]),
    "DeviceMesh": lambda fd, t, v: tf.multidevice.DeviceMesh(v),
    "params": lambda fd, t, v: tf.HeuristicParams.from_dict(v),
    "compat version": lambda fd, t, v: nvfuser_direct.version() >= v,
    "compat dtype": lambda fd, t, v: nvfuser_direct.pytorch_utils.torch_dtype_to_nvfuser_dtype(v),
    "compat scalar": lambda fd, t, v: nvfuser_direct.pytorch_utils.python_scalar_to_nvfuser_dtype(
        v
    ),
    "CompileParams": lambda fd, t, v: tf.CompileParams(index_type=v),
    "execute_with_dtensors": lambda fd, t, v: tf.execute_with_dtensors(fd, v),
}


def misuse(rng: random.Random) -> str:
    """One wrong call; the outcome in a word.

    Raises
    ------
    Wrong
        It is refused badly, or the definition does not run afterwards.
    """
    inside = rng.random() < 0.5
    name = rng.choice(sorted(RECORDING if inside else RECORDED))
    value = rng.choice(sorted(PLAIN))
    what = f"{name} of {value}"
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        outcome = _attempt(what, lambda: RECORDING[name](fd, t, PLAIN[value])) if inside else ""
        if outcome != "taken":
            fd.add_output(fd.ops.add(t, 1.0))
    if not inside:
        outcome = _attempt(what, lambda: RECORDED[name](fd, t, PLAIN[value]))
    if outcome == "refused" and not name.startswith("run"):
        (found,) = FusionDefinition(fd.fusion).run([X])
        if not torch.equal(found, X + 1.0):
            raise Wrong(f"{what}: wrong numbers afterwards")
    return outcome


def _attempt(what: str, call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        name = what.partition(" ")[0]
        names = {name.partition(".")[0], "nput", "efinition", "params", "Fusion", "max_", "dtype"}
        names |= {"arch", "matmul", "xecut", "rofil", "reference", "output", "define_"}
        fault = fault_of(error, names)
        if fault is not None:
            raise Wrong(f"{what}\n{fault}") from error
        return "refused"
    return "taken"
