"""Plans of a variant at other sizes than it was made at; threads, memory, and what it is for."""

from __future__ import annotations

import gc
import statistics
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from tests.cache.varying import cache_of, doubling, kinds, noise, run
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.plan import launches

# --- plans of a variant --------------------------------------------------------------------------


def test_plans_have_the_numbers_of_their_run() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6), (4, 7), (4, 4000))
    plan = cache.newest()
    assert plan is not None
    (step,) = plan.steps
    assert step.source is not None and step.source.sizes
    assert step.segment.bytes_read == step.segment.bytes_written == 4 * 4000 * 4
    assert [type(n) for n in step.source.grid] == [int] * 3
    assert plan.lowered.segmented.fusion.inputs[0].tensor.sizes == (4, 4000)
    assert [r.layout.shape for r in plan.body.results] == [(4, 4000)]
    other = cache.plan([noise(4, 7)])
    assert other.text == plan.text
    assert [r.layout.shape for r in other.body.results] == [(4, 7)]


def test_views_and_library_ops_get_numbers() -> None:
    def body(fd: Any, x: Any) -> Any:
        first, order = fd.ops.topk(x, 2, 1), fd.ops.argsort(x, 1)
        return fd.ops.permute(x, [1, 0]), first[0], order, fd.ops.permute(fd.ops.neg(x), [1, 0])

    cache = cache_of(body, (DataType.Float, 2))
    for size in (5, 7, 6, 9, 33):
        x = noise(4, size)
        found = cache.execute([x])
        wanted = (x.t(), x.topk(2, 1).values, x.argsort(1), -x.t())
        for one, other in zip(found, wanted, strict=True):
            assert torch.equal(one, other)
        assert found[0].data_ptr() == x.data_ptr()
    assert kinds(cache) == ["static", "static", "dynamic"]


def test_aliases() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        fd.add_output(fd.ops.add(x, 1.0), x)
    cache = FusionExecutorCache(fd.fusion.ir)
    for size in (4, 5, 6, 7):
        given = noise(size)
        cache.execute([given])
        assert torch.equal(given, noise(size) + 1)
    assert kinds(cache) == ["static", "static", "dynamic"]


def test_random_numbers_do_not_depend_on_the_variant(setting: Callable[[str, str], None]) -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.add(x, fd.ops.uniform(0.0, 1.0, x.shape(), dtype=DataType.Float))

    def drawn(size: int) -> torch.Tensor:
        torch.manual_seed(3)
        return caches[-1].execute([torch.zeros(3, size)])[0]

    caches = [cache_of(body, (DataType.Float, 2))]
    for size in (5, 6):
        drawn(size)
    found = [drawn(size) for size in (7, 64, 33)]
    assert caches[0].recompiles()[2].dynamic
    setting("TRITONFUSER_DYNAMIC_SIZES", "0")
    caches.append(cache_of(body, (DataType.Float, 2)))
    for size, one in zip((7, 64, 33), found, strict=True):
        assert torch.equal(one, drawn(size))


# --- threads and memory --------------------------------------------------------------------------


def test_threads_open_the_sizes_once() -> None:
    cache = doubling()
    run(cache, (4, 5), (4, 6))
    start = threading.Barrier(16)

    def work(number: int) -> None:
        start.wait()
        run(cache, (4, 7 + number), (4, 7 + number // 2))

    with ThreadPoolExecutor(16) as pool:
        for task in [pool.submit(work, number) for number in range(16)]:
            task.result()
    assert kinds(cache).count("dynamic") <= 2, "16 and its multiples are apart"
    assert len(kinds(cache)) <= 4


def test_variants_go_with_their_cache() -> None:
    cache = doubling(max_plans=4)
    run(cache, *((4, size) for size in range(5, 40)))
    assert len(cache._plans) == 4
    plan = cache.newest()
    assert plan is not None
    template = weakref.ref(plan._template)
    del cache, plan
    gc.collect()
    assert template() is None


def test_many_kinds_of_sizes_are_bounded() -> None:
    """What is kept does not grow with the signatures that were met."""
    cache = doubling(max_plans=4)
    run(cache, (4, 5), (4, 6), (4, 7))
    (family,) = cache._variants._families._entries.values()
    for size in range(8, 60):
        run(cache, (4, size))
        run(cache, (4, 0))
    assert len(family.seen) <= 8 and len(family.variants) <= 16


# --- what it is for ------------------------------------------------------------------------------


def modulated(fd: Any, x: Any, scale: Any, shift: Any) -> Any:
    """An adaptive layer norm: ``norm(x) * (1 + scale) + shift``."""
    x, scale, shift = (fd.ops.cast(t, DataType.Float) for t in (x, scale, shift))
    var, mean = fd.ops.var_mean(x, dims=[2], correction=0, keepdim=True)
    normed = fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))
    made = fd.ops.add(fd.ops.mul(normed, fd.ops.add(scale, 1.0)), shift)
    return fd.ops.cast(made, DataType.BFloat16)


def modulated_cache() -> FusionExecutorCache:
    with FusionDefinition() as fd:
        shapes = ([-1, -1, -1], [-1, 1, -1], [-1, 1, -1])
        given = [
            fd.define_tensor(shape=s, contiguity=True, dtype=DataType.BFloat16) for s in shapes
        ]
        fd.add_output(modulated(fd, *given))
    return FusionExecutorCache(fd.fusion.ir)


def modulated_inputs(length: int, width: int = 64, batch: int = 2) -> list[torch.Tensor]:
    shapes = ((batch, length, width), (batch, 1, width), (batch, 1, width))
    return [noise(*shape).bfloat16() for shape in shapes]


def test_a_hundred_lengths_take_three_kernels() -> None:
    cache = modulated_cache()
    found = [(s, cache.plan(modulated_inputs(s))) for s in range(128, 12801, 128)]
    texts = {step.source.text for _, plan in found for step in plan.steps if step.source}
    assert len(texts) <= 4
    assert cache.recompiles().kernels <= 4
    for length, plan in found[::33]:
        x, scale, shift = inputs = modulated_inputs(length)
        wanted = torch.nn.functional.layer_norm(x.double(), (64,)) * (1 + scale.double()) + shift
        torch.testing.assert_close(plan.run(inputs)[0].double(), wanted, rtol=1e-2, atol=1e-2)


def test_a_new_length_costs_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found, bound and written down; kernels that do nothing stand in for the interpreter."""
    monkeypatch.setattr(launches, "interpreted", lambda source: lambda *args, **kwargs: None)
    cache = modulated_cache()
    given = {length: modulated_inputs(length) for length in range(128, 6401, 128)}
    took: list[float] = []
    for inputs in given.values():
        started = time.perf_counter()
        cache.execute(inputs)
        took.append(time.perf_counter() - started)
    assert statistics.median(took) < 1e-3
