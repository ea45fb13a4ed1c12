"""Definitions run through their cache: hits, threads, failures, and looking without running."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.lowering.graphs import layer_norm, noise, softmax
from tests.lowering.harness import record
from tritonfuser import DataType, FusionDefinition, options
from tritonfuser.cache import executor, kernels
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.kernel_executor import KernelExecutor
from tritonfuser.cache.keys.run_device import device_of
from tritonfuser.devices import ARCHITECTURES
from tritonfuser.errors import (
    DefinitionError,
    ExecutionModeError,
    InputError,
    ParamsError,
    SchedulingError,
    TritonFuserError,
)
from tritonfuser.heuristics.params import PointwiseParams
from tritonfuser.lowering.run_options import RunOptions


@pytest.fixture
def lowerings(monkeypatch):
    """A list that gets an entry for each lowering."""
    seen = []
    lower = executor.lower

    def counted(*args):
        seen.append(threading.get_ident())
        return lower(*args)

    monkeypatch.setattr(executor, "lower", counted)
    return seen


@pytest.fixture
def interpretations(monkeypatch):
    """A list that gets an entry for each kernel that is made ready to run."""
    seen = []
    interpret = kernels.interpret_kernel

    def counted(source):
        seen.append(source.name)
        return interpret(source)

    monkeypatch.setattr(kernels, "interpret_kernel", counted)
    return seen


def cache_of(body, *inputs, **options):
    return FusionExecutorCache(record(body, inputs).fusion.ir, **options)


def dynamic(body=None, rank=1):
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1] * rank, contiguity=False)
        fd.add_output(body(fd, x) if body else fd.ops.mul(x, 2.0))
    return fd


# --- hits --------------------------------------------------------------------------------


def test_a_signature_is_lowered_once(lowerings):
    cache = FusionExecutorCache(dynamic().fusion.ir)
    for _ in range(3):
        for size in (4, 5):
            x = noise(size)
            assert torch.equal(cache.execute([x])[0], x * 2)
    assert len(lowerings) == 2


@pytest.mark.parametrize(
    "other",
    [
        noise(9),
        noise(16)[::2],
        noise(1).expand(8),
        torch.zeros(9)[1:],
    ],
    ids=["size", "stride", "stretched", "alignment"],
)
def test_another_signature_is_lowered_anew(lowerings, other):
    cache = FusionExecutorCache(dynamic().fusion.ir)
    cache.execute([noise(8)])
    assert torch.equal(cache.execute([other])[0], other * 2)
    assert len(lowerings) == 2


def test_numbers_are_arguments(lowerings):
    cache = cache_of(lambda fd, x, s: fd.ops.mul(x, s), noise(4), 1.0)
    for factor in (0.0, -0.0, 1.5, float("inf"), float("nan")):
        (out,) = cache.execute([noise(4), factor])
        torch.testing.assert_close(out, noise(4) * factor, equal_nan=True)
    assert len(lowerings) == 1


@pytest.mark.parametrize("factor", [2, True, 2.5])
def test_numbers_of_a_lower_type_are_taken(factor):
    """nvFuser casts an int given for a double."""
    cache = cache_of(lambda fd, x, s: fd.ops.mul(x, s), noise(4), 1.0)
    assert torch.equal(cache.execute([noise(4), factor])[0], noise(4) * factor)


def test_an_option_that_changes_code_empties_the_cache(monkeypatch, lowerings):
    cache = FusionExecutorCache(dynamic().fusion.ir)
    try:
        cache.execute([noise(4)])
        monkeypatch.setenv("TRITONFUSER_FMA", "0")
        options.refresh()
        cache.execute([noise(4)])
        cache.execute([noise(4)])
        assert len(lowerings) == 2
    finally:
        monkeypatch.undo()
        options.refresh()


@pytest.fixture
def written_out(monkeypatch):
    """Each size compiled for itself."""
    monkeypatch.setenv("TRITONFUSER_DYNAMIC_SIZES", "0")
    options.refresh()
    yield
    monkeypatch.undo()
    options.refresh()


def test_the_least_recently_used_signature_goes(lowerings, written_out):
    cache = FusionExecutorCache(dynamic().fusion.ir, max_plans=2)
    for size in (1, 2, 1, 3, 1):
        cache.execute([noise(size)])
    assert len(lowerings) == 3
    assert cache.is_compiled([noise(1)])
    assert not cache.is_compiled([noise(2)])
    cache.execute([noise(2)])
    assert len(lowerings) == 4


def test_equal_kernels_are_made_once_in_the_process(interpretations):
    """Another definition with the same kernels: their texts are their keys."""

    def body(fd, x):
        return fd.ops.mul(fd.ops.tanh(x), 0.125)

    for _ in range(3):
        cache_of(body, noise(31)).execute([noise(31)])
    assert len(interpretations) <= 1


def test_is_compiled():
    cache = FusionExecutorCache(dynamic().fusion.ir)
    assert not cache.is_compiled([noise(4)])
    assert cache.newest() is None
    cache.execute([noise(4)])
    assert cache.is_compiled([noise(4)])
    assert not cache.is_compiled([noise(5)])
    assert cache.newest() is not None
    for wrong in ([], [1.0], [noise(4), 1], None):
        assert not cache.is_compiled(wrong)


# --- threads -----------------------------------------------------------------------------


def test_threads_compile_once(lowerings, interpretations):
    count = 32
    cache = cache_of(lambda fd, x: softmax(fd, x), noise(4, 19))
    start = threading.Barrier(count)

    def run(number):
        x = noise(4, 19, seed=number)
        start.wait()
        (out,) = cache.execute([x])
        torch.testing.assert_close(out, torch.softmax(x, -1))

    with ThreadPoolExecutor(count) as pool:
        for task in [pool.submit(run, number) for number in range(count)]:
            task.result()
    assert len(lowerings) == 1
    assert len(interpretations) <= 1


def test_threads_of_several_signatures(lowerings, written_out):
    cache = FusionExecutorCache(dynamic().fusion.ir)

    def run(size):
        for _ in range(3):
            assert torch.equal(cache.execute([noise(size)])[0], noise(size) * 2)

    with ThreadPoolExecutor(12) as pool:
        for task in [pool.submit(run, 1 + number % 4) for number in range(12)]:
            task.result()
    assert len(lowerings) == 4


# --- failures ----------------------------------------------------------------------------


WRONG = {
    "too few": [],
    "too many": [noise(4), noise(4)],
    "a number": [2.0],
    "nothing": [None],
    "dtype": [noise(4).half()],
    "rank": [noise(4, 4)],
    "nested": [[noise(4)]],
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("warm", [False, True])
def test_wrong_inputs_are_refused_and_nothing_else_happens(name, warm, lowerings):
    cache = FusionExecutorCache(dynamic().fusion.ir)
    if warm:
        cache.execute([noise(4)])
    before = len(lowerings)
    with pytest.raises(InputError):
        cache.execute(WRONG[name])
    assert len(lowerings) == before
    assert torch.equal(cache.execute([noise(4)])[0], noise(4) * 2)


@pytest.mark.parametrize("given", [1 + 2j, "2", None, torch.tensor(2.0)])
def test_wrong_numbers_are_refused(given):
    cache = cache_of(lambda fd, x, s: fd.ops.mul(x, s), noise(4), 1.0)
    with pytest.raises(InputError):
        cache.execute([noise(4), given])


@pytest.mark.parametrize("given", [2.0, 2**63])
def test_wrong_integers_are_refused(given):
    cache = cache_of(lambda fd, x, s: fd.ops.mul(x, s), noise(4), 1)
    with pytest.raises(InputError, match="is not compatible with the expected data type"):
        cache.execute([noise(4), given])


def test_an_error_is_not_kept_and_the_definition_works_on(lowerings):
    fd = dynamic(lambda fd, x: fd.ops.reshape(x, [5, -1]))
    cache = FusionExecutorCache(fd.fusion.ir)
    for _ in range(2):
        with pytest.raises(DefinitionError):
            cache.execute([noise(4)])
    assert len(lowerings) == 2
    assert not cache.is_compiled([noise(4)])
    assert cache.execute([noise(10)])[0].shape == (5, 2)


def test_a_failing_run_leaves_the_plan_usable():
    """An input that is no longer what its key said: the next call is not hurt."""
    cache = FusionExecutorCache(dynamic().fusion.ir)
    cache.execute([noise(4)])
    with pytest.raises(TritonFuserError):
        cache.execute([noise(4).to_sparse()])
    assert torch.equal(cache.execute([noise(4)])[0], noise(4) * 2)


def test_params_are_part_of_the_key(lowerings):
    cache = FusionExecutorCache(dynamic().fusion.ir)
    for block in (4, 8, 4):
        chosen = PointwiseParams(block_x=block, axes=(0,))
        plan = cache.plan([noise(20)], RunOptions(params=(chosen,)))
        assert plan.lowered.segmented.segments[0].params == chosen
    assert len(lowerings) == 2
    with pytest.raises(ParamsError):
        cache.execute([noise(20)], RunOptions(params=()))
    assert torch.equal(cache.execute([noise(20)])[0], noise(20) * 2)


def test_inputs_on_several_devices():
    class Elsewhere(torch.Tensor):
        @property
        def device(self):
            return torch.device("cuda", self.place)

    tensors = []
    for place in (0, 1):
        tensors.append(torch.empty(1).as_subclass(Elsewhere))
        tensors[-1].place = place
    with pytest.raises(InputError, match="KernelExecutor does not support the Fusion provided"):
        device_of(tensors)
    assert device_of(tensors[:1]) == torch.device("cuda", 0)
    assert device_of([torch.empty(1), 2.0]) == torch.device("cpu")
    assert device_of([2.0], torch.device("cpu")) == torch.device("cpu")


# --- any default device ------------------------------------------------------------------


def test_results_are_on_the_inputs_device_whatever_torch_s_default_is():
    def body(fd, x, n):
        drawn = fd.ops.uniform(0.0, 1.0, [4], dtype=DataType.Half)
        return fd.ops.add(fd.ops.mul(fd.ops.reshape(x, [n, -1]), fd.ops.add(n, 1.5)), 0.5), drawn

    x = noise(4)
    cache = cache_of(body, x, 2)
    with torch.device("meta"):
        out, drawn = cache.execute([x, 2])
        again, _ = cache.execute([x, 2])
    assert out.device.type == drawn.device.type == "cpu"
    assert torch.equal(out, again)
    torch.testing.assert_close(out, x.view(2, 2) * 3.5 + 0.5)


# --- looking -----------------------------------------------------------------------------


def test_looking_does_not_compile(interpretations):
    cache = cache_of(layer_norm, noise(3, 67), noise(67), noise(67))
    inputs = [noise(3, 67), noise(67), noise(67)]
    assert len(cache.segments(inputs).segments) == 1
    assert len(cache.heuristics(inputs)) == 1
    assert len(cache.kernels(inputs, RunOptions(arch="sm_90"))) == 1
    assert not interpretations
    assert not cache.is_compiled(inputs)


def test_params_that_are_proposed_are_taken():
    cache = cache_of(layer_norm, noise(3, 67), noise(67), noise(67))
    inputs = [noise(3, 67), noise(67), noise(67)]
    (out,) = cache.execute(inputs, RunOptions(params=tuple(cache.heuristics(inputs))))
    assert torch.equal(out, cache.execute(inputs)[0])


@pytest.mark.parametrize("arch", [a for a in ARCHITECTURES if a != "cpu"])
def test_compiling_for_gpus_that_are_not_here(arch):
    shapes = (64, 4096), (4096,), (4096,)
    inputs = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    body = lambda fd, x, w, b: layer_norm(fd, fd.ops.cast(x, DataType.Float), w, b)  # noqa: E731
    (report,) = cache_of(body, *inputs).compile_for(arch, inputs)
    assert report.scheduler == "inner_persistent"
    assert report.registers > 0
    # Of two bytes each, as many as the 16 bytes of a store have.
    assert (report.max_load_bytes, report.max_store_bytes) == (8, 16)
    assert set(report.asm) & {"ptx", "amdgcn"}


def test_alignment_of_meta_tensors_counts():
    whole = torch.empty(1 << 20 | 64, device="meta")
    widths = []
    for start in (0, 1):
        x = whole[start : start + (1 << 20)]
        cache = cache_of(lambda fd, x: fd.ops.exp(x), x)
        (report,) = cache.compile_for("sm_90", [x])
        widths.append(report.max_load_bytes)
    assert widths == [16, 4]


@pytest.mark.parametrize("arch", ["sm_9", "cuda", "", None, 90])
def test_compiling_for_what_is_no_gpu(arch):
    cache = cache_of(lambda fd, x: fd.ops.exp(x), noise(4))
    with pytest.raises(TritonFuserError):
        cache.compile_for(arch, [noise(4)])


# --- one kernel --------------------------------------------------------------------------


def test_one_kernel():
    fusion = record(softmax, [noise(4, 6)]).fusion.ir
    kernel = KernelExecutor()
    assert not kernel.is_compiled()
    with pytest.raises(ExecutionModeError):
        kernel.run([noise(4, 6)])
    kernel.compile(fusion, [noise(4, 6)])
    assert kernel.is_compiled()
    x = noise(4, 6, seed=1)
    torch.testing.assert_close(kernel.run([x])[0], torch.softmax(x, -1))
    assert not kernel.fits([noise(4, 7)])
    assert not kernel.fits([])
    for wrong in ([noise(4, 7)], [], [1.0]):
        with pytest.raises(InputError):
            kernel.run(wrong)


def test_what_takes_two_kernels_is_refused():
    def body(fd, x):
        return fd.ops.sum(fd.ops.sum(x, [0]), [0])

    with pytest.raises(SchedulingError, match="It takes 2 kernels"):
        KernelExecutor().compile(record(body, [noise(9, 12)]).fusion.ir, [noise(9, 12)])
