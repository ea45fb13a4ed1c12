"""Kernels that take more registers than leave room for the programs that are expected to run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from bench.cases import BY_NAME
from bench.random_graphs.__main__ import named
from bench.recorded.definitions import make_inputs, record
from tests.e2e.checking import CPU
from tests.e2e.opened import open_signature
from tests.lowering.kernels import spilling, vector_add
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.devices import known
from tritonfuser.heuristics.cost.registers import limits_for_more_programs
from tritonfuser.lowering.backend import compile as compiling
from tritonfuser.lowering.backend.register_limits import with_limit
from tritonfuser.lowering.backend.spills import registers_of
from tritonfuser.lowering.pipeline import lower

H200 = known("sm_90")


@pytest.mark.parametrize(
    ("warps", "expected", "limits"),
    [
        (8, 59, (128, 80, 64)),  # 64 of a thread are given: four programs
        (8, 157, ()),
        (16, 30, (64, 40)),  # of a third and fourth one there are half of the warps already
        (4, 100, (255, 168, 128)),
        (1, 40, (255,) * 5),  # a seventh one is less than a fifth more
        (32, 60, ()),
    ],
)
def test_limits_lead_to_as_many_programs_as_expected(warps, expected, limits):
    assert limits_for_more_programs(H200, warps, expected) == limits


def compiled(source, monkeypatch):
    """The kernel, and the limits that it was compiled with."""
    made = []
    given = compiling._compiled
    monkeypatch.setattr(compiling, "_compiled", lambda *a: made.append(a[0]) or given(*a))
    found = compiling.compile_kernel(source, "sm_90", (True,) * len(source.args))
    return found, [each.max_registers for each in made]


def test_one_more_program_is_tried_and_what_spills_much_is_not_taken(monkeypatch):
    """64 sums of a thread do not fit into 128 registers."""
    source = vector_add(size=1 << 16, block=1 << 14)
    found, limits = compiled(replace(source, register_limits=(128, 80, 64)), monkeypatch)
    assert limits == [0, 128]
    assert found.source.max_registers == 0 and not found.spilled
    assert registers_of(found.asm["cubin"]) > 128


@pytest.mark.parametrize(
    ("registers", "spilled", "taken"),
    [(146, 0, True), (146, 64, True), (146, 72, False), (100, 24, True), (100, 32, False)],
)
def test_one_more_program_may_cost_a_few_spilled_words(monkeypatch, registers, spilled, taken):
    """A second one more of them than a third: nothing hides what one program waits for."""

    def made(source, *_):
        bytes_each = spilled if source.max_registers else 0
        return SimpleNamespace(
            source=source, registers=registers, spilled_bytes=bytes_each, spilled=bytes_each > 0
        )

    monkeypatch.setattr(compiling, "_compiled", made)
    source = replace(vector_add(), register_limits=(128, 80))
    found = compiling.compile_kernel(source, "sm_90", (True,) * len(source.args))
    assert found.source.max_registers == (128 if registers > 128 else 80) * taken


@pytest.mark.parametrize("limits", [(), (255, 168)])
def test_nothing_is_tried_where_enough_programs_run(monkeypatch, limits):
    source = replace(vector_add(size=1 << 16, block=1 << 14), register_limits=limits)
    assert len(compiled(source, monkeypatch)[1]) == 1


def test_a_kernel_that_spills_has_no_lower_limit(monkeypatch):
    _, limits = compiled(replace(spilling(), register_limits=(64, 40)), monkeypatch)
    assert limits == [0]


@pytest.mark.parametrize("between", [" ", "\n        "])
def test_another_limit_replaces_the_one_in_the_launch(between):
    source = vector_add()
    launch = f"def launch(x):\n    k[1](x, num_warps=4, num_stages=1,{between}maxnreg=255)\n"
    found = with_limit(replace(source, text=f"{source.text}\n{launch}", max_registers=255), 128)
    assert "num_stages=1, maxnreg=128)" in found.text and "255" not in found.text


def test_a_definition_whose_kernel_keeps_its_limit():
    """A tile of two sides, whose loads the compiler all begins first."""
    entry = named("graph-52-16")
    fd = record(entry)
    inputs = make_inputs(entry, fd.fusion.ir, "meta")
    schedule = fd.schedule(inputs, arch="sm_90").to_dict()
    schedule["segments"][-1]["params"] |= {"num_warps": 8, "block_x": 128, "block_y": 16}
    *_, last = fd.compile_for("sm_90", inputs, schedule=schedule)
    assert (last.max_registers, last.spill_bytes) == (80, 0)
    assert last.registers <= 80 and "maxnreg=80" in last.source


def test_a_program_more_than_expected_is_tried_within_the_error_of_the_estimate():
    """34 registers are predicted of 1024 threads; 44 are taken, and 32 spill nothing."""
    case = BY_NAME["rmsnorm_residual"]
    fd = case.record((16384, 20480), torch.bfloat16)
    (found,) = fd.compile_for("sm_90", case.inputs((16384, 20480), torch.bfloat16, "meta"))
    assert (found.max_registers, found.spill_bytes) == (32, 0)


@pytest.mark.parametrize(("warps", "limit"), [(8, 255), (16, 128), (32, 64)])
def test_a_limit_for_fewer_warps_is_lowered_to_what_a_program_has(warps, limit):
    """A schedule with another number of warps: 512 threads of 255 registers fit nowhere."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [1]))
    inputs = [torch.empty(256, 8192, device="meta")]
    schedule = fd.schedule(inputs, arch="sm_90").to_dict()
    schedule["segments"][0]["params"] |= {"num_warps": warps, "max_registers": 255}
    (source,) = fd.kernels(inputs, arch="sm_90", schedule=schedule)
    assert source.max_registers == limit and f"maxnreg={limit}" in source.text
    (report,) = fd.compile_for("sm_90", inputs, schedule=schedule)
    assert report.registers * warps * 32 <= 65536


def limits_of(inputs, others):
    """The limits of a definition's kernel: of one size, or of all between two."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        y = fd.define_tensor([-1, -1], contiguity=True, stride_order=[0, 1])
        fd.add_output(fd.ops.sum(fd.ops.mul(fd.ops.sin(x), y), [1]))
    sizes = open_signature(fd, inputs, others)
    if sizes is None:
        found = lower(fd.fusion.ir, signature(fd.fusion.ir, inputs, CPU), H200)
    else:
        found = lower(fd.fusion.ir, sizes.signature, H200, env=sizes.env)
    return [kernel.register_limits for kernel in found.sources if kernel is not None]


def two(rows):
    return [torch.empty(rows, 600), torch.empty(600, rows).t()]


def test_none_where_sizes_vary():
    assert any(limits_of(two(1 << 16), ()))
    assert not any(limits_of(two(1 << 16), [two(70000)]))
