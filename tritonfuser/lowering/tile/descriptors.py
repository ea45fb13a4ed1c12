"""Tensor descriptors: which tiles of which buffers Hopper's copy engine (TMA) can move at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...device import DeviceProperties
from ...dtypes import DataType
from ...ir import Value
from ...shapes.memory import INT32_LIMIT
from ...symbolic.index_expr import Affine, Axis, Digit
from ...symbolic.queries import (
    assume_at_most,
    assume_equal,
    assume_multiple,
    is_implied_less,
    is_known_equal,
    is_known_less,
)
from .tile import Tile

ALIGNMENT = 16
"""Bytes that the start and the rows of a described matrix are multiples of (CUDA driver API,
cuTensorMapEncodeTiled)."""

LONGEST = 256
"""Elements along a side of what is moved at once (ibid., boxDim)."""


_MOVED = frozenset({DataType.Half, DataType.BFloat16, DataType.Float, DataType.Int32})
"""Element types that descriptors are made of; rare ones take addresses."""


def has_descriptors(device: DeviceProperties) -> bool:
    """Whether the device has a tensor memory accelerator: NVIDIA's from Hopper on."""
    found = re.fullmatch(r"sm_(\d+)", device.arch)
    return found is not None and int(found[1]) >= 90


@dataclass(frozen=True)
class Described:
    """A buffer as a matrix in rows, and the tile of it that is moved.

    Attributes
    ----------
    value : Value
        Whose buffer.
    sizes : (int, int)
        Rows, and elements in one.
    step : int
        Elements from a row to the next.
    tiles : (Tile, Tile)
        The kernel axes down the rows and along one.
    transposed : bool
        Whether the kernel's tile has the rows along its second dim.
    """

    value: Value
    sizes: tuple[int, int]
    step: int
    tiles: tuple[Tile, Tile]
    transposed: bool

    @property
    def text(self) -> str:
        """The descriptor made in a kernel."""
        blocks = ", ".join(str(tile.block) for tile in self.tiles)
        return (
            f"tl.make_tensor_descriptor({self.value.name}_ptr, {list(self.sizes)}, "
            f"[{self.step}, 1], [{blocks}])"
        )

    @property
    def place(self) -> str:
        """Where the tile starts."""
        first, second = (_start(tile) for tile in self.tiles)
        return f"[{first}, {second}]"


def _start(tile: Tile) -> str:
    return "k_start" if tile.name == "kk" else f"{tile.name}_start"


def is_short(tile: Tile) -> bool:
    """Whether 32 bits, which descriptors take, hold all positions of a tile."""
    return is_implied_less(tile.axis.extent + tile.width, INT32_LIMIT)


def described(value: Value, offset: Affine, down: Tile, along: Tile) -> Described | None:
    """The tile of a buffer at an offset over two kernel axes, or None: it takes addresses."""
    steps = _steps(offset, down.axis, along.axis)
    if steps is None or value.dtype not in _MOVED or max(down.width, along.width) > LONGEST:
        return None
    first, second = steps
    transposed = not assume_equal(second, 1)
    if transposed:
        first, second, down, along = second, first, along, down
    size = value.dtype.info.bytes
    fits = (
        is_short(down)
        and is_short(along)
        and assume_equal(second, 1)
        and assume_at_most(along.axis.extent, first)
    )
    fits = fits and assume_multiple(first * size, ALIGNMENT)
    if not fits or along.width * size < ALIGNMENT:
        return None
    return Described(value, (down.axis.extent, along.axis.extent), first, (down, along), transposed)


def _is_whole(digit: Digit, axis: Axis) -> bool:
    """Whether a digit is all of an axis."""
    once = is_known_equal(digit.div, 1)
    return once and (digit.mod is None or is_known_less(axis.extent - 1, digit.mod))


def _steps(offset: Affine, down: Axis, along: Axis) -> tuple[int, int] | None:
    """The steps of ``down * a + along * b``, if that is all there is."""
    found: dict[Axis, int] = {}
    for digit, step in offset.terms:
        if not isinstance(digit.base, Axis) or not _is_whole(digit, digit.base):
            return None
        found[digit.base] = step
    if not is_known_equal(offset.const, 0) or found.keys() != {down, along}:
        return None
    return found[down], found[along]
