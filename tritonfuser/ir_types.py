"""The types of values in the IR: tensors with dims, layout and dtype; scalars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from .dtypes import DataType
from .lazy import cached_property
from .symbolic.extents import Extent
from .symbolic.sizes import is_integer

DYNAMIC = -1
"""How a definition writes an extent known only at run time."""


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a tensor.

    Attributes
    ----------
    size : int or SymbolicExtent
        The extent; an expression until concretize knows it.
    expanded : bool
        Whether expand stretched it from size 1: its stride is 0.
    """

    size: Extent
    expanded: bool = False

    @property
    def is_broadcast(self) -> bool:
        """Whether all positions are one element."""
        return self.expanded or self.size == 1


@dataclass(frozen=True, slots=True)
class Layout:
    """What ``define_tensor`` promises of an input's memory.

    Attributes
    ----------
    contiguity : tuple of (bool or None)
        In memory order, outermost first; dim ``i`` has ``contiguity[rank - 1 - stride_order[i]]``.
        None for a broadcast dim.
    stride_order : tuple of int
        For each dim its place in memory, counted from the innermost: 0 is the fastest.
    strides : tuple of int, optional
        In elements, of the actual tensor; set by concretize.
    """

    contiguity: tuple[bool | None, ...]
    stride_order: tuple[int, ...]
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor.

    Attributes
    ----------
    dims : tuple of Dim
        Outermost first.
    dtype : DataType
        The element type.
    is_cpu : bool
        Whether it is a 0-dim tensor in the memory of the CPU.
    layout : Layout, optional
        Of inputs only.
    weak : bool
        Whether it is a 0-dim tensor that promotes like a scalar. The 0-dim result of a full
        reduction is not weak.
    """

    dims: tuple[Dim, ...]
    dtype: DataType
    is_cpu: bool = False
    layout: Layout | None = None
    weak: bool = False

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.dims)

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The extents, symbolic ones too."""
        return tuple(d.size for d in self.dims)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The shape of a concretized tensor; TypeError while an extent is symbolic."""
        return tuple(_static(d.size) for d in self.dims)

    @property
    def numel(self) -> int:
        """The number of elements of a concretized tensor."""
        total = 1
        for size in self.sizes:
            total *= size
        return total


def _static(size: Extent) -> int:
    if not is_integer(size):
        raise TypeError(f"extent {size} is not known yet")
    return size


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A scalar: a number of one dtype, an input or the result of scalar ops."""

    dtype: DataType


Type = Union[TensorType, ScalarType]


def type_text(type_: Type) -> str:
    """``Float[4, i0, 1]`` or ``Double``."""
    if isinstance(type_, ScalarType):
        return type_.dtype.name
    dims = ", ".join(f"{d.size}{'*' if d.expanded else ''}" for d in type_.dims)
    return f"{type_.dtype.name}[{dims}]"
