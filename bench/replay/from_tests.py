"""Entries from the tests: sample calls of every op, random definitions."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.e2e.graphs.growing import Grown
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.ops.calls import record
from tests.e2e.ops.every_op import calls_of
from tests.e2e.test_open_sizes import NARROW
from tritonfuser.ops.registry import OPS

from .entry import CPU, FUSED, OPEN, Entry, Spec, specs_of

NUMBERS = {"shape", "size"}
"""Ops whose results are not tensors."""

SEEDS = range(30)
"""Random definitions of each kind."""


def ops() -> Iterator[Entry]:
    """Sample calls of every op, all calls of an op in one definition."""
    for name in sorted(OPS.keys() - NARROW - NUMBERS):
        recorded = record(name, calls_of(name))
        program, inputs = repr(recorded.fd), specs_of(recorded.inputs)
        yield Entry("ops", name, program, inputs, archs=("sm_90", "gfx942", CPU))
        if name in ("matmul", "linear"):
            yield Entry("ops", f"{name} fused", program, inputs, archs=(CPU,), mode=FUSED)


def _grown(kind: str, seed: int) -> Grown:
    return KINDS[kind].grow(random.Random(f"{kind} {seed}"))


def random_definitions() -> Iterator[Entry]:
    """Random definitions of every kind."""
    for kind in KINDS:
        for seed in SEEDS:
            grown = _grown(kind, seed)
            archs = ("sm_90", "gfx942", CPU)
            program, inputs = repr(grown.fd), specs_of(grown.inputs)
            yield Entry("random", f"{kind} {seed}", program, inputs, archs)
            if kind == "products":
                yield Entry("random", f"{kind} {seed} fused", program, inputs, (CPU,), FUSED)


def random_open_sizes() -> Iterator[Entry]:
    """The random definitions with symbolic sizes."""
    for kind in (kind for kind in KINDS if KINDS[kind].dynamic):
        for seed in SEEDS:
            grown = _grown(kind, seed)
            now = specs_of(grown.inputs)
            others = (
                specs_of(made.resized(table) for made in grown.made)
                for table in (grown.sizes[0], grown.sizes[-1])
            )
            varying = tuple(tuple(map(_aligned_as, other, now)) for other in others)
            name = f"{kind} {seed}"
            yield Entry("random open sizes", name, repr(grown.fd), now, mode=OPEN, varying=varying)


def _aligned_as(spec: Spec, other: Spec) -> Spec:
    """The spec with the other's storage offset, since alignment selects the kernel."""
    return {**spec, "offset": other["offset"]} if "offset" in spec else spec
