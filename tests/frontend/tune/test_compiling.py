"""Candidates compiled for a GPU that need not be here, and those that are left out before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.frontend.tune.fakes import compiler_for, softmax
from tritonfuser import FusionDefinition
from tritonfuser.cache.dry_run import lower_for
from tritonfuser.frontend.tune import compiling
from tritonfuser.frontend.tune.candidates import neighbours
from tritonfuser.frontend.tune.interfaces import PreparedSchedule


@pytest.fixture
def compiler(monkeypatch):
    """A compiler for sm_90."""

    def lowered(fusion, inputs, options, memo):
        return lower_for(fusion, inputs, replace(options, arch="sm_90"), memo=memo)

    monkeypatch.setattr(compiling, "lower_for", lowered)
    fd, _ = softmax()
    return compiler_for(fd, [torch.empty(256, 1000)])


def _order_of_loads(schedule):
    return schedule.segments[0].params.loads_first


def test_threads_compile_candidates(compiler):
    first = compiler.prepared(compiler.heuristics())
    # Of loads that come first and those that do not, one is what the rules have.
    near = [one for one in neighbours(first.segmented) if _order_of_loads(one) is None][:3]
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(compiler, near))
    assert all(isinstance(one, PreparedSchedule) for one in made)
    assert len({one.kernels for one in (first, *made)}) == 4


def test_what_is_not_legal_is_not_compiled(compiler, monkeypatch):
    monkeypatch.setattr(compiling, "compiled", None)
    assert compiler(replace(compiler.heuristics(), segments=())).startswith("not legal: ")


def test_launchers_are_built_for_the_process_that_times(compiler, monkeypatch):
    """It would wait half a second for each: a C compiler builds them."""
    built = []
    monkeypatch.setattr(compiling, "launcher_built", built.append)
    compiler.prepared(compiler.heuristics())
    assert [source.name[:2] for source in built] == ["s0"]


def test_what_needs_too_much_shared_memory_is_left_out(compiler, monkeypatch):
    made = SimpleNamespace(shared_bytes=1 << 20)
    monkeypatch.setattr(compiling, "compiled", lambda *given: made)
    assert compiler(compiler.heuristics()).startswith("it asks for 1048576 bytes of shared memory")


def test_what_the_compiler_refuses_is_a_reason(compiler, monkeypatch):
    def fails(*given):
        raise IndexError("pass failed")

    monkeypatch.setattr(compiling, "compiled", fails)
    assert compiler(compiler.heuristics()) == "IndexError: pass failed"


def test_what_is_tried_is_what_its_kernels_are(monkeypatch):
    """A segment in the launch of another has its warps, whatever was proposed."""

    def lowered(fusion, inputs, options, memo):
        return lower_for(fusion, inputs, replace(options, arch="sm_90"), memo=memo)

    monkeypatch.setattr(compiling, "lower_for", lowered)
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0]))
    compiler = compiler_for(fd, [torch.empty(4096, 1024)])
    chosen = compiler.heuristics()
    first, last = chosen.segments
    last = replace(last, params=replace(last.params, num_warps=2 * first.params.num_warps))
    joined = replace(chosen, segments=(first, replace(last, finishes=True)))
    found = compiler.prepared(joined).schedule
    assert found != joined
    assert found == compiler.prepared(found).schedule
    assert found.segments[1].params.num_warps == first.params.num_warps
