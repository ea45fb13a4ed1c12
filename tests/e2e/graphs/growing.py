"""A random definition with its inputs, and other sizes to run it at."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tests.e2e.graphs.graph import DTYPES, SIZES, Graph, Input, Term
from tests.e2e.graphs.moves import MOVES, Move
from tritonfuser import DataType, FusionDefinition


@dataclass(frozen=True)
class Grown:
    """A definition, what to run it on, and what should come out."""

    fd: FusionDefinition
    inputs: list[Any]
    outputs: list[Term]
    written: dict[int, Term]
    """What is written into inputs, by their places."""
    made: list[Input]
    """The inputs, and how to make them at other sizes."""
    sizes: tuple[dict[int, int], ...] = ()
    """Other sizes to run at: what each extent becomes."""


def grow(
    rng: random.Random,
    moves: Sequence[Move] = MOVES,
    most: int = 14,
    sizes: Sequence[int] = SIZES,
    device: str = "cpu",
    dtypes: Sequence[DataType] = DTYPES,
    dynamic: bool = False,
    made_by: Callable[[], FusionDefinition] = FusionDefinition,
) -> Grown:
    """Up to ``most`` random ops on random inputs, in a definition that ``made_by`` makes."""
    with made_by() as fd:
        graph = Graph(fd, rng, sizes, device, dtypes, dynamic)
        try:
            for _ in range(rng.randint(1, 3)):
                graph.new_input()
            graph.take(rng.randint(3, most), moves)
        except Exception as error:
            raise AssertionError(f"while recording\n{fd.fusion.ir}") from error
        outputs = graph.outputs()
        for term in outputs:
            fd.add_output(term.handle)
        written = graph.written(outputs)
        for place, term in written.items():
            fd.add_output(term.handle, next(t.handle for t in graph.terms if t.place == place))
            # An input is returned as it is then, which may have been written into.
            if term not in outputs and term.place is None and graph.chance(0.4):
                fd.add_output(term.handle)
                outputs.append(term)
    others = other_sizes(rng, sizes, graph.inputs) if dynamic else ()
    return Grown(fd, graph.inputs, outputs, written, graph.made, others)


def other_sizes(
    rng: random.Random, sizes: Sequence[int], inputs: Sequence[Any]
) -> tuple[dict[int, int], ...]:
    """Tables of other extents: any, with some of 1, with some of none; and a first dim's alone."""
    several = sorted({n for n in sizes if n > 1})
    tables: list[dict[int, int]] = []
    for least in (2, 1, 0):
        drawn = {n: rng.choice(several) for n in several}
        for n in rng.sample(several, min(3, len(several)) if least < 2 else 0):
            drawn[n] = least
        tables.append(drawn)
    shapes = [x.shape for x in inputs if isinstance(x, torch.Tensor)]
    first = [shape[0] for shape in shapes if shape and shape[0] > 1]
    tables.append({rng.choice(first): rng.choice(several)} if first else {})
    return tuple(tables)
