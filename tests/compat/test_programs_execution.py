"""How programs written for nvFuser run: by hand, through caches, with devices and options."""

from __future__ import annotations

import threading

import pytest
import torch

import tritonfuser
from tests.compat.programs import equal, noise, record
from tritonfuser import options
from tritonfuser.compat import nvfuser_direct
from tritonfuser.compat.nvfuser_direct import (
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
    translate_fusion,
)

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType
X, Y = noise(2, 3), noise(2, 3, seed=1)


def negation():
    return record(lambda fd: fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1], True))))


@pytest.fixture
def for_gpus(monkeypatch):
    """nvFuser's rules: no CPU tensors but scalars."""
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "0")
    options.refresh()


# --- fusions by hand ---------------------------------------------------------------------------


@pytest.fixture
def fusion():
    """(x + y) * s * 2, under a guard."""
    made = Fusion()
    with FusionGuard(made):
        x = define_tensor(shape=[2, -1], contiguity=True)
        y = define_tensor([2, -1], [True, True], D.Float)
        s, two = define_scalar(D.Double), define_scalar(2.0)
        for value in (x, y, s):
            made.add_input(value)
        made.add_output(ops.mul(ops.mul(ops.add(x, y), s), two))
    return made


def test_a_fusion_is_recorded_by_module_level_functions(fusion):
    assert [type(v) for v in fusion.inputs()] == [TensorView, TensorView, Val]
    assert [v.dtype() for v in fusion.outputs()] == [D.Float]
    assert len(fusion.vals()) == 6
    assert fusion == fusion
    assert fusion != Fusion()
    assert translate_fusion(fusion).splitlines()[-2:] == [
        "    tv4 = fd.ops.mul(tv3, 2.00000)",
        "    fd.add_output(tv4)",
    ]
    for use in (lambda: define_tensor([2]), lambda: define_scalar(1.0), lambda: ops.add(1.0, 2.0)):
        with pytest.raises(RuntimeError, match="is used outside of a definition"):
            use()


def test_an_executor_cache_by_hand(fusion):
    cache = FusionExecutorCache(fusion)
    inputs = [X, Y, 3.0]
    assert not cache.is_compiled(inputs)
    (found,) = cache.execute(inputs)
    equal(found, (X + Y) * 6.0, within=1e-6)
    assert cache.is_compiled(inputs, device=0)
    assert not cache.is_compiled([X[:, :2], Y[:, :2], 3.0])
    assert cache.fusion() == fusion
    scheduled = cache.get_scheduled_ir(inputs, tensor_transforms=True)
    assert scheduled == cache.get_most_recent_scheduled_ir(tensor_transforms=True)
    assert "pointwise" in scheduled
    assert "@triton.jit" in cache.get_cuda_kernel(inputs)
    assert cache.get_output_shardings() == []


def test_a_kernel_by_hand(fusion):
    kernel = KernelExecutor()
    assert not kernel.is_compiled()
    kernel.compile(fusion, args=[X, Y, 3.0])
    assert kernel.is_compiled()
    equal(kernel.run(args=[X, Y, 3.0])[0], (X + Y) * 6.0, within=1e-6)
    equal(kernel.run([Y, Y, 1.0])[0], Y * 4.0, within=1e-6)
    with pytest.raises(RuntimeError, match="compiled for other inputs"):
        kernel.run([noise(2, 5), noise(2, 5), 3.0])
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        KernelExecutor().compile(Fusion())


def test_handles():
    def make(fd):
        t = fd.define_tensor([-1, 1, 4], [True, None, True], D.Half)
        s, three = fd.define_scalar(), fd.define_scalar(3)
        total = fd.ops.add(t, s)
        fd.add_output(total)
        assert isinstance(t, Val)
        assert (t.ndim, t.dtype(), t.is_tensor(), t.is_symbolic()) == (3, D.Half, True, True)
        assert (s.is_tensor(), s.is_symbolic(), three.is_symbolic()) == (False, True, False)
        assert t.definition() is None
        assert [use.outputs() for use in t.uses()] == [[total]]
        assert total.definition().inputs() == [t, s]
        assert t.size(-1) is t.shape()[2]
        assert t.str() == str(t) == "T0_g___half[iS0{i0}, bS1{1}, iS2{4}]"
        for wrong in (3, -4):
            with pytest.raises(RuntimeError, match="beyond the bounds of the shape"):
                t.size(wrong)
        with pytest.raises(TypeError):
            t.size(1.0)

    record(make)


# --- caches ------------------------------------------------------------------------------------

EMPTY = "Max Fusions Allowed: 10\nThe fusion cache is empty.\n"
USED = (
    "Max Fusions Allowed: 10\nTotal Fusions in Cache: 2\nTotal Unique Fusions Compiled: 2\n"
    "Cache Hits by LRU ordering:\n\t0 -> 4 hits\n\t1 -> 4 hits\n"
    "Cache Lookups: 10\nCache Hits: 8\nHit Rate: 80%\n"
)


def test_a_cache_used_by_hand():
    cache = LRUCache(max_fusions=10)
    assert cache.stats() == EMPTY
    for _ in range(5):
        for factor in (1.0, 2.0):
            fd = record(
                lambda fd, k=factor: fd.add_output(fd.ops.mul(fd.define_tensor([-1, -1], True), k))
            )
            text = repr(fd)
            fd.fec = cache.cache_compile(fd.fusion)
            del fd._fusion
            assert torch.equal(fd.execute([X])[0], X * factor)
            assert repr(fd) == text
            assert fd.fusion is fd.fec.fusion()
            assert torch.equal(fd.validate([Y])[0], Y * factor)
    assert cache.num_fusions() == 2
    assert cache.stats() == USED


def test_a_decorated_function():
    @LruFusionCache(max_fusions=10)
    def scaled(x, factor):
        return record(lambda fd: fd.add_output(fd.ops.mul(fd.from_pytorch(x), factor)))

    assert scaled.stats() == EMPTY
    for _ in range(5):
        for factor in (1.0, 2.0):
            assert torch.equal(scaled(X, factor).execute([X])[0], X * factor)
    assert (scaled.num_fusions(), scaled.stats()) == (2, USED)
    assert LruFusionCache()(negation)().execute([X])[0].equal(-X)


def test_threads_run_and_record_at_once():
    fd = record(lambda fd: fd.add_output(fd.ops.max(fd.define_tensor([-1, -1], True), [1])))
    failed = []

    def work(rows):
        try:
            for columns in (1, 2):
                x = noise(rows, columns)
                assert torch.equal(fd.execute([x])[0], x.amax(1))
                own = Fusion()
                with FusionGuard(own):
                    t = define_tensor(shape=[-1], contiguity=True)
                    own.add_input(t)
                    own.add_output(ops.neg(t))
                assert len(own.vals()) == 2
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# --- definitions -------------------------------------------------------------------------------


def test_nothing_to_run():
    never = "Fusion does not exist! Use `with FusionDefinition() as fd: ...` to define a fusion."
    for run in ("execute", "manual_execute", "validate"):
        with pytest.raises(NotImplementedError) as error:
            getattr(FusionDefinition(), run)([])
        assert never in str(error.value)
        with pytest.raises(NotImplementedError, match="Fusion is empty!"):
            getattr(record(lambda fd: None), run)([])


def test_the_two_ways_exclude_each_other():
    fd = negation()
    fd.manual_execute([X])
    assert fd.ke.is_compiled()
    with pytest.raises(AssertionError) as error:
        fd.execute([X])
    text = "KernelExecutor already exists! Use manual_execute() to execute the fusion."
    assert text in str(error.value)
    fd = negation()
    fd.execute([X])
    assert fd.fec.is_compiled([X])
    with pytest.raises(AssertionError) as error:
        fd.manual_execute([X])
    text = "FusionExecutorCache already exists! Use execute() to execute the fusion."
    assert text in str(error.value)
    with pytest.raises(AssertionError) as error:
        fd.last_repro_script()
    text = "fd.last_repro_script() cannot provide a repro because fd.execute(inputs, "
    assert text + "save_repro_inputs=True) was not executed!" in str(error.value)


def test_validate_compares_and_returns():
    assert torch.equal(negation().validate([X])[0], -X)
    assert torch.equal(negation().manual_validate([X])[0], -X)
    assert torch.equal(negation().validate([X], reference_outputs=[-X], device=None)[0], -X)
    for wrong in ([X], [-X, -X], [-X[:1]]):
        with pytest.raises((RuntimeError, AssertionError)):
            negation().validate([X], wrong)


def test_options():
    fd = negation()
    for given in ({}, {"_enable_options": ["id_model"]}, {"_disable_options": ("magic_zero",)}):
        assert torch.equal(fd.execute([X], **given)[0], -X)
    for given in ({"_enable_options": ["id_modell"]}, {"_disable_options": ["magic"]}):
        with pytest.raises(RuntimeError):
            fd.execute([X], **given)


def test_devices():
    """Where CPU tensors are taken for CUDA ones, so is the CPU for the GPU."""
    full = record(lambda fd: fd.add_output(fd.ops.full([2], 1.0, D.Float)))
    fd = negation()
    fd._selected_device = torch.device("cpu")
    there = torch.cuda.is_available()
    for device in ("cpu", fd._selected_device, *(() if there else (0, "cuda", "cuda:0"))):
        assert torch.equal(fd.execute([X], device=device)[0], -X)
        assert full.execute([], device=device)[0].device.type == "cpu"
    with pytest.raises(RuntimeError, match="'meta' was asked for, but inputs are on cpu"):
        fd.execute([X], device="meta")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_device_that_is_not_there(for_gpus):
    with tritonfuser.FusionDefinition() as fd:
        fd.add_output(fd.ops.full([2], 1.0, D.Float))
    with pytest.raises(RuntimeError, match="'cuda' was asked for, but there is no CUDA device"):
        fd.run([], device="cuda")


# --- CPU scalars -------------------------------------------------------------------------------


def of_scalar(call):
    """A definition of one CPU scalar."""

    def make(fd):
        t = fd.define_tensor(shape=[], contiguity=[], dtype=D.Float, is_cpu=True)
        fd.add_output(call(fd.ops, t))

    return record(make)


@pytest.mark.parametrize("run", ["execute", "manual_execute"])
def test_nothing_is_computed_of_cpu_scalars_alone(for_gpus, run):
    x = torch.tensor(2.0)
    fd = of_scalar(lambda ops, t: ops.neg(t))
    for _ in range(2):
        with pytest.raises(RuntimeError) as error:
            getattr(fd, run)([x])
        assert "KernelExecutor does not support the Fusion provided." in str(error.value)
    untouched = of_scalar(lambda ops, t: t)
    for _ in range(2):
        assert getattr(untouched, run)([x])[0] is x
    (found,) = getattr(of_scalar(lambda ops, t: ops.mul(ops.full([2], 3.0, D.Float), t)), run)([x])
    assert found.tolist() == [6.0, 6.0]
    assert found.is_cuda == torch.cuda.is_available()
    with pytest.raises(RuntimeError, match="to be an at::Tensor but got scalar 2"):
        getattr(of_scalar(lambda ops, t: ops.neg(t)), run)([2.0])


def test_elsewhere_cpu_scalars_are_tensors_like_others(cpu_as_cuda):
    x = torch.tensor(2.0)
    assert of_scalar(lambda ops, t: ops.neg(t)).execute([x])[0].item() == -2.0
    with tritonfuser.FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.from_pytorch(x)))
    assert fd.run([x])[0].item() == -2.0


def test_every_name_is_there():
    assert nvfuser_direct._C_DIRECT.FusionDefinition is FusionDefinition
    for name in ("__version__", "pytorch_utils", "benchmark_utils", "nvfuser_direct_version"):
        assert hasattr(nvfuser_direct, name)
