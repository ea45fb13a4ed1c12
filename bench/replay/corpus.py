"""The corpus: parts by name, each a generator of entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from . import from_bench, from_tests
from .entry import Entry

PARTS: Mapping[str, Callable[[], Iterator[Entry]]] = {
    "definitions": from_bench.definitions,
    "suite": from_bench.suite,
    "ops": from_tests.ops,
    "random": from_tests.random_definitions,
    "open sizes": from_bench.open_sizes,
    "random open sizes": from_tests.random_open_sizes,
    "given params": from_bench.given_params,
    "products": from_bench.products,
    "fuse_matmul": from_bench.fused,
}
"""The parts of the corpus, in order."""


def entries(parts: Collection[str] = (), containing: str = "") -> list[Entry]:
    """The entries of some parts (default all) whose name contains a text."""
    chosen = (make for part, make in PARTS.items() if not parts or part in parts)
    return [entry for make in chosen for entry in make() if containing in entry.name]
