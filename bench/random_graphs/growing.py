"""From a number to a recorded definition of a random program, at sizes that move so many bytes."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tritonfuser import DataType, FusionDefinition
from tritonfuser.ir import Fusion
from tritonfuser.ir_graph import live_nodes

from ..measure.ideal_bytes import moved_bytes
from ..recorded.definitions import Input, RecordedDefinition
from . import moves_pointwise
from .families import FAMILIES, Family
from .graph import Axis, Dims, Graph, Term, Unfit

D = DataType
BANDWIDTH = 4e12
"""Bytes a second by which times of traffic become bytes."""
TRAFFIC = (10e-6, 1000e-6)
"""Least and most seconds of traffic."""
OUTPUTS = 5
"""Most outputs."""
_LARGER = 4
"""The largest tensor within a definition is at most so many times its inputs and outputs."""
INPUT_ELEMENTS = 1 << 33
"""Most elements of an input, about. Little is read of some, as where one of a dim is selected."""
LONGEST = 1 << 33
"""Longest extent: what reads a few elements of its inputs would grow without end."""
_TRIES = 6


@dataclass(frozen=True)
class Recorded:
    """A definition at some sizes.

    Attributes
    ----------
    text : str
        The program.
    inputs : tuple of Input
        What it is given.
    bytes : float
        Of its inputs and outputs.
    largest : int
        Elements of its largest input.
    """

    text: str
    inputs: tuple[Input, ...]
    bytes: float
    largest: int


def entry(
    seed: int, number: int, *, bytes: float | None = None, family: str = "graph"
) -> RecordedDefinition:
    """The definition of a number; every second one is held out.

    Parameters
    ----------
    seed : int
        Of the run.
    number : int
        Of the definition.
    bytes : float, optional
        Of its inputs and outputs; by default they take ``TRAFFIC``.
    family : str
        One of ``FAMILIES``.
    """
    kind = FAMILIES[family]
    rng = random.Random(f"sizes of {seed}.{number}")
    low, high = (math.log(t * BANDWIDTH) for t in TRAFFIC)
    wanted = math.exp(rng.uniform(low, high))
    extents = Extents(rng)
    found = _recorded(kind, seed, number, extents)
    for _ in range(_TRIES):
        if not extents.scale((bytes or wanted) / found.bytes):
            break
        found = _recorded(kind, seed, number, extents)
    while found.largest > INPUT_ELEMENTS and extents.scale(INPUT_ELEMENTS / found.largest):
        found = _recorded(kind, seed, number, extents)
    return RecordedDefinition(
        family, number, found.text, found.inputs, 1, str(seed), held_out=number % 2 == 1
    )


class Extents:
    """The axes that a program starts from: tokens, heads, scores, images, or plain ones."""

    def __init__(self, rng: random.Random) -> None:
        self.kind = rng.choice(
            ("tokens", "tokens", "heads", "heads", "scores", "images", "images", "plain", "plain")
        )
        self._multiples: list[int] = []
        draw = _KINDS[self.kind]
        drawn = draw(rng)
        self._multiples = [m for _, m in drawn]
        self.extents = [max(m, int(n) // m * m) for n, m in drawn]

    def scale(self, ratio: float) -> bool:
        """Grow or shrink by a factor, the first extent and then the longest; False if about 1."""
        if 0.85 < ratio < 1.15:
            return False
        before = list(self.extents)
        first = min(max(1, round(self.extents[0] * ratio)), LONGEST)
        left = ratio * self.extents[0] / first
        self.extents[0] = first
        if left < 0.85:
            longest = max(range(len(before)), key=lambda place: self.extents[place])
            multiple = self._multiples[longest]
            shorter = int(self.extents[longest] * left) // multiple * multiple
            self.extents[longest] = max(multiple, shorter)
        return self.extents != before


def _some(rng: random.Random, low: float, high: float) -> tuple[float, int]:
    """An extent, log-uniform, and what it is a multiple of."""
    length = math.exp(rng.uniform(math.log(low), math.log(high)))
    return length, rng.choice([m for m in (1, 1, 2, 8, 16, 64, 128) if m <= low])


def _one_of(rng: random.Random, *extents: int) -> tuple[float, int]:
    extent = rng.choice(extents)
    return extent, extent


def _images(rng: random.Random) -> list[tuple[float, int]]:
    side = _one_of(rng, 7, 14, 28, 31, 56, 57, 64, 112)
    return [(8, 1), _some(rng, 16, 1024), side, side]


_KINDS: dict[str, Callable[[random.Random], list[tuple[float, int]]]] = {
    "tokens": lambda rng: [(8, 1), _some(rng, 64, 4096), _some(rng, 128, 8192)],
    "heads": lambda rng: [
        (4, 1),
        _some(rng, 64, 4096),
        _one_of(rng, 4, 8, 12, 16, 25, 32),
        _one_of(rng, 32, 64, 64, 80, 96, 128, 128),
    ],
    "scores": lambda rng: [(4, 1), _one_of(rng, 4, 8, 12, 16, 32), *[_some(rng, 64, 2048)] * 2],
    "images": _images,
    "plain": lambda rng: [_some(rng, 2, 4096) for _ in range(rng.choice((1, 2, 2, 3, 3, 3, 4, 4)))],
}
_NEIGHBOURS = {"tokens": (0,), "heads": (2, 0), "scores": (0,), "images": (2,), "plain": (0,)}
"""By kind: which dims one finds merged with the next: rows of tokens, heads in columns, pixels."""


def _recorded(family: Family, seed: int, number: int, extents: Extents) -> Recorded:
    rng = random.Random(f"{family.name} {seed}.{number}")
    axes = [Axis("abcd"[place], n) for place, n in enumerate(extents.extents)]
    with FusionDefinition() as fd:
        graph = Graph(
            fd,
            rng,
            _first_dims(rng, axes, extents.kind),
            rng.choice((D.BFloat16,) * 7 + (D.Half,) * 2 + (D.Float,) * 3),
            channels_last=extents.kind == "images" and rng.random() < 0.4,
            rounds=rng.random() < 0.35,
            expands=rng.random() < 0.6,
        )
        _grow(graph, family, number)
        for handle in _results(graph):
            fd.add_output(handle)
    ir = fd.fusion.ir
    largest = max((v.tensor.numel for v in ir.inputs if v.is_tensor), default=1)
    return Recorded(str(fd), tuple(graph.inputs), _bytes(ir), max(largest, 1))


def _first_dims(rng: random.Random, axes: Sequence[Axis], kind: str) -> Dims:
    """A dim an axis, or neighbours in one."""
    dims: list[tuple[Axis, ...]] = [(axis,) for axis in axes]
    for place in _NEIGHBOURS[kind]:
        if place + 1 < len(dims) and rng.random() < (0.15 if kind == "plain" else 0.4):
            dims[place : place + 2] = [dims[place] + dims[place + 1]]
    return tuple(dims)


def _grow(graph: Graph, family: Family, number: int) -> None:
    most = round(math.exp(graph.rng.uniform(*map(math.log, family.ops))))
    for _ in range(graph.rng.choice((1, 1, 2))):
        graph.new()
    if family.begun_by:
        with contextlib.suppress(Unfit):
            family.begun_by[number // 2 % len(family.begun_by)](graph)
    moves, weights = list(family.moves), list(family.moves.values())
    for _ in range(4 * most):
        if graph.steps >= most:
            break
        (move,) = graph.rng.choices(moves, weights)
        try:
            move(graph)
        except Unfit:
            continue
    _join_ends(graph)


def _join_ends(graph: Graph) -> None:
    """Bring most of what nothing uses yet together, since programs are mostly of one piece."""
    ends = _unused(graph)
    for first, second in itertools.pairwise(ends):
        if set(first.axes) >= set(second.axes) and graph.chance(0.7):
            with contextlib.suppress(Unfit):
                moves_pointwise.join(graph, first, graph.onto(second, first.dims), second.size)


def _unused(graph: Graph) -> list[Term]:
    return [t for t in graph.terms if t not in graph.used | graph.given]


def _results(graph: Graph) -> list[Any]:
    """The terms that nothing uses, and those asked for; in the graph's dtype, or Float."""
    chosen = [*graph.asked, *_unused(graph)[-OUTPUTS:]]
    chosen = chosen[-OUTPUTS:]
    spare = [t for t in graph.terms if t in graph.used - graph.given and t not in chosen]
    if spare and len(chosen) < OUTPUTS and graph.chance(0.25):
        chosen.append(graph.rng.choice(spare))
    return [t.handle if graph.chance(0.2) else graph.stored(t.handle) for t in chosen]


def _bytes(ir: Fusion) -> float:
    """Bytes of inputs and outputs; more where a tensor within is much larger than all of them."""
    nodes = live_nodes(ir.nodes, [out.value for out in ir.outputs])
    read = {value for node in nodes for value in node.operands()}
    moved = moved_bytes(
        nodes, [v for v in ir.inputs if v in read], {out.value for out in ir.outputs}
    )
    made = [out.tensor.numel for node in nodes for out in node.outs if out.is_tensor]
    return max(moved, 2 * max(made, default=0) / _LARGER, 1)
