"""Limits on the registers of a kernel: which one to compile it with once more, and in its text.

The assembler may choose fewer registers than a kernel wants, so that more programs have room than
the grid has, and spill. A kernel that spills is then tried with all registers that there is room
for; one with a limit, without it. Others may take so many that fewer programs run at a time than
expected: those are tried with the limit for one more program.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Protocol

from ..kernel_source import KernelSource

SPILLED_FOR_TWO, SPILLED_FOR_MORE = 64, 24
"""Bytes that a thread may spill so that two programs run at a time on a multiprocessor, where one
would run alone, and nothing would be done while it waits; and so that one more of several runs.
H200, kernels of the suite, of models and of random definitions: the ten that spill 8 to 56 bytes
for a second program take 0.63 to 1.03 times as long (0.81 in the geometric mean), the thirteen that
spill 8 to 24 for one more of several 0.76 to 1.03 times (0.95), the nineteen that spill 32 to 120
for that 0.91 to 1.43 times (1.10)."""

_LIMIT = re.compile(r",\s+maxnreg=\d+")
"""A limit on registers in the text of a launch, which may begin a line."""


class HasRegisters(Protocol):
    """A compiled kernel."""

    @property
    def registers(self) -> int: ...


def limit_against_spills(source: KernelSource, spilling: HasRegisters) -> KernelSource | None:
    """The source of a kernel that spills, with another register limit; None where none helps."""
    if source.max_registers:
        return without_limit(source) if source.workspace is None else None
    if source.room <= spilling.registers:
        return None
    return with_limit(source, source.room)


def limit_for_one_more(source: KernelSource, found: HasRegisters) -> KernelSource | None:
    """The source of a kernel with the limit by which one more of its programs runs at a time.

    None where as many run as expected.
    """
    limits = [limit for limit in source.register_limits if limit < found.registers]
    return with_limit(source, max(limits)) if limits else None


def most_spilled(limited: KernelSource) -> int:
    """Bytes that a thread may spill of a kernel with the limit for one more of its programs."""
    for_two = limited.max_registers == limited.register_limits[0]
    return SPILLED_FOR_TWO if for_two else SPILLED_FOR_MORE


def with_limit(source: KernelSource, registers: int) -> KernelSource:
    """A kernel with a limit on its registers, in its launch too, in the place of the one it has."""
    option = f"num_stages={source.num_stages}"
    before, found, behind = without_limit(source).text.rpartition(option)
    text = f"{before}{found}, maxnreg={registers}{behind}" if found else source.text
    return replace(source, text=text, max_registers=registers)


def without_limit(source: KernelSource) -> KernelSource:
    """A kernel without the limit on its registers, in its launch too."""
    return replace(source, text=_LIMIT.sub("", source.text), max_registers=0)
