"""Numbers, conversions and calls as Triton text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import torch

from ...dtypes import EIGHT_BIT_FLOATS, Category, DataType, e4m3_saturates, int_range
from ...ir import Const, Node
from ...ops.builder import as_call
from ...ops.forms import Pointwise, number_of
from ...symbolic.sizes import is_size
from .names import Name


def pointwise_text(
    node: Node,
    form: Pointwise,
    names: list[Name],
    dtypes: tuple[DataType, ...],
    computed: DataType,
) -> str:
    """The text of a pointwise op: its template with the names of its operands."""
    operands = zip(as_call(node).op.params, node.args, strict=False)
    params = [param.name for param, arg in operands if arg is not None]
    template = form.expression(dtypes[0], last_value(node))
    simple = any(not n.literal and n.dtype is d for n, d in zip(names, dtypes, strict=True))
    texts = {
        param: name.text
        if not name.literal or _adapts(name, simple, template)
        else typed_literal(name)
        for param, name in zip(params, names, strict=True)
    }
    return _subtracted(template.format(**texts, dtype=triton_name(computed)))


def _subtracted(text: str) -> str:
    """``tv1 - 3`` in the place of ``tv1 + -3``. From 2**31 on Triton takes numbers for unsigned."""
    match = re.fullmatch(r"(\w+) \+ -(\d+)", text)
    return text if match is None or int(match[2]) >= 1 << 31 else f"{match[1]} - {match[2]}"


_UNCHANGED = {
    Category.INT: ("{} + 0", "0 + {}", "{} - 0", "{} * 1", "1 * {}"),
    Category.FLOAT: ("{} - 0.0", "{} * 1.0", "1.0 * {}"),  # -0.0 + 0.0 is 0.0
}


def unchanged(text: str, operands: Iterable[Name]) -> Name | None:
    """The operand that an expression gives as it is, as ``tv1 * 1.0`` does; None for others."""
    for name in operands:
        forms = () if name.literal else _UNCHANGED.get(name.dtype.info.category, ())
        if text in [form.format(name.text) for form in forms]:
            return name
    return None


def _adapts(name: Name, beside_tensor: bool, template: str) -> bool:
    """Whether Triton gives a bare number the operand's dtype by itself."""
    infix = "(" not in template
    return beside_tensor and (name.dtype is DataType.Float or (infix and _is_plain(name)))


def _is_plain(name: Name) -> bool:
    return name.dtype in (DataType.Int, DataType.Int32)


def load_text(pointer: str, mask: str, fresh: bool = False) -> str:
    """A load; zeros where the mask does not hold; ``fresh`` from the L2 cache or memory."""
    rest = f", mask={mask}, other=0" if mask else ""
    return f"tl.load({pointer}{rest}{_PAST_L1 if fresh else ''})"


_PAST_L1 = ', cache_modifier=".cg"'


def zero(dtype: DataType) -> Name:
    """The literal zero of a dtype."""
    return Name(literal(Const(0, DataType.Int), dtype), dtype, literal=True)


def number(const: Const, dtype: DataType, passed: DataType = DataType.Int32) -> Name:
    """A constant as an operand: written out, or an argument's where it is a size that varies.

    Parameters
    ----------
    passed : DataType
        What sizes are passed as.
    """
    if is_size(const.value):
        return Name(cast_text(f"{const.value}", passed, dtype), dtype)
    return Name(literal(const, dtype), dtype, literal=True)


def typed_literal(name: Name) -> str:
    """A literal as an expression of its dtype."""
    return f"tl.full([], {name.text}, {triton_name(name.dtype)})"


def last_value(node: Node) -> object:
    """What ``number_of`` says of the last operand of a node."""
    return number_of(node.args[-1])


def triton_name(dtype: DataType) -> str:
    """The dtype in the text of a kernel: ``tl.float32``."""
    return f"tl.{dtype.info.triton}"


def cast_text(text: str, source: DataType, target: DataType) -> str:
    """A conversion of a name or a parenthesized expression."""
    if source is target:
        return text
    if source in EIGHT_BIT_FLOATS:
        return cast_text(f"{source.info.letter}_to_float({text})", DataType.Float, target)
    if target in EIGHT_BIT_FLOATS:
        number = cast_text(text, source, DataType.Float)
        how = f", {e4m3_saturates()}" if target is DataType.Float8_e4m3fn else ""
        return f"float_to_{target.info.letter}({number}{how})"
    if not text.isidentifier():
        text = f"({text})"
    if target is DataType.Bool:
        return f"{text} != 0"
    return f"{text}.to({triton_name(target)})"


def _wrapped(value: int, dtype: DataType) -> int:
    """An int in a type of fewer bits, or without a sign, as a cast makes it."""
    held = int_range(dtype)
    return (value - held.start) % (held.stop - held.start) + held.start


def is_widening(source: DataType, target: DataType) -> bool:
    """Whether a cast between floats keeps every number."""
    return target in _WIDER.get(source, ())


_WIDER = {
    DataType.Half: (DataType.Float, DataType.Double),
    DataType.BFloat16: (DataType.Float, DataType.Double),
    DataType.Float: (DataType.Double,),
}


def literal(const: Const, dtype: DataType) -> str:
    """A constant as Triton text in a dtype: rounded to it as a cast would; bytes of eight bits."""
    value = const.value
    if isinstance(value, complex):
        value = value.real
    category = dtype.info.category
    if category is Category.BOOL:
        return str(bool(value))
    if category is Category.INT:
        if isinstance(value, float) and not math.isfinite(value):
            return "0"
        return str(_wrapped(int(value), dtype))
    value = float(value)
    if dtype in EIGHT_BIT_FLOATS:
        return str(torch.tensor(value).to(dtype.info.torch).view(torch.uint8).item())
    if value == 0 and math.copysign(1, value) < 0:
        # Triton makes 0.0 of a literal -0.0.
        return f"(tl.full([], 0.0, {triton_name(dtype)}) * -1.0)"
    if dtype is DataType.Float and _taken_for_double(value):
        return f"tl.full([], {value!r}, tl.float32)"
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _taken_for_double(value: float) -> bool:
    """Whether a bare number is a double to Triton, whatever it is computed with in a call."""
    return math.isfinite(value) and value != 0 and not 2**-126 <= abs(value) <= _LARGEST_FLOAT


_LARGEST_FLOAT = torch.finfo(torch.float32).max
