"""Random ops as Triton text: Philox words for single elements, or for four neighbours at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ....dtypes import DataType, compute_dtype
from ....heuristics.cost.draws import RANDOM_WORDS
from ....ir import Const, Node
from ....ops.builder import as_call
from ....ops.creation import philox
from ....ops.forms import Random
from ....symbolic.index_expr import Affine, Axis, Digit
from ....symbolic.queries import is_known_equal, is_known_less, is_known_multiple
from ....symbolic.sizes import is_size
from ...tile.tile import Tile
from ..expressions import literal

LEAST_RUN = 512
"""Least elements of a peeled tile that is drawn in runs. Of shorter tiles a thread has one element,
and computes the words of its whole run."""

PAIR = 2 * RANDOM_WORDS
"""Elements that are drawn together where the first does not begin a counter."""


@dataclass(frozen=True)
class DrawnRun:
    """Neighbours along a tile that are drawn together.

    Attributes
    ----------
    tile : Tile
        The tile. An element's position in the tensor is ``rest``, plus its position along the tile
        or along one of the dims that the tile has.
    rest : Affine
        The part of the position that is the same for a whole run.
    count : int
        Elements of a run: 4 or 8.
    dim : Digit or None
        The position along the dim where the tile has several, which ``rest`` depends on too.
    """

    tile: Tile
    rest: Affine
    count: int
    dim: Digit | None = None

    @property
    def counter(self) -> Affine:
        """The counter of a run of four along a dim of the tile, by the axis of the tile."""
        assert self.dim is not None and self.dim.mod is not None
        within = Digit(self.tile.axis, RANDOM_WORDS, self.dim.mod // RANDOM_WORDS)
        return self.rest // RANDOM_WORDS + Affine(((within, 1),))


def run_along(position: Affine, tiles: tuple[Tile, ...]) -> DrawnRun | None:
    """The tile along which a position grows one by one, if its elements lie in registers.

    Four words are those of four neighbours where the position is a multiple of four at each start
    of a tile; elsewhere eight neighbours have words of three counters. Of a tile that runs over
    several dims, four neighbours lie along the last one where its extent is a multiple of four.
    """
    blocked = [tile for tile in tiles if tile.block is not None]
    last = max(blocked, key=lambda tile: tile.place, default=None)
    if last is None or last.scattered or position.loaded():
        return None  # what is read at run time may differ from neighbour to neighbour
    run = _along_axis(position, last) or _along_dim(position, last)
    if run is None or last.multiple % run.count:
        return None
    short = last.width < (LEAST_RUN if last.is_behind else run.count)
    return None if short else run


def _along_axis(position: Affine, tile: Tile) -> DrawnRun | None:
    """The run of a position that grows along all of a tile."""
    rest = without(position, tile.axis)
    if rest is None:
        return None
    return DrawnRun(tile, rest, RANDOM_WORDS if _begins_counters(rest) else PAIR)


def _along_dim(position: Affine, tile: Tile) -> DrawnRun | None:
    """The run of a position that grows along the last of the dims of a tile."""
    mine = [(d, step) for d, step in position.terms if d.base == tile.axis]
    dims = [(d, step) for d, step in mine if not is_known_multiple(d.div, RANDOM_WORDS)]
    if len(dims) != 1:
        return None
    dim, step = dims[0]
    rest = Affine(tuple(t for t in position.terms if t[0] != dim), position.const)
    others = Affine(tuple(t for t in position.terms if t not in mine))
    whole = dim.mod is not None and is_known_multiple(dim.mod, RANDOM_WORDS)
    varies = any(is_size(n) for d, _ in mine for n in (d.div, d.mod))
    once = is_known_equal(step, 1) and is_known_equal(dim.div, 1)
    if not (whole and once) or varies or tile.axis in others.axes():
        return None
    return DrawnRun(tile, rest, RANDOM_WORDS, dim) if _begins_counters(rest) else None


def _begins_counters(rest: Affine) -> bool:
    """Whether a position is a multiple of four."""
    return all(
        is_known_multiple(step, RANDOM_WORDS) for step in (rest.const, *(c for _, c in rest.terms))
    )


def without(position: Affine, axis: Axis) -> Affine | None:
    """``position - axis``, or None where the axis does not enter once and whole."""
    mine = [(d, c) for d, c in position.terms if d.base == axis]
    if len(mine) != 1:
        return None
    digit, step = mine[0]
    once = is_known_equal(step, 1) and is_known_equal(digit.div, 1)
    if not once or (digit.mod is not None and not is_known_less(axis.extent - 1, digit.mod)):
        return None
    rest = Affine(tuple(t for t in position.terms if t[0] != digit), position.const)
    return None if axis in rest.axes() else rest


def scaled(node: Node, form: Random, unit: str, bounds: list[str]) -> str:
    """``unit`` scaled by (mean, std), or spread over [low, high) and rounded within it."""
    if not form.scaled:
        return unit
    dtype = f"tl.{node.out.dtype.info.triton}"
    first, second = bounds
    if not form.bounded:
        return f"({first} + {unit} * {second}).to({dtype})"
    low, high = (as_call(node).args[i] for i in (0, 1))
    kind = node.out.dtype.info.torch
    assert kind is not None
    if isinstance(low, Const) and isinstance(high, Const):
        ends = philox.held(float(low.value.real), kind), philox.held(float(high.value.real), kind)
        return _between(unit, *ends, node.out.dtype)
    return f"uniform_between({unit}, {first}, {second}, {torch.finfo(kind).max!r}, {dtype})"


def _between(unit: str, low: float, high: float, dtype: DataType) -> str:
    """``unit`` spread over [low, high) of numbers that ``dtype`` has."""
    if (low, high) == (0.0, 1.0) and dtype is DataType.Float:
        return unit
    computed = compute_dtype(dtype).info.torch
    assert computed is not None
    ends = _text(low), _text(high)
    spread = f"{ends[0]} + {unit} * ({ends[1]} - {ends[0]})"
    if (low, high) == (0.0, 1.0):
        spread = unit
    elif philox.is_too_wide(low, high, computed):
        ends = _text(low / 2), _text(high / 2)
        spread = f"({ends[0]} + {unit} * ({ends[1]} - {ends[0]})) * 2.0"
    kind = dtype.info.torch
    assert kind is not None
    limit = _text(max(philox.next_below(high, kind), low))
    if dtype is DataType.Double:
        limit = f"tl.full([], {limit}, tl.float64)"  # as a number alone it would be a float32
    return f"tl.minimum({spread}, {limit}).to(tl.{dtype.info.triton})"


def _text(number: float) -> str:
    return literal(Const.of(number), DataType.Double)
