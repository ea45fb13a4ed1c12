"""What the op table says of instructions is about what sm_90 runs."""

from __future__ import annotations

import pytest

from tests.lowering.sass import disassembled, run_instructions
from tests.ops.pointwise_harness import kernel, row_text, typing_of
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.access.instructions import counted
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.pointwise import approximations, binary, softmax_parts, ternary, unary
from tritonfuser.ops.table import Op

F = DataType.Float
TABLES = (unary.ROWS, binary.ROWS, ternary.ROWS, approximations.INTERNAL, softmax_parts.INTERNAL)
PER_THREAD = 8
APART = {"atan2", "asinh", "sinh"}
"""Branches of theirs lie on the fast path too: the count of a straight way is too low."""


def dear(op: Op) -> bool:
    return isinstance(op.form, Pointwise) and op.form.instructions > 1


ROWS = [op for rows in TABLES for op in rows if dear(op) and typing_of(op, F) is not None]


def count(text: str, operands: int, folder) -> float:
    source = kernel([f"r0 = {text}"], [F] * operands, [F], 128 * PER_THREAD)
    made = compile_kernel(source, "sm_90", (True,) * len(source.args))
    return run_instructions(disassembled(made.asm["cubin"], folder)) / PER_THREAD


QUICK = {"sin", "exp", "div", "one_plus_erf"}
CASES = [
    pytest.param(op, id=op.name, marks=() if op.name in QUICK else pytest.mark.slow)
    for op in ROWS
    if op.name not in APART
]


@pytest.mark.parametrize("op", CASES)
def test_a_rows_instructions_are_those_of_its_code(op, tmp_path):
    typing = typing_of(op, F)
    names = [f"x{place}" for place in range(len(typing.operands))]
    copies = " + ".join(names) if len(names) > 1 else "x0"
    found = count(row_text(op, typing, names), len(names), tmp_path) - count(
        copies, len(names), tmp_path
    )
    assert 0.5 * found - 1 <= op.form.instructions <= 1.5 * found + 2


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_no_code_does_without_what_bounds_count(op):
    """The bound of an op is at most what its code runs."""
    typing = typing_of(op, F)
    text = op.form.expression(typing.operands[0])
    names = {param.name: param.name for param in op.params}
    found = counted(text.format(**{**names, "dtype": "dtype"}), F)
    assert 0 < found.issued <= op.form.instructions
