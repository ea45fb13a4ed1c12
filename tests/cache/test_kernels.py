"""Kernels of a process: compiled at the same time, once each, the first one's error reported."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.lowering.kernels import vector_add
from tritonfuser import LoweringError
from tritonfuser.cache import kernels
from tritonfuser.cache.lru import LRU
from tritonfuser.dtypes import DataType

DEVICE = torch.device("cuda", 0)
ALL = (True, True, True)


class Compiled:
    """What compiling gives, without a compiler."""

    def __init__(self, source, made):
        self.source, self.made = source, made

    def launcher(self, index):
        self.made["load", self.source.name] += 1
        return self

    def prepare(self):
        return self.source.name


@pytest.fixture
def made(monkeypatch):
    """How often things were made, by name; ``compile`` can be exchanged."""
    counts = Counter()

    def compile_kernel(source, arch, aligned):
        counts["compile", source.name] += 1
        return Compiled(source, counts)

    def build_launcher(source):
        counts["launcher", kernels.kinds(source)] += 1
        return True

    monkeypatch.setattr(kernels, "_COMPILED", LRU(64))
    monkeypatch.setattr(kernels, "_LAUNCHERS", LRU(64))
    monkeypatch.setattr(kernels, "compile_kernel", compile_kernel)
    monkeypatch.setattr(kernels, "build_launcher", build_launcher)
    return counts


def names(found):
    return [item.kernel for item in found]


def test_kernels_come_in_order_each_made_once(made):
    a, b = vector_add(name="a"), vector_add(name="b")
    found = kernels.loaded([(b, ALL), (a, ALL), (b, ALL)], "sm_90", DEVICE)
    assert names(found) == ["b", "a", "b"]
    assert made["compile", "a"] == made["compile", "b"] == 1
    assert [item.seconds > 0 for item in found] == [True, True, False]
    again = kernels.loaded([(a, ALL)], "sm_90", DEVICE)
    assert names(again) == ["a"] and again[0].seconds == 0
    assert made["compile", "a"] == 1


def test_what_is_compiled_for_a_plan_is_told_with_it_once(made):
    wanted = [(vector_add(name="a"), ALL)]
    kernels.compiled_ahead(wanted, "sm_90", DEVICE)
    (found,) = kernels.loaded(wanted, "sm_90", DEVICE)
    (again,) = kernels.loaded(wanted, "sm_90", DEVICE)
    assert found.seconds > 0 and again.seconds == 0
    assert made["compile", "a"] == 1


def test_what_is_compiled_without_a_device_is_cached_where_it_runs_later(made):
    """No plan is made of it: the seconds of ``compile_for`` are not those of a run behind it."""
    wanted = [(vector_add(name="a"), ALL)]
    kernels.compiled_ahead(wanted, "sm_90")
    (found,) = kernels.loaded(wanted, "sm_90", DEVICE)
    assert found.seconds == 0


def test_other_alignment_or_device_is_another_kernel(made):
    source = vector_add(name="a")
    kernels.loaded([(source, ALL), (source, (True, True, False))], "sm_90", DEVICE)
    kernels.loaded([(source, ALL)], "sm_80", DEVICE)
    assert made["compile", "a"] == 3


def test_kernels_are_compiled_at_the_same_time(made, monkeypatch):
    together = threading.Barrier(2, timeout=60)

    def compile_kernel(source, arch, aligned):
        together.wait()  # broken where one would wait for the other to end
        return Compiled(source, made)

    monkeypatch.setattr(kernels, "compile_kernel", compile_kernel)
    both = [(vector_add(name=name), ALL) for name in ("a", "b")]
    assert names(kernels.loaded(both, "sm_90", DEVICE)) == ["a", "b"]


def test_a_launcher_is_built_once_for_kernels_of_one_kind(made):
    dtypes = (DataType.Float, DataType.BFloat16)
    same = [(vector_add(dtype, name=f"k{n}"), ALL) for n, dtype in enumerate(dtypes)]
    kernels.loaded(same, "sm_90", DEVICE)
    assert made["launcher", ("*", "*", "*", "constexpr")] == 1


def test_the_first_error_is_reported_and_the_others_are_compiled(made, monkeypatch):
    def compile_kernel(source, arch, aligned):
        if source.name != "a":
            raise LoweringError(f"no {source.name}")
        made["compile", source.name] += 1
        return Compiled(source, made)

    monkeypatch.setattr(kernels, "compile_kernel", compile_kernel)
    wanted = [(vector_add(name=name), ALL) for name in ("b", "a", "c")]
    with pytest.raises(LoweringError, match="no b"):
        kernels.loaded(wanted, "sm_90", DEVICE)
    assert made["compile", "a"] == 1
    assert not [t for t in threading.enumerate() if t.name.startswith("tritonfuser compile")]


def test_many_threads_that_want_a_kernel_compile_it_once(made):
    start = threading.Barrier(32, timeout=60)
    wanted = [(vector_add(name=name), ALL) for name in ("a", "b", "c")]

    def run(_):
        start.wait()
        return names(kernels.loaded(wanted, "sm_90", DEVICE))

    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(run, range(32)))
    assert found == [["a", "b", "c"]] * 32
    assert [made["compile", name] for name in "abc"] == [1, 1, 1]
