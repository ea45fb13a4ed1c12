"""The plan that ran last is tried first: never for other inputs, and nobody can tell."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser import DataType, FusionDefinition, InputError, options
from tritonfuser.cache import executor
from tritonfuser.cache.calls import profiling
from tritonfuser.cache.calls.guarded_calls import NoGuardedCall
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.plan import capture
from tritonfuser.errors import CaptureError


@pytest.fixture
def keys(monkeypatch):
    """A list that gets an entry whenever a key is made."""
    seen = []
    maker = executor.key_maker

    def counted(fusion):
        key = maker(fusion)
        return lambda inputs: seen.append(inputs) or key(inputs)

    monkeypatch.setattr(executor, "key_maker", counted)
    return seen


def doubled(**options):
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=False)
        fd.add_output(fd.ops.mul(x, 2.0))
    return FusionExecutorCache(fd.fusion.ir, **options)


def warm(cache, inputs):
    for _ in range(2):
        cache.execute(inputs)


def test_the_third_run_makes_no_key(keys):
    cache = doubled()
    warm(cache, [noise(4)])
    keys.clear()
    for seed in range(3):
        x = noise(4, seed=seed)
        assert torch.equal(cache.execute([x])[0], x * 2)
    assert keys == []


OTHERS = [noise(5), noise(8)[::2], noise(1).expand(4), noise(4, seed=5)]


def test_other_inputs_get_what_they_should():
    cache = doubled()
    for _ in range(4):
        for x in OTHERS:
            assert torch.equal(cache.execute([x])[0], x * 2)


def test_inputs_that_do_not_fit_are_refused():
    cache = doubled()
    warm(cache, [noise(4)])
    for wrong in ([], [noise(4), noise(4)], [2.0], [None], [noise(4).double()], [noise(2, 2)]):
        with pytest.raises(InputError):
            cache.execute(wrong)
    assert torch.equal(cache.execute([noise(4)])[0], noise(4) * 2)


def test_numbers_count():
    def body(fd, x, n, s):
        return fd.ops.mul(fd.ops.reshape(x, [n, -1]), s)

    x = noise(12)
    cache = FusionExecutorCache(record(body, [x, 3, 1.0]).fusion.ir)
    for _ in range(3):
        for n in (3, 4, 6):
            for s in (0.5, 2, float("inf")):
                assert torch.equal(cache.execute([x, n, s])[0], (x * float(s)).view(n, -1))
    with pytest.raises(InputError):
        cache.execute([x, 3, 1j])


def test_what_a_guard_refuses_though_it_fits_is_looked_up_once(keys):
    cache = doubled()
    warm(cache, [noise(4)])
    with torch.inference_mode():
        warm(cache, [noise(4)])
        keys.clear()
        cache.execute([noise(4)])
        assert keys == []
    cache.execute([noise(4)])
    keys.clear()
    cache.execute([noise(4)])
    assert keys == []


def test_an_option_that_changes_code_is_seen(monkeypatch):
    cache = doubled()
    try:
        warm(cache, [noise(4)])
        before = cache.newest()
        monkeypatch.setenv("TRITONFUSER_FMA", "0")
        options.refresh()
        cache.execute([noise(4)])
        assert cache.newest() is not before
        warm(cache, [noise(4)])
        assert cache._last.plan is cache.newest()
    finally:
        monkeypatch.undo()
        options.refresh()


def test_what_ran_last_is_the_newest_and_stays():
    cache = doubled(max_plans=2)
    warm(cache, [noise(4)])
    kept = cache.newest()
    for size in (5, 6, 7):
        cache.execute([noise(size)])
        cache.execute([noise(4)])
        assert cache.newest() is kept
        assert cache.is_compiled([noise(4)])


def test_where_torch_s_device_decides_a_key_is_made(keys):
    """A definition without tensors runs on torch's current device, which may be another."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([3], 2.0, DataType.Float))
    cache = FusionExecutorCache(fd.fusion.ir)
    warm(cache, [])
    keys.clear()
    cache.execute([])
    assert len(keys) == 1
    assert cache._last is NoGuardedCall


def test_profilers_hear_of_it():
    cache = doubled()
    warm(cache, [noise(4)])
    heard = []
    listener = heard.append
    profiling.add_listener(listener)
    try:
        for x in (noise(4), noise(5), noise(4), noise(5), noise(5)):
            assert torch.equal(cache.execute([x])[0], x * 2)
        assert len(heard) == 5
        with pytest.raises(InputError):
            cache.execute([2.0])
    finally:
        profiling.remove_listener(listener)
    cache.execute([noise(5)])
    assert len(heard) == 5


def test_threads_with_inputs_of_several_kinds():
    cache = doubled()
    start = threading.Barrier(32)

    def run(number):
        x = OTHERS[number % len(OTHERS)] + number
        start.wait()
        for _ in range(8):
            assert torch.equal(cache.execute([x])[0], x * 2)

    with ThreadPoolExecutor(32) as pool:
        for task in [pool.submit(run, number) for number in range(32)]:
            task.result()


def test_a_first_run_inside_a_capture_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(CaptureError, match="first run for inputs of this signature"):
        capture.refuse_first_run(torch.device("cuda", 0))
    capture.refuse_first_run(torch.device("cpu"))
    with pytest.raises(CaptureError, match="cannot be read inside the capture"):
        capture.to_device(torch.tensor(1.0), torch.device("cuda", 0))
    with pytest.raises(CaptureError, match="cannot be written inside the capture"):
        capture.to_cpu(torch.tensor(1.0), torch.tensor(2.0))
