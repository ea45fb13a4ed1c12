"""What kernels tell Triton of neighbours holds: a wrong hint gives wrong elements, on GPUs alone.

The interpreter keeps hints as attributes of what they are about, where they are looked at here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime.interpreter import TensorHandle

from tests.e2e.checking import Schedule, copied, gpu
from tests.e2e.graphs.test_random_graphs import KINDS, NARROW, Kind
from tests.lowering.emit.test_pairs import in_two_widths
from tests.lowering.graphs import noise
from tests.lowering.harness import check, small
from tests.lowering.tile.test_neighbours import BF16, FLOAT, dropout, mixed

MIXED = {
    "two widths": Kind(dtypes=NARROW),
    "views in two widths": Kind(KINDS["views"].moves, dtypes=NARROW),
    "small dims in two widths": Kind(dtypes=NARROW, sizes=(2, 4, 8, 12, 24)),
}
"""Results of several widths have a limit on neighbours."""


def unlike(told: str, numbers: np.ndarray[Any, Any], step: int) -> bool:
    """Whether neighbours in groups, along the last dim, are not as was told."""
    apart = np.diff(numbers.astype(np.int64), axis=-1)
    return bool((apart != (step if told == "tt.contiguity" else 0)).any())


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each hint was given, of more than one neighbour; each of them is checked."""
    found: Counter[str] = Counter()

    def set_attr(self: TensorHandle, name: str, values: Sequence[int]) -> None:
        self.attr[name] = values
        if name not in ("tt.contiguity", "tt.constancy"):
            return
        pointed = getattr(self.dtype, "element_ty", None)
        step = max(pointed.primitive_bitwidth // 8, 1) if pointed is not None else 1
        for dim, count in enumerate(values):
            if count > 1 and self.data.shape[dim] % count == 0:
                along = np.moveaxis(self.data, dim, -1)
                assert not unlike(name, along.reshape(*along.shape[:-1], -1, count), step), name
                found[name] += 1

    monkeypatch.setattr(TensorHandle, "set_attr", set_attr)
    yield found


@pytest.mark.parametrize("sizes", [(33, 17), (64, 128), (16, 305), (48, 36)])
def test_of_results_of_two_widths(told: Counter[str], sizes: tuple[int, int]) -> None:
    """A weight of 17 columns is divided inside of what would be a vector."""
    x = noise(*sizes).to(BF16) * 0.25
    beside = noise(sizes[1], seed=1).to(BF16), noise(*sizes[::-1], seed=2).to(BF16).t() * 0.25
    for facts in (small(1), small(2)):
        check(mixed((BF16, FLOAT)), x, tolerance=2e-2, facts=facts)
        for other in beside:
            check(mixed((BF16, FLOAT)), x, other * 0.25, tolerance=2e-2, facts=facts)
        check(dropout(sizes, rng_seed=5, rng_offset=8), x, tolerance=2e-2, facts=facts)
    assert told["tt.contiguity"] > 0


@pytest.mark.parametrize("width", [64, 66, 40])
def test_of_runs_of_pairs(told: Counter[str], width: int) -> None:
    x = noise(512, 80).bfloat16()
    check(in_two_widths(512, width), x, facts=small(1), tolerance=1e-2)
    assert told["tt.contiguity"] > 0


def run_all(kinds: dict[str, Kind], numbers: range) -> None:
    """As a GPU would run them, with random legal params."""
    for name, kind in kinds.items():
        for number in numbers:
            seed = f"{name} {number}"
            grown = kind.grow(random.Random(seed))
            torch.manual_seed(3)
            try:
                Schedule(gpu(2), random.Random(seed)).run(grown.fd, copied(grown.inputs))
            except AssertionError as error:
                raise AssertionError(f"seed {seed!r}: {error}") from error


def test_of_random_graphs(told: Counter[str]) -> None:
    run_all(MIXED, range(6))
    run_all({"dynamic views": KINDS["dynamic views"]}, range(4))
    assert told["tt.contiguity"] > 0


@pytest.mark.slow
def test_of_many_random_graphs(told: Counter[str]) -> None:
    run_all(MIXED | KINDS, range(200, 240))
