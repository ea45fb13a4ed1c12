"""The intermediate representation: frozen classes of a fusion in SSA form, in recording order.

A ``Fusion`` is a list of ``Node`` over ``Value``; everything is compared by content, source
lines (``loc``) excepted. Ops are named by strings: what a name means is a row of the op table. The
types of values are in ``ir_types.py``, and are imported from here as well.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Union

from .dtypes import DataType, of_python
from .errors import SourceLoc
from .ir_types import DYNAMIC as DYNAMIC
from .ir_types import Dim as Dim
from .ir_types import Layout as Layout
from .ir_types import ScalarType as ScalarType
from .ir_types import TensorType as TensorType
from .ir_types import Type as Type
from .ir_types import type_text as type_text
from .lazy import cached_property
from .symbolic.extents import Extent as Extent
from .symbolic.sizes import integer, is_integer, is_size

Number = Union[bool, int, float, complex]


@dataclass(frozen=True, slots=True)
class Value:
    """One SSA value.

    Attributes
    ----------
    index : int
        Its number, in creation order; tensors and scalars are numbered separately.
    type : TensorType or ScalarType
        What it is.
    """

    index: int
    type: Type

    def __hash__(self) -> int:
        # By the class itself: values are keys all over, and a call of ``isinstance`` is half of it.
        return self.index * 2 + (type(self.type) is TensorType)

    @property
    def name(self) -> str:
        """``tv3`` for a tensor, ``c3`` for a scalar."""
        return f"{'tv' if isinstance(self.type, TensorType) else 'c'}{self.index}"

    @property
    def dtype(self) -> DataType:
        """The element type."""
        return self.type.dtype

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, not a scalar."""
        return type(self.type) is TensorType

    @property
    def tensor(self) -> TensorType:
        """The type of a tensor value."""
        if type(self.type) is not TensorType:
            raise TypeError(f"{self.name} is a scalar")
        return self.type

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A number in a definition, with its dtype.

    Equality compares type and bits: ``1``, ``1.0`` and ``True`` differ, ``0.0`` and ``-0.0``
    differ, and nan equals itself.
    """

    value: Number
    dtype: DataType

    @staticmethod
    def of(value: Number) -> Const:
        """A number with the dtype that Python's type of it has."""
        return Const(value, DataType.Int if is_size(value) else of_python(value))

    @property
    def bits(self) -> tuple[str, DataType, bytes]:
        """What equality compares: Python's type, the dtype, the bits of the number."""
        kind = type(self.value).__name__
        if is_integer(self.value):
            return kind, self.dtype, str(integer(self.value)).encode()
        number = complex(self.value)
        # All nans are equal: they print alike and mean the same.
        parts = (math.nan if x != x else x for x in (number.real, number.imag))
        return kind, self.dtype, struct.pack("<dd", *parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __repr__(self) -> str:
        return repr(self.value)


Operand = Union[Value, Const]
Arg = Union[Value, Const, None, tuple[Operand, ...]]
Attr = Union[None, bool, int, float, str, DataType, tuple[int, ...], tuple[bool, ...]]


@dataclass(frozen=True, slots=True)
class Node:
    """One recorded op: ``outs = op(*args, **attrs)``.

    Attributes
    ----------
    op : str
        The name of a row of the op table.
    args : tuple
        Run-time operands, in the order of the op's signature; a tuple for a list of operands.
    attrs : tuple of (str, value)
        Static arguments, by name.
    outs : tuple of Value
        The results.
    loc : SourceLoc, optional
        The user's line that recorded it; not compared.
    """

    op: str
    args: tuple[Arg, ...]
    attrs: tuple[tuple[str, Attr], ...]
    outs: tuple[Value, ...]
    loc: SourceLoc | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        # No other node of a fusion defines these values.
        return hash(self.outs)

    def attr(self, name: str) -> Attr:
        """A static argument by name."""
        for key, value in self.attrs:
            if key == name:
                return value
        raise KeyError(f"{self.op} has no attribute {name}")

    @property
    def out(self) -> Value:
        """The first result: the only one of most ops."""
        return self.outs[0]

    def operands(self) -> Iterator[Value]:
        """The values among the arguments, in order."""
        # No generator: passes ask for operands all over, and each step of one would be a call.
        found: list[Value] = []
        for arg in self.args:
            if type(arg) is Value:
                found.append(arg)
            elif isinstance(arg, tuple):
                found += [item for item in arg if isinstance(item, Value)]
        return iter(found)


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the fusion.

    Attributes
    ----------
    value : Value
        What is computed.
    alias_of : Value, optional
        The input that it is written into.
    hidden : bool
        Whether a run does not return it; only for outputs with an alias.
    """

    value: Value
    alias_of: Value | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Fusion:
    """A whole definition.

    Attributes
    ----------
    inputs : tuple of Value
        Tensors and scalars, in the order of a call's arguments.
    nodes : tuple of Node
        In recording order; operands are defined before they are used.
    outputs : tuple of Output
        In the order of a call's results.
    """

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]

    @cached_property
    def given(self) -> frozenset[Value]:
        """The inputs, as a set."""
        return frozenset(self.inputs)

    @cached_property
    def returned(self) -> frozenset[Value]:
        """The values of all outputs, hidden ones too."""
        return frozenset(out.value for out in self.outputs)

    @cached_property
    def written(self) -> frozenset[Value]:
        """The inputs that outputs are written into."""
        return frozenset(out.alias_of for out in self.outputs if out.alias_of is not None)

    @cached_property
    def producers(self) -> dict[Value, Node]:
        """The node that defines each value; inputs have none."""
        return {out: node for node in self.nodes for out in node.outs}

    @cached_property
    def consumers(self) -> dict[Value, tuple[Node, ...]]:
        """The nodes that use each value, in order; values without uses are not in it."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.operands()):
                found.setdefault(value, []).append(node)
        return {value: tuple(nodes) for value, nodes in found.items()}

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 digest of the structure, the same in every process for equal definitions."""
        text = "\n".join(_structure(self))
        return hashlib.sha256(text.encode()).hexdigest()

    def __str__(self) -> str:
        return print_fusion(self)


def _structure(fusion: Fusion) -> Iterator[str]:
    for value in fusion.inputs:
        yield f"in {value.name} {value.type}"
    for node in fusion.nodes:
        args = ", ".join(_structure_arg(arg) for arg in node.args)
        yield f"{[o.name for o in node.outs]} = {node.op}({args}) {node.attrs}"
    for out in fusion.outputs:
        alias = out.alias_of.name if out.alias_of else None
        yield f"out {out.value.name} {alias} {out.hidden}"


def _structure_arg(arg: Arg) -> str:
    if isinstance(arg, tuple):
        return "[" + ", ".join(_structure_arg(item) for item in arg) + "]"
    return str(arg.bits) if isinstance(arg, Const) else repr(arg)


def print_fusion(fusion: Fusion) -> str:
    """The fusion as SSA text, one node a line; expanded extents carry a star."""
    lines = [f"inputs({', '.join(f'{v.name}: {type_text(v.type)}' for v in fusion.inputs)})"]
    for node in fusion.nodes:
        outs = ", ".join(f"{o.name}: {type_text(o.type)}" for o in node.outs)
        args = [repr(list(a)) if isinstance(a, tuple) else repr(a) for a in node.args]
        attrs = [f"{key}={value}" for key, value in node.attrs]
        lines.append(f"{outs} = {node.op}({', '.join(args + attrs)})")
    outs = ", ".join(
        o.value.name + (f" -> {o.alias_of.name}" if o.alias_of else "") for o in fusion.outputs
    )
    return "\n".join([*lines, f"outputs({outs})"])
