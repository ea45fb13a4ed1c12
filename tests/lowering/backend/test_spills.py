"""Kernels that spill though there is room for more registers, and how that is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.recorded.definitions import load, make_inputs, record
from tests.lowering.kernels import kernel, spilling, tensor, vector_add
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.backend import compile as compiling
from tritonfuser.lowering.backend.kernel_report import report_of
from tritonfuser.lowering.backend.register_limits import limit_against_spills, with_limit
from tritonfuser.lowering.backend.spills import registers_of, spilled_bytes
from tritonfuser.lowering.kernel_source import CooperativeWorkspace

NVIDIA = ("sm_80", "sm_90", "sm_100")


def compiled(source, arch="sm_90"):
    return compiling.compile_kernel(source, arch, (True,) * len(source.args))


def spilled(found):
    return spilled_bytes(found.asm["ptx"], found.asm["cubin"])


@pytest.mark.parametrize("arch", NVIDIA)
@pytest.mark.parametrize("source", [vector_add(), spilling()], ids=lambda source: source.name)
def test_the_binary_says_what_the_assembler_says(source, arch):
    found = compiled(source, arch)
    told = report_of(found, "pointwise")
    assert registers_of(found.asm["cubin"]) == told.registers
    assert found.spilled == (spilled(found) > 0) == (told.spill_bytes > 0)
    assert found.spilled == (source.name == "spilling")


def test_arrays_are_no_spills():
    """A sine of a large number takes an array."""
    source = kernel(
        "sine",
        """
        from triton.language.extra import libdevice

        @triton.jit
        def sine(x, out):
            i = tl.arange(0, 128)
            tl.store(out + i, libdevice.sin(tl.load(x + i)))
        """,
        [tensor(name, DataType.Double, place, 128) for place, name in enumerate(("x", "out"))],
    )
    found = compiled(source)
    assert ".local" in found.asm["ptx"]
    assert spilled(found) == 0


def test_another_layout_is_no_error():
    assert spilled_bytes("", b"no binary at all") == 0
    assert registers_of(bytes(64)) == 0


def test_the_limit_is_in_the_launch():
    source = vector_add()
    text = f"{source.text}\ndef launch(x):\n    vector_add[1](x, num_warps=4, num_stages=1)\n"
    found = with_limit(replace(source, text=text), 104)
    assert found.max_registers == 104
    assert "(x, num_warps=4, num_stages=1, maxnreg=104)" in found.text
    assert with_limit(source, 104).text == source.text


def test_registers_that_there_is_room_for_are_taken_where_fewer_spill():
    """The assembler stops at 96 by itself, for more programs than the grid has."""
    entry = next(entry for entry in load() if entry.name == "hf-bert-15")
    fd = record(entry)
    given = make_inputs(entry, fd.fusion.ir, "meta")
    found = fd.schedule(given, arch="sm_90")
    first, *others = found.segments
    piped = replace(first, params=replace(first.params, num_stages=3, prefetch=False))
    schedule = replace(found, segments=(piped, *others))
    first, *others = fd.compile_for("sm_90", given, schedule=schedule)
    assert (first.spill_bytes, first.max_registers) == (0, 255)
    assert "maxnreg=255" in first.source
    assert all(each.max_registers == 0 for each in others)


@pytest.mark.parametrize(
    ("changes", "times"),
    [
        ({"room": 255}, 2),
        ({"room": 64}, 1),
        ({}, 1),
        ({"room": 255, "max_registers": 128}, 2),
    ],
)
def test_what_is_compiled_once_more(monkeypatch, changes, times):
    """What spills, where there is room for more registers than it has, or where it has a limit that
    it need not have."""
    made = []
    given = compiling._compiled

    def counted(source, gpu, aligned):
        made.append(source.max_registers)
        return given(source if source.max_registers else limited, gpu, aligned)

    # As an assembler that takes 128 registers at most by itself.
    limited = replace(spilling(), max_registers=128)
    monkeypatch.setattr(compiling, "_compiled", counted)
    found = compiled(replace(spilling(), **changes))
    assert len(made) == times
    assert found.spilled


def test_a_limit_by_which_a_kernel_spills_is_dropped_where_it_does_not_without(monkeypatch):
    """The assembler begins as many loads as the limit holds, and has no room for their sums."""
    given = compiling._compiled

    def assembled(source, gpu, aligned):
        made = spilling() if source.max_registers else source
        return given(made, gpu, (True,) * len(made.args))

    monkeypatch.setattr(compiling, "_compiled", assembled)
    source = vector_add()
    text = f"{source.text}\ndef launch(x):\n    k[1](x, num_warps=4, num_stages=1, maxnreg=32)\n"
    found = compiled(replace(source, text=text, max_registers=32))
    assert not found.spilled and found.source.max_registers == 0
    assert "num_stages=1)" in found.source.text and "maxnreg" not in found.source.text


def test_programs_that_have_to_run_at_a_time_keep_their_limit():
    source = replace(spilling(), max_registers=128)
    shared = replace(source, workspace=CooperativeWorkspace("w", DataType.Int32, 64))
    found = compiled(source)
    assert limit_against_spills(source, found).max_registers == 0
    assert limit_against_spills(shared, found) is None


def test_nothing_is_compiled_twice_where_nothing_spills(monkeypatch):
    made = []
    given = compiling._compiled
    monkeypatch.setattr(compiling, "_compiled", lambda *a: made.append(a) or given(*a))
    assert compiled(replace(vector_add(), room=255)).source.max_registers == 0
    assert len(made) == 1
