"""Fusion and its guard, handles, executors, LRU caches, repro scripts, exported names."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tritonfuser
from tritonfuser import (
    DataType,
    Fusion,
    FusionDefinition,
    FusionExecutorCache,
    FusionGuard,
    KernelExecutor,
    LRUCache,
    LruFusionCache,
    TensorView,
    Val,
    define_scalar,
    define_tensor,
    ops,
)


def negation(sizes=(-1,), contiguity=True, scale=1.0):
    fusion = Fusion()
    with FusionGuard(fusion):
        x = define_tensor(shape=list(sizes), contiguity=contiguity)
        fusion.add_input(x)
        fusion.add_output(ops.mul(ops.neg(x), scale))
    return fusion


def test_a_fusion_is_recorded_under_a_guard():
    fusion = Fusion()
    with FusionGuard(fusion):
        x = define_tensor([-1, 4], contiguity=True)
        s = define_scalar()
        assert fusion.inputs() == []
        fusion.add_input(x)
        fusion.add_input(s)
        y = ops.mul(ops.neg(x), s)
        fusion.add_output(y)
        assert FusionGuard.get_current() is fusion
    assert fusion.inputs() == [x, s]
    assert fusion.outputs() == [y]
    assert len(fusion.vals()) == 4
    assert str(fusion) == (
        "inputs(tv0: Float[i0, 4], c0: Double)\n"
        "tv1: Float[i0, 4] = neg(tv0)\n"
        "tv2: Float[i0, 4] = mul(tv1, c0)\n"
        "outputs(tv2)"
    )
    x = torch.randn(3, 4)
    assert torch.equal(fusion.execute([x, 2.0])[0], -x * 2.0)
    with pytest.raises(RuntimeError, match=r"define_tensor\(\) is used outside"):
        define_tensor([2])
    with pytest.raises(RuntimeError, match=r"ops\.neg\(\) is used outside"):
        ops.neg(x)


def test_guards_nest():
    outer, inner = Fusion(), Fusion()
    with FusionGuard(outer):
        x = define_tensor([2])
        outer.add_input(x)
        with FusionGuard(inner):
            inner.add_input(define_tensor([3]))
            with pytest.raises(RuntimeError, match="belongs to another definition"):
                ops.neg(x)
        outer.add_output(ops.neg(x))
    assert len(outer.ir.nodes) == 1
    assert inner.ir.nodes == ()


def test_guards_of_tasks_that_take_turns():
    """Each task of asyncio records into its own fusion, whoever entered a guard last."""

    async def scaled(number):
        fusion = Fusion()
        with FusionGuard(fusion):
            await asyncio.sleep(0)
            x = define_tensor([2])
            fusion.add_input(x)
            await asyncio.sleep(0)
            fusion.add_output(ops.mul(x, float(number)))
        return fusion

    async def together():
        return await asyncio.gather(*map(scaled, range(3)))

    for number, fusion in enumerate(asyncio.run(together())):
        assert fusion.execute([torch.ones(2)])[0].tolist() == [number, number]


def test_guards_that_are_not_left_in_turn():
    def guarded(fusion):
        with FusionGuard(fusion):
            yield

    one, other = Fusion(), Fusion()
    first, second = guarded(one), guarded(other)
    next(first)
    next(second)
    first.close()
    assert FusionGuard.get_current() is other
    second.close()
    with pytest.raises(RuntimeError, match="outside of a definition"):
        FusionGuard.get_current()


def test_what_cannot_be_an_input():
    fusion = Fusion()
    with FusionGuard(fusion):
        x = define_tensor([2])
        fusion.add_input(x)
        with pytest.raises(RuntimeError, match="tv0 is an input already"):
            fusion.add_input(x)
        with pytest.raises(RuntimeError, match="tv1 is computed by an op"):
            fusion.add_input(ops.neg(x))
        with pytest.raises(RuntimeError, match="a constant cannot be an input"):
            fusion.add_input(define_scalar(1.0))
        with pytest.raises(TypeError, match="add_input"):
            fusion.add_input(3)


def test_fusions_compare_by_what_they_do():
    assert negation() == negation()
    assert negation() != negation((4,))
    assert negation() != negation(contiguity=False)
    assert negation(scale=1.0) != negation(scale=1)
    assert negation(scale=float("nan")) == negation(scale=float("nan"))
    assert negation() != 3


def test_a_fusion_is_found_by_its_id():
    fusion = negation()
    assert Fusion(fusion.id()) is fusion
    assert fusion.defined()
    assert not Fusion().defined()
    assert negation().id() != fusion.id()
    fd = FusionDefinition(fusion.id(), max_length=10)
    assert torch.equal(fd.run([torch.ones(2)])[0], -torch.ones(2))
    assert fd.id() == fusion.id()
    with pytest.raises(RuntimeError, match="no Fusion of id 99999"):
        Fusion(99999)


def test_a_definition_records_into_a_given_fusion():
    fusion = Fusion()
    with FusionDefinition(fusion) as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor(2)))
    x = torch.randn(3, 4)
    assert torch.equal(fusion.execute([x])[0], -x)
    assert torch.equal(fd.run([x])[0], -x)
    assert fd.fusion is fusion
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        Fusion().execute([])


def test_printing(capsys):
    fusion = negation((-1, 4))
    fusion.print_math()
    fusion.print()
    assert capsys.readouterr().out == f"{fusion}\n" * 2
    fusion.print_kernel()
    assert "@triton.jit" in capsys.readouterr().out
    fusion.print_kernel([torch.ones(2, 4)])
    assert "over 8 elements" in capsys.readouterr().out


def test_print_kernel_makes_inputs_of_any_layout(capsys):
    fusion = Fusion()
    with FusionGuard(fusion):
        x = define_tensor([-1, 3, 1, 5], [None, True, True, None], stride_order=[1, 2, 3, 0])
        s = define_scalar()
        fusion.add_input(x)
        fusion.add_input(s)
        fusion.add_output(ops.mul(x, s))
    fusion.print_kernel()
    assert "@triton.jit" in capsys.readouterr().out


@pytest.mark.parametrize("shape", [(-1,) * 6, (-1,) * 12, (-1, -1, 1 << 50)], ids=str)
def test_print_kernel_takes_no_memory_for_inputs(shape, capsys):
    negation(shape).print_kernel()
    assert "@triton.jit" in capsys.readouterr().out


def test_print_kernel_makes_numbers_of_any_dtype(capsys):
    fusion = Fusion()
    with FusionGuard(fusion):
        x, s = define_tensor([-1], True), define_scalar(dtype=DataType.Bool)
        fusion.add_input(x)
        fusion.add_input(s)
        fusion.add_output(ops.where(s, x, 0.0))
    fusion.print_kernel()
    assert "@triton.jit" in capsys.readouterr().out


# --- handles -----------------------------------------------------------------------------------


def test_handles_tell_what_they_are():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4, 1], contiguity=True, dtype=DataType.Half)
        s = fd.define_scalar()
        y = fd.ops.mul(x, s)
        n = x.size(-3)
        fd.add_output(y)
    assert isinstance(x, TensorView)
    assert isinstance(s, Val)
    assert not isinstance(s, TensorView)
    assert x.ndim == 3
    assert x.dtype() is DataType.Half
    assert y.dtype() is DataType.Float
    assert x.is_tensor()
    assert x.is_symbolic()
    assert not s.is_tensor()
    assert s.is_symbolic()
    assert n.is_symbolic()
    assert not x.size(1).is_symbolic()
    assert x.definition() is None
    assert y.definition().op == "mul"
    assert y.definition().inputs() == [x, s]
    assert y.definition().outputs() == [y]
    assert [use.op for use in x.uses()] == ["mul", "size"]
    assert x.size(1).definition() is None
    assert x.size(1).uses() == []
    assert x.str() == str(x) == "tv0: Half[i0, 4, 1]"
    assert str(y) == "tv1: Float[i0, 4, 1]"
    assert s.str() == "c0: Double"
    assert x.size(1).str() == "4"
    assert y.definition().str() == str(x.uses()[0]) == "tv1 = mul(tv0, c0)"
    assert y.definition() == x.uses()[0]
    assert len({x, y, s, x}) == 3
    for dim in (3, -4):
        with pytest.raises(RuntimeError, match="beyond the bounds"):
            x.size(dim)


def test_shape_gives_constants_for_static_dims_and_sizes_other_tensors():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4], contiguity=True)
        shape = x.shape()
        fd.add_output(fd.ops.full(shape, 2.0, DataType.Float))
    assert [s.is_symbolic() for s in shape] == [True, False]
    assert torch.equal(fd.run([torch.ones(3, 4)])[0], torch.full((3, 4), 2.0))
    assert torch.equal(fd.run([torch.ones(5, 4)])[0], torch.full((5, 4), 2.0))


# --- executors ---------------------------------------------------------------------------------


def test_the_executor_cache():
    fusion = negation()
    cache = FusionExecutorCache(fusion, fusion_id=3, auto_schedule=True)
    x = torch.randn(4)
    with pytest.raises(RuntimeError, match="nothing was executed yet"):
        cache.get_most_recent_scheduled_ir()
    assert not cache.is_compiled([x])
    assert torch.equal(cache.execute([[x]], _enable_options=["id_model"])[0], -x)
    assert cache.is_compiled([x])
    assert not cache.is_compiled([torch.randn(5)])
    assert cache.fusion() is fusion
    assert "pointwise" in cache.get_scheduled_ir([x])
    assert cache.get_most_recent_scheduled_ir() == cache.get_scheduled_ir([x])
    assert "@triton.jit" in cache.get_cuda_kernel([x])
    assert cache.get_output_shardings() == []
    with pytest.raises(RuntimeError, match="unrecognized option"):
        cache.execute([x], _disable_options=["?"])
    with pytest.raises(RuntimeError, match="to be an at::Tensor but got scalar 1"):
        cache.execute([1])
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        FusionExecutorCache(Fusion())


def test_the_kernel_executor():
    kernel = KernelExecutor()
    assert not kernel.is_compiled()
    with pytest.raises(AssertionError, match=r"before compile\(\)"):
        kernel.run([torch.ones(4)])
    kernel.compile(negation(), [torch.ones(4)])
    assert kernel.is_compiled()
    assert torch.equal(kernel.run([torch.ones(4)])[0], -torch.ones(4))
    # a kernel is made for sizes; others must not reach it
    with pytest.raises(RuntimeError, match="compiled for other inputs"):
        kernel.run([torch.ones(5)])
    with pytest.raises(RuntimeError, match="to be an at::Tensor but got scalar 1"):
        kernel.compile(negation(), [1])
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        kernel.compile(Fusion(), [])


# --- LRU caches --------------------------------------------------------------------------------


def test_the_lru_cache_counts():
    cache = LRUCache(max_fusions=10)
    assert cache.stats() == "Max Fusions Allowed: 10\nThe fusion cache is empty.\n"
    for _ in range(5):
        for size in (2, 3):
            cache.cache_compile(negation((size,)))
    assert cache.num_fusions() == 2
    assert cache.stats() == (
        "Max Fusions Allowed: 10\n"
        "Total Fusions in Cache: 2\n"
        "Total Unique Fusions Compiled: 2\n"
        "Cache Hits by LRU ordering:\n"
        "\t0 -> 4 hits\n"
        "\t1 -> 4 hits\n"
        "Cache Lookups: 10\n"
        "Cache Hits: 8\n"
        "Hit Rate: 80%\n"
    )


def test_the_lru_cache_drops_what_was_not_used_for_longest():
    cache = LRUCache(2)
    first = cache.cache_compile(negation((2,)))
    second = cache.cache_compile(negation((3,)))
    assert cache.cache_compile(negation((2,))) is first
    cache.cache_compile(negation((4,)))
    assert cache.num_fusions() == 2
    assert cache.cache_compile(negation((2,))) is first
    assert cache.cache_compile(negation((3,))) is not second
    assert "Total Unique Fusions Compiled: 4" in cache.stats()
    assert "\t0 -> 0 hits\n\t1 -> 2 hits" in cache.stats()
    with pytest.raises(TypeError):
        LRUCache(0)


def test_the_lru_decorator_shares_equal_definitions():
    @LruFusionCache(max_fusions=8)
    def scaled(x, factor):
        """Doc."""
        with FusionDefinition() as fd:
            fd.add_output(fd.ops.mul(fd.from_pytorch(x), factor))
        return fd

    x = torch.randn(3, 4)
    made = [scaled(x, 2.0), scaled(torch.randn(5, 4), 2.0), scaled(x, 3.0)]
    assert made[0].fec is made[1].fec
    assert made[0].fec is not made[2].fec
    for fd, factor in zip(made, (2.0, 2.0, 3.0), strict=True):
        assert torch.equal(fd.run([x])[0], x * factor)
        assert "fd.ops.mul" in repr(fd)
        assert fd.fusion is fd.fec.fusion()
    assert scaled.num_fusions() == 2
    assert scaled.stats().startswith("Max Fusions Allowed: 8\nTotal Fusions in Cache: 2\n")
    assert scaled.__doc__ == "Doc."


# --- repro scripts -----------------------------------------------------------------------------


def test_the_repro_script(tmp_path):
    with FusionDefinition() as fd:
        x = fd.from_pytorch(torch.zeros(2, 4, 8))
        y = fd.from_pytorch(torch.zeros(8, 4).t())
        n = fd.from_pytorch(torch.zeros(4, 2, dtype=torch.int64)[:, 0])
        s = fd.define_scalar()
        sum_ = fd.ops.mul(fd.ops.add(x, y), s)
        fd.add_output(fd.ops.add(sum_, fd.ops.broadcast(n, [False, True])))
    integers = torch.zeros(4, 2, dtype=torch.int64)[:, 0]
    inputs = [torch.randn(2, 4, 8), torch.randn(8, 4).t(), integers, float("inf")]
    script = fd.repro_script_for(inputs)
    assert script.startswith("# CUDA devices:\n")
    assert "\nimport torch\nfrom tritonfuser import FusionDefinition, DataType\n" in script
    assert repr(fd) in script
    assert script.endswith(
        "with FusionDefinition() as fd:\n"
        "    nvfuser_fusion(fd)\n"
        "\n"
        "inputs = [\n"
        "    torch.testing.make_tensor((2, 4, 8), dtype=torch.float32, device='cpu'),\n"
        "    torch.randn(32, dtype=torch.float32, device='cpu').as_strided((4, 8), (1, 4)),\n"
        "    torch.randint(0, 10, (7,), dtype=torch.int64, device='cpu').as_strided((4,), (2,)),\n"
        '    float("inf"),\n'
        "]\n"
        "fd.run(inputs)\n"
    )
    path = tmp_path / "repro.py"
    path.write_text(script)
    root = str(Path(tritonfuser.__file__).parent.parent)
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", str(path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": root})
    assert fd.repro_script_for().endswith("nvfuser_fusion(fd)\n")


def test_the_last_repro_script():
    fd = FusionDefinition(negation())
    text = (
        "fd.last_repro_script() cannot provide a repro because fd.execute(inputs, "
        "save_repro_inputs=True) was not executed!"
    )
    x = torch.ones(3)
    fd.run([x])
    with pytest.raises(AssertionError) as error:
        fd.last_repro_script()
    assert text in str(error.value)
    fd.run([x], save_repro_inputs=True)
    assert fd.last_repro_script() == fd.repro_script_for([x])


# --- names -------------------------------------------------------------------------------------

NAMES = [
    "FusionDefinition",
    "DataType",
    "Fusion",
    "FusionGuard",
    "FusionExecutorCache",
    "KernelExecutor",
    "LRUCache",
    "LruFusionCache",
    "TensorView",
    "Val",
    "Expr",
    "Statement",
    "IterDomain",
    "TensorDomain",
    "ops",
    "schedule",
    "idm",
    "multidevice",
    "define_tensor",
    "define_scalar",
    "compute_tensor_descriptor",
    "translate_fusion",
    "validate_with_auto_inferred_outputs",
    "get_val_tolerances",
    "execute_with_dtensors",
    "version",
    "__version__",
    "PythonProfiler",
    "get_fusion_profile",
    "reset_profiler",
    "KernelProfile",
    "FusionProfile",
    "SchedulerType",
    "ParallelType",
    "LoadStoreOpType",
    "MemoryType",
    "CacheOp",
    "IdMappingMode",
    "CommunicatorBackend",
    "CompileParams",
    "LaunchParams",
    "HeuristicParams",
    "PointwiseParams",
    "ReductionParams",
    "MatmulParams",
    "Merge",
    "Split",
    "BroadcastOp",
    "SqueezeOp",
    "ReshapeOp",
]


@pytest.mark.parametrize("name", NAMES)
def test_nvfusers_names_are_exported(name):
    assert name in tritonfuser.__all__
    assert hasattr(tritonfuser, name)


def test_version():
    assert tritonfuser.version() == tritonfuser.__version__
    assert tritonfuser.version()[0].isdigit()


@pytest.mark.parametrize(
    "use",
    [
        lambda: tritonfuser.schedule.split(),
        lambda: FusionDefinition().sched.parallelize(),
        lambda: tritonfuser.idm.IdModel(Fusion()),
    ],
)
def test_names_without_a_meaning_say_what_to_do(use):
    with pytest.raises(RuntimeError, match="is not available in tritonfuser") as error:
        use()
    assert f"at {__file__}" in str(error.value)
    assert len(str(error.value).splitlines()) >= 3


def test_scheduler_names_are_nvfusers():
    names = [s.name for s in tritonfuser.SchedulerType]
    assert names[:11] == [
        "none",
        "no_op",
        "pointwise",
        "matmul",
        "reduction",
        "inner_persistent",
        "inner_outer_persistent",
        "outer_persistent",
        "transpose",
        "expr_eval",
        "resize",
    ]
