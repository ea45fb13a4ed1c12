"""The least instructions for one element of a node, by op and dtype.

Counted off the expressions of the op table: an operator is one instruction, a function what
``_FUNCTIONS`` says. Those figures are counted off the PTX of sm_90 for float32, where every element
takes them: branches that only some numbers take do not count, nor does what the compiler may fold.
"""

from __future__ import annotations

import ast
from functools import cache

from ...dtypes import EIGHT_BIT_FLOATS, REDUCED_FLOATS, Category, DataType
from ...heuristics.bounds import Instructions
from ...ir import Const, Node, Value
from ...ops.builder import op_of
from ...ops.forms import Moments, Pointwise, Random, Reduction, Scan, number_of
from ...ops.registry import get
from ...ops.typing_rules import operand_types

NONE = Instructions()
ONE_WORD = Instructions(integer_multiplies=5, integer=5)
"""Philox4x32-10: 20 wide multiplies and 20 logic instructions give four words."""

_MULTIPLY, _ADD = Instructions(multiplies=1), Instructions(adds=1)
_SELECT = Instructions(integer=1)
_ROUND = Instructions(conversions=1)
_LOGARITHM = Instructions(multiplies=12, adds=12, conversions=1)
_SINE = Instructions(multiplies=9, adds=9)
_UNKNOWN = Instructions(others=1)

_FUNCTIONS = {
    "exp": Instructions(multiplies=5, adds=5, sfu=1, integer=1),
    "exp2": Instructions(sfu=1),
    "exp_nonpositive": Instructions(multiplies=1, sfu=1),
    "coarse_exp": Instructions(multiplies=1, sfu=1),
    "coarse_sigmoid": Instructions(multiplies=1, adds=1, sfu=2),
    "sigmoid": Instructions(multiplies=5, adds=6, sfu=2, integer=1),
    "silu": Instructions(multiplies=6, adds=6, sfu=2, integer=1),
    "tanh": Instructions(multiplies=9, adds=7, sfu=2, integer=2),
    "one_plus_tanh": Instructions(multiplies=2, adds=1, sfu=2),
    "one_plus_erf": Instructions(multiplies=9, adds=9, sfu=2, integer=1),
    "erf": Instructions(multiplies=7, adds=7),
    "log": _LOGARITHM,
    "log2": _LOGARITHM,
    "log10": _LOGARITHM,
    "log1p": Instructions(multiplies=12, adds=12),
    "sine": _SINE,
    "cosine": _SINE,
    "tan": Instructions(multiplies=9, adds=9, sfu=1),
    "acos": Instructions(multiplies=9, adds=9, sfu=1),
    "asin": Instructions(multiplies=9, adds=9, sfu=1),
    "atan": Instructions(multiplies=11, adds=11, sfu=1),
    "acosh": Instructions(multiplies=13, adds=13, sfu=1),
    "asinh": Instructions(multiplies=14, adds=14, sfu=1),
    "atanh": Instructions(multiplies=13, adds=13, sfu=1),
    "cosh": Instructions(multiplies=7, adds=7, sfu=2),
    "sinh": Instructions(multiplies=7, adds=7, sfu=2),
    "expm1": Instructions(multiplies=9, adds=9, sfu=1),
    "erfc": Instructions(multiplies=20, adds=20, sfu=2),
    "erfinv": Instructions(multiplies=8, adds=8, sfu=1),
    "erfcinv": Instructions(multiplies=80, adds=80, sfu=8),
    "lgamma": Instructions(multiplies=17, adds=17),
    "pow_float": Instructions(multiplies=20, adds=20, sfu=2),
    "mul_rn": _MULTIPLY,
    "div_by_sum": Instructions(multiplies=3, adds=2),
    "div_rounded": Instructions(multiplies=5, adds=4, integer=3, sfu=1),
    "reciprocal": Instructions(multiplies=2, adds=2, sfu=1),
    "square_root": Instructions(multiplies=3, adds=3, sfu=1),
    "sqrt": Instructions(sfu=1),
    "rsqrt": Instructions(sfu=1),
    "lerp": Instructions(multiplies=2, adds=2, integer=1),
    "ceil": _ROUND,
    "floor": _ROUND,
    "trunc": _ROUND,
    "nearbyint": _ROUND,
    "where": _SELECT,
    "minimum": _SELECT,
    "maximum": _SELECT,
    "abs": NONE,
}
"""Of the functions that expressions call, in float32; others count as one instruction."""


def _more(fp32: int, integer: int = 0, conversions: int = 0) -> Instructions:
    return Instructions(multiplies=fp32, adds=fp32, integer=integer, conversions=conversions)


_BESIDE = {
    "exp2": _more(2),
    "coarse_exp": _more(2),
    "coarse_sigmoid": _more(2, 1),
    "one_plus_tanh": _more(2, 1),
    "one_plus_erf": _more(3, 2),
    "erf": _more(10, 10),
    "log": _more(3, 9),
    "log2": _more(5, 9),
    "log10": _more(4, 9),
    "log1p": _more(3, 9),
    "sine": _more(1, 9),
    "cosine": _more(1, 10),
    "tan": _more(3, 7, 2),
    "acos": _more(5, 3),
    "asin": _more(3, 6),
    "atan": _more(6, 20),
    "acosh": _more(8, 12, 1),
    "asinh": _more(10, 24, 1),
    "atanh": _more(6, 14, 1),
    "cosh": _more(2, 8, 1),
    "sinh": _more(3, 9, 1),
    "expm1": _more(6, 10, 1),
    "erfc": _more(14, 8, 1),
    "erfinv": _more(3, 4),
    "erfcinv": _more(62, 57, 3),
    "lgamma": _more(6, 23, 1),
    "pow_float": _more(24, 30, 5),
    "div_rounded": _more(3, 2),
    "reciprocal": _more(3, 2),
    "square_root": _more(4, 5),
    "sqrt": _more(3, 2),
    "rsqrt": _more(2),
}
"""Instructions beside those of ``_FUNCTIONS``: for numbers that are very small, infinite, or none.

By the SASS of sm_90 along its shortest path. A better function may do without them, so bounds do
not count them."""


def compiled_instructions(node: Node) -> Instructions:
    """Instructions of a node for an element of its result, as they are compiled."""
    form, least = op_of(node).form, instructions_of(node)
    if not isinstance(form, Pointwise) or form.copies:
        return least
    return least + _beside(node.op, _expression(node, form)[0])


@cache
def _beside(op: str, text: str) -> Instructions:
    total = NONE
    for part in ast.walk(_parsed(op, text)):
        if isinstance(part, ast.Call):
            total += _BESIDE.get(_name_of(part), NONE)
    return total


def instructions_of(node: Node) -> Instructions:
    """Instructions of a node for an element of its result; of a reduction, of its operand."""
    form = op_of(node).form
    if isinstance(form, Pointwise):
        return _of_pointwise(node, form)
    if isinstance(form, Random):
        return ONE_WORD
    if isinstance(form, Moments):
        return _in_dtype(Instructions(multiplies=2, adds=3), next(node.operands()).dtype)
    if isinstance(form, Reduction | Scan):
        operand = next(node.operands()).dtype
        return counted(form.combine.format(a="a", b="b"), operand)
    return NONE


def _of_pointwise(node: Node, form: Pointwise) -> Instructions:
    if form.copies:
        (operand,) = (arg for arg in node.args[:1] if isinstance(arg, Value | Const))
        return conversion(operand.dtype, node.out.dtype)
    text, operands, computed = _expression(node, form)
    found = _of_expression(node.op, text, operands)
    converted = conversion(computed, node.out.dtype)
    return found if converted is NONE else found + converted


def _expression(node: Node, form: Pointwise) -> tuple[str, DataType, DataType]:
    """The expression of a node, and the dtypes of its operands and of what it computes."""
    typing = form.typing(operand_types([a for a in node.args if isinstance(a, Value | Const)]))
    text = form.expression(typing.operands[0], number_of(node.args[-1]))
    return text, typing.operands[0], typing.computed


@cache
def _of_expression(op: str, text: str, dtype: DataType) -> Instructions:
    """Of an op's expression, in which its parameters stand in braces."""
    return _counted(_parsed(op, text), dtype)


def _parsed(op: str, text: str) -> ast.Expression:
    names = {param.name: param.name for param in get(op).params}
    return ast.parse(text.format(**names, dtype="dtype"), mode="eval")


def conversion(source: DataType, target: DataType) -> Instructions:
    """Instructions to convert one element; one instruction makes two 16-bit floats."""
    kinds = {source.info.category, target.info.category}
    if source is target or kinds == {Category.INT}:
        return NONE
    if Category.BOOL in kinds or kinds == {Category.COMPLEX}:
        return Instructions(others=1)
    if kinds == {Category.FLOAT}:
        if target in REDUCED_FLOATS or {source, target} & EIGHT_BIT_FLOATS:
            return Instructions(conversions=0.5)
        if source in REDUCED_FLOATS:
            return Instructions(others=1)
    return Instructions(conversions=1)


@cache
def counted(text: str, dtype: DataType) -> Instructions:
    """Instructions of a Python expression on operands of ``dtype``."""
    return _counted(ast.parse(text, mode="eval"), dtype)


def _counted(expression: ast.Expression, dtype: DataType) -> Instructions:
    total = NONE
    for part in ast.walk(expression):
        total += _of_syntax(part, dtype)
    return _in_dtype(total, dtype)


def _of_syntax(part: ast.AST, dtype: DataType) -> Instructions:
    """Instructions of one operator or call in an expression."""
    if isinstance(part, ast.Compare):
        return _SELECT
    if isinstance(part, ast.BinOp):
        return _of_operator(part.op, dtype)
    if isinstance(part, ast.Call):
        name = _name_of(part)
        # Conversions inside expressions are of truth values and bits: they may be folded.
        return NONE if name in ("to", "float") else _FUNCTIONS.get(name, _UNKNOWN)
    return NONE


def _name_of(call: ast.Call) -> str:
    """The name of the function that is called, without its module."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _of_operator(operator: ast.operator, dtype: DataType) -> Instructions:
    floats = dtype.info.category is Category.FLOAT
    if isinstance(operator, ast.Mult):
        return _MULTIPLY if floats else Instructions(integer_multiplies=1)
    if isinstance(operator, ast.Add | ast.Sub):
        return _ADD if floats else _SELECT
    if isinstance(operator, ast.Div):
        return Instructions(multiplies=1, sfu=1)
    # Logic of three operands is one instruction, and that of truth values may need none.
    return Instructions(integer=0.5) if dtype.info.category is Category.INT else NONE


def _in_dtype(found: Instructions, dtype: DataType) -> Instructions:
    """Instruction counts of float32 as those of ``dtype``: float64 has one pipe for all of them."""
    if dtype is not DataType.Double:
        return found
    return Instructions(fp64=found.fp32 + found.sfu, integer=found.integer, others=found.others)
