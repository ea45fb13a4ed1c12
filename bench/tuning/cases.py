"""What is tuned: rows of the suite, one a case, and random graphs, in turn."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tritonfuser import FusionDefinition

from ..cases import CASES
from ..random_graphs.growing import entry
from ..recorded.definitions import make_inputs, record
from ..suite.selection import DTYPES, Row

SUITE, RANDOM = "suite", "random"
SEED = 1
"""Of the cases; that of ``bench.random_graphs`` is another one by default."""


class TuningCase(Protocol):
    """A definition at a size. Its name says which, whoever asks."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...

    def made(self, device: str, seed: int) -> tuple[FusionDefinition, list[Any]]:
        """The definition and its inputs."""


@dataclass(frozen=True)
class SuiteCase:
    """A row of the suite."""

    row: Row
    origin: str = SUITE

    @property
    def name(self) -> str:
        return self.row.name

    def made(self, device: str, seed: int) -> tuple[FusionDefinition, list[Any]]:
        row = self.row
        fd = row.of.record(row.size, row.torch_dtype)
        return fd, row.of.inputs(row.size, row.torch_dtype, device, seed)


@dataclass(frozen=True)
class GraphCase:
    """A random graph, at a size of its own or one that moves so many bytes."""

    seed: int
    number: int
    bytes: float | None = None
    origin: str = RANDOM

    @property
    def name(self) -> str:
        return f"graph-{self.seed}-{self.number}"

    def made(self, device: str, seed: int) -> tuple[FusionDefinition, list[Any]]:
        found = entry(self.seed, self.number, bytes=self.bytes)
        fd = record(found)
        return fd, make_inputs(found, fd.fusion.ir, device, seed)


def random_cases(count: int, seed: int = SEED) -> list[TuningCase]:
    """So many cases, of the suite and random in turn; the first ones of any greater number.

    There are fewer where the suite has no more rows.
    """
    rows, graphs = _rows(random.Random(f"tuned rows of {seed}")), _graphs(seed)
    both = itertools.chain.from_iterable(zip(rows, graphs, strict=False))
    return list(itertools.islice(both, count))


def _rows(rng: random.Random) -> Iterator[TuningCase]:
    """A row of each case of the suite; then another one of each."""
    left = [
        [Row(case.name, size, dtype) for dtype in DTYPES for size in case.sizes.of(dtype)]
        for case in rng.sample(CASES, len(CASES))
    ]
    while any(left):
        for rows in filter(None, left):
            yield SuiteCase(rows.pop(rng.randrange(len(rows))))


def _graphs(seed: int) -> Iterator[TuningCase]:
    """Those that are not held out."""
    return (GraphCase(seed, number) for number in itertools.count(0, 2))
