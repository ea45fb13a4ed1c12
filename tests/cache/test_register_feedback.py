"""Kernels that take more registers than predicted: their params are chosen again, once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch

from bench.cases import BY_NAME
from bench.random_graphs.__main__ import named
from bench.recorded.definitions import make_inputs, record
from tests.e2e.opened import open_signature
from tritonfuser import FusionDefinition, Schedule
from tritonfuser.cache import register_feedback
from tritonfuser.cache.dry_run import lower_for, lower_to_compile
from tritonfuser.devices import known
from tritonfuser.errors import ParamsError
from tritonfuser.frontend.inspect.explain import explain_lowered
from tritonfuser.frontend.tune import compiling
from tritonfuser.lowering import register_feedback as lowering_feedback
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.schedules import schedule_of

H200 = known("sm_90")
OPTIONS = RunOptions(arch="sm_90")


@cache
def definition():
    """The first of its two kernels takes 151 registers of a thread, 133 predicted."""
    entry = named("graph-22-126")
    fd = record(entry)
    return fd, list(make_inputs(entry, fd.fusion.ir, "meta"))


def first():
    fd, inputs = definition()
    return lower_for(fd.fusion.ir, inputs, OPTIONS)[0]


def to_compile(options=OPTIONS):
    fd, inputs = definition()
    return lower_to_compile(fd.fusion.ir, inputs, options)


def never(*args):
    raise AssertionError("nothing is to be compiled")


def test_other_params_are_compiled_and_are_a_schedule():
    fd, inputs = definition()
    found = schedule_of(to_compile().segmented)
    chosen = fd.schedule(inputs, arch="sm_90")
    assert chosen == schedule_of(first().segmented)
    assert [one.params for one in found.segments] != [one.params for one in chosen.segments]
    reports = fd.compile_for("sm_90", inputs)
    before = fd.compile_for("sm_90", inputs, schedule=chosen)
    assert reports[0].source != before[0].source and reports[0].registers < before[0].registers
    # It is replayed as data, by a run as well as by what shows its kernels.
    given = Schedule.from_dict(found.to_dict())
    again = fd.compile_for("sm_90", inputs, schedule=given)
    assert [one.source for one in again] == [one.source for one in reports]
    assert fd.schedule(inputs, arch="sm_90", schedule=given) == found


def test_a_report_says_why():
    segment, *_ = explain_lowered(to_compile(), H200).segments
    before = first().segmented.segments[0]
    assert str(before.params) in segment.overruled
    assert "151 registers a thread, 133 predicted" in segment.overruled
    assert segment.refusals == before.refusals and segment.cut == before.cut


def test_only_those_segments_change():
    before, after = first(), to_compile()
    pairs = list(zip(before.segmented.segments, after.segmented.segments, strict=True))
    assert [one.params == other.params for one, other in pairs].count(False) == 1
    same = [one for one, other in pairs if one == other]
    assert len(same) == len(pairs) - 1
    sources = zip(before.sources, after.sources, strict=True)
    assert [one == other for one, other in sources].count(False) == 1


def test_a_kernel_that_takes_as_many_registers_again_is_refused(monkeypatch):
    taken = lowering_feedback._compiled_registers

    def as_many(segment, kernel, params=None):
        found = taken(segment, kernel, params)
        return found if params is None else replace(found, registers=250)

    monkeypatch.setattr(lowering_feedback, "_compiled_registers", as_many)
    assert to_compile() == first()


def test_a_kernel_that_spills_is_refused(monkeypatch):
    before = first()
    texts = {source.text for source in before.sources}
    spilled = property(lambda kernel: 8 * (kernel.source.text not in texts))
    monkeypatch.setattr(lowering_feedback.CompiledKernel, "spilled_bytes", spilled)
    monkeypatch.setattr(lowering_feedback.CompiledRegisters, "is_limited_for_occupancy", False)
    assert to_compile() == before


def test_a_kernel_that_spills_much_is_replaced():
    """H200: 2706 us by the first kernel, 1183 by the other one, which spills 48 bytes of a thread
    so that two programs run at a time, 1326 where it does not, 859 by torch.compile."""
    entry = named("graph-48-8")
    fd = record(entry)
    inputs = list(make_inputs(entry, fd.fusion.ir, "meta"))
    (report,) = fd.compile_for("sm_90", inputs)
    (before,) = fd.compile_for("sm_90", inputs, schedule=fd.schedule(inputs, arch="sm_90"))
    assert before.spill_bytes > 6 * report.spill_bytes > 0
    assert (before.max_registers, report.max_registers, report.registers) == (0, 64, 64)


def backward_of_norm(columns):
    """A backward of a layer norm with dropout: its kernel as first chosen, and as it is taken."""
    case, size = BY_NAME["dropout_layernorm_bwd"], (8192, columns)
    fd = case.record(size, torch.bfloat16)
    inputs = list(case.inputs(size, torch.bfloat16, "meta"))
    report, *_ = fd.compile_for("sm_90", inputs)
    before, *_ = fd.compile_for("sm_90", inputs, schedule=fd.schedule(inputs, arch="sm_90"))
    return before, report


def test_a_kernel_that_spills_a_little_prefetches_elsewhere():
    """H200, rows of 8200 before sums were exchanged together: 256 us by loads that wait in
    registers, 195 by a pipeline in shared memory."""
    before, report = backward_of_norm(8320)
    assert before.spill_bytes > 0 == report.spill_bytes
    assert "_next = tl.load" in before.source and "num_stages=3" in report.source


def test_a_kernel_that_spills_more_has_more_warps():
    """H200: 257 us by 8 warps, 185 by 16."""
    before, report = backward_of_norm(8200)
    assert 0 < report.spill_bytes < before.spill_bytes / 4
    assert "num_warps=8" in before.source and "num_warps=16" in report.source


def test_where_the_other_choice_is_refused_the_first_stays(monkeypatch, capsys, setting):
    setting("TRITONFUSER_LOG", "cache")

    def refused(*args):
        raise ParamsError("no such tiles")

    monkeypatch.setattr(lowering_feedback, "under", refused)
    assert to_compile() == first()
    assert "chosen first stay: no such tiles" in capsys.readouterr().err


def test_what_is_given_stays(monkeypatch):
    fd, inputs = definition()
    monkeypatch.setattr(register_feedback, "compiled_ahead", never)
    chosen = fd.schedule(inputs, arch="sm_90")
    for options in (
        replace(OPTIONS, schedule=chosen),
        replace(OPTIONS, params=tuple(one.params for one in chosen.segments)),
    ):
        assert schedule_of(to_compile(options).segmented) == chosen


def test_other_machines_tell_no_registers(monkeypatch):
    monkeypatch.setattr(register_feedback, "compiled_ahead", never)
    to_compile(replace(OPTIONS, arch="gfx942"))


def sums():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.sin(x), [1]))
    return fd


def test_open_sizes_stay(monkeypatch):
    fd, inputs = sums(), [torch.empty(4096, 600)]
    sizes = open_signature(fd, inputs, [[torch.empty(5000, 600)]])
    monkeypatch.setattr(register_feedback, "compiled_ahead", never)
    made = lower(fd.fusion.ir, sizes.signature, H200, env=sizes.env)
    found = register_feedback.with_register_feedback(fd.fusion.ir, made, inputs, H200, RunOptions())
    assert found is made


def test_the_interpreter_compiles_nothing(monkeypatch):
    monkeypatch.setattr(register_feedback, "compiled_ahead", never)
    x = torch.rand(8, 16)
    (found,) = sums().run([x])
    torch.testing.assert_close(found, x.sin().sum(1))


def test_a_tuner_begins_with_what_a_run_has(monkeypatch):
    def lowered(fusion, inputs, options, memo):
        return lower_for(fusion, inputs, replace(options, arch="sm_90"), memo=memo)

    fd, inputs = definition()
    monkeypatch.setattr(compiling, "lower_for", lowered)
    found = compiling.Compiler(fd.fusion.ir, inputs).heuristics()
    assert found == schedule_of(to_compile().segmented)


def test_kernels_of_a_gpu_that_are_interpreted_stay(monkeypatch):
    fd, inputs = definition()
    monkeypatch.setattr(register_feedback, "compiled_ahead", never)
    found = register_feedback.with_register_feedback(
        fd.fusion.ir, first(), inputs, H200, RunOptions(), torch.device("cpu")
    )
    assert found == first()
