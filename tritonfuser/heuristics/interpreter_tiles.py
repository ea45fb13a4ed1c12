"""Tiles for Triton's interpreter: few and large, since each program takes milliseconds."""

from __future__ import annotations

from typing import NamedTuple

from ..device import MAX_BLOCK_ELEMENTS
from .integers import next_power_of_2
from .problem import Problem

INTERPRETER_ELEMENTS = MAX_BLOCK_ELEMENTS // 4
"""Most elements of a tile in the interpreter."""


class InterpreterTile(NamedTuple):
    """``block_x`` rows with ``block_r`` elements of each; ``persistent`` where that is all of
    them."""

    block_x: int
    block_r: int
    persistent: bool


def interpreter_tile(problem: Problem) -> InterpreterTile:
    """The tile of a kernel with rows."""
    block_r = min(next_power_of_2(problem.reduced), INTERPRETER_ELEMENTS)
    block_x = min(next_power_of_2(problem.parallel), max(INTERPRETER_ELEMENTS // block_r, 1))
    if problem.co_reduced > 1:
        block_x = next_power_of_2(problem.co_reduced)
        block_r = min(block_r, max(INTERPRETER_ELEMENTS // block_x, 1))
    return InterpreterTile(block_x, block_r, block_r >= problem.reduced)
