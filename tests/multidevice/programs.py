"""All programs over a mesh: importing a table adds its programs to ``CASES``."""

from __future__ import annotations

from tests.multidevice import (
    attention_programs,
    communication_programs,
    overlap_programs,
    product_programs,
)
from tests.multidevice.cases import CASES, Case

TABLES = (communication_programs, product_programs, attention_programs, overlap_programs)


def of_size(count: int) -> list[Case]:
    """The programs for so many devices."""
    return [case for case in CASES if case.size == count]
