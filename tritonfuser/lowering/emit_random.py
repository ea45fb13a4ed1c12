"""Random ops as Triton text: Philox words for single elements, or for four neighbours at once."""

from __future__ import annotations

import math

import torch

from ..affine import Affine, Axis
from ..dtypes import DataType
from ..ir import Const, Node
from ..ops.builder import as_call
from ..ops.table import Random
from .emit_index import Tile

WORDS = 4
"""Random words one Philox counter gives: elements of a tensor that share a counter."""


def fast_tile(position: Affine, tiles: tuple[Tile, ...]) -> Tile | None:
    """The tile whose neighbours, four by four, are the four words of one counter.

    It must be the last, along which a tensor of a tile lies in registers, and the position must
    be a multiple of four at its start.
    """
    blocked = [tile for tile in tiles if tile.block is not None]
    last = blocked[-1] if blocked else None
    if last is None or last.axis.extent % WORDS or last.width < WORDS:
        return None
    rest = without(position, last.axis)
    if rest is None or rest.const % WORDS:
        return None
    return last if all(step % WORDS == 0 for _, step in rest.terms) else None


def without(position: Affine, axis: Axis) -> Affine | None:
    """``position - axis``, or None where the axis does not enter once and whole."""
    mine = [(d, c) for d, c in position.terms if d.base == axis]
    if len(mine) != 1:
        return None
    digit, step = mine[0]
    if step != 1 or digit.div != 1 or (digit.mod or axis.extent) < axis.extent:
        return None
    return Affine(tuple(t for t in position.terms if t[0] != digit), position.const)


def scaled(node: Node, form: Random, unit: str, bounds: list[str]) -> str:
    """``unit`` scaled by (mean, std), or spread over [low, high) and rounded within it."""
    dtype = f"tl.{node.out.dtype.info.triton}"
    first, second = bounds
    if not form.bounded:
        return f"({first} + {unit} * {second}).to({dtype})"
    low, high = (as_call(node).args[i] for i in (0, 1))
    spread = f"{first} + {unit} * ({second} - {first})"
    if not isinstance(low, Const) or not isinstance(high, Const):
        return f"round_below({spread}, {second}, {dtype})"
    if (low.value, high.value) == (0.0, 1.0):
        spread = unit
    limit = largest_below(float(high.value.real), node.out.dtype)
    return f"tl.minimum({spread}, {limit!r}).to({dtype})"


def largest_below(bound: float, dtype: DataType) -> float:
    """The greatest number of ``dtype`` that is less than ``bound``."""
    near = torch.tensor(bound, dtype=dtype.info.torch, device="cpu")
    if near.item() < bound:
        return float(near.item())
    return float(torch.nextafter(near, torch.full_like(near, -math.inf)).item())
