"""The bounds of the error analysis: over what right kernels give, and under what wrong ones do.

``TRITONFUSER_BOUND_GRAPHS`` is how many definitions the slow test takes.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from tests.e2e.checking import CPU, Schedule, copied, gpu
from tests.e2e.graphs.growing import Grown
from tests.e2e.graphs.mutants import Mutant, mutants
from tests.e2e.graphs.test_random_graphs import KINDS
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.errors import TritonFuserError
from tritonfuser.frontend.inspect.deviation import deviation
from tritonfuser.frontend.inspect.expectation import Check, Expected, expected
from tritonfuser.frontend.inspect.oracle import Evaluation
from tritonfuser.ir import Fusion
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.pipeline import lower

GRAPHS = int(os.environ.get("TRITONFUSER_BOUND_GRAPHS", "300"))
MUTANTS = 3
FAR = 8.0
"""Bounds by which a wrong result is off at least where it must be found."""
TYPICAL = 50.0
"""How many times the error seen a bound may be, in the median."""
SOME = ("all", "picks", "reductions", "eights", "complex", "long", "products", "long rows")


@dataclass
class Tally:
    """What was seen of all definitions.

    Attributes
    ----------
    ratios : list of float
        For each output, the median of bound / error over the elements with an error.
    elements, undecided : int
        Of all outputs.
    far, caught, moved : int
        Mutants: results off by ``FAR`` bounds; those among them that were refused; results off
        at all.
    failures : list of str
        Right results that were refused, and wrong ones that were not.
    """

    ratios: list[float] = field(default_factory=list)
    elements: int = 0
    undecided: int = 0
    far: int = 0
    caught: int = 0
    moved: int = 0
    failures: list[str] = field(default_factory=list)

    def take(self, name: str, seed: int) -> None:
        """One definition: as it is run here and on GPUs, and mutants of it."""
        rng = random.Random(f"{name} {seed}")
        grown = KINDS[name].grow(rng)
        if seed // len(SOME) % 2:
            grown = replace(grown, inputs=rough(grown.inputs, seed))
        wanted = expected(grown.fd.fusion.ir, grown.inputs, Check())
        what = f"{name} {seed}"
        outputs = grown.fd.run(copied(grown.inputs))
        self.right(what, grown, wanted, outputs)
        self.near(wanted, outputs, grown.fd.fusion.ir)
        for schedule in (Schedule(gpu(132)), Schedule(gpu(1), random.Random(rng.random()))):
            found = schedule.run(grown.fd, copied(grown.inputs))
            if found is not None:
                self.right(f"{what}, {schedule}", grown, wanted, found)
        self.wrong(what, grown, wanted, rng)

    def right(
        self, what: str, grown: Grown, wanted: Expected, outputs: Sequence[torch.Tensor]
    ) -> None:
        for place, one in zip(_shown(grown.fd.fusion.ir), outputs, strict=True):
            found = deviation(one, wanted.wide.outputs[place], wanted.limits[place].values)
            if not found.ok:
                self.failures.append(f"{what}: output {place} is right but {found}")

    def near(self, wanted: Expected, outputs: Sequence[torch.Tensor], fusion: Fusion) -> None:
        for place, one in zip(_shown(fusion), outputs, strict=True):
            bound = wanted.limits[place].values
            self.elements += bound.numel()
            self.undecided += int(bound.isinf().sum())
            wide = torch.complex128 if one.is_complex() else torch.float64
            if one.dtype.itemsize > 1 and (one.is_floating_point() or one.is_complex()):
                error = (one.to(wide) - wanted.wide.outputs[place].to(wide)).abs()
                seen = error.isfinite() & (error > 0) & bound.isfinite()
                if bool(seen.any()):
                    self.ratios.append(float((bound[seen] / error[seen]).median()))

    def wrong(self, what: str, grown: Grown, wanted: Expected, rng: random.Random) -> None:
        """What mutants give."""
        fusion = concretize(grown.fd.fusion.ir, signature(grown.fd.fusion.ir, grown.inputs, CPU))
        for mutant in mutants(fusion, rng, MUTANTS):
            try:
                off = _distance(wanted, Evaluation(mutant.fusion, grown.inputs, True), fusion)
                outputs = _run(mutant, grown.inputs)
            except (TritonFuserError, IndexError, RuntimeError):
                continue  # a mutant that no one would mistake for a definition
            self.moved += off > 0
            if off < FAR:
                continue
            self.far += 1
            pairs = zip(_shown(fusion), outputs, strict=True)
            if all(_accepts(wanted, place, one) for place, one in pairs):
                self.failures.append(f"{what}: off by {off:.3g} bounds, not seen: {mutant.what}")
            else:
                self.caught += 1


def rough(inputs: Sequence[Any], seed: int) -> list[Any]:
    """The inputs with floats that no arithmetic is exact on."""
    generator = torch.Generator().manual_seed(seed)
    found = copied(inputs)
    for x in found:
        if isinstance(x, torch.Tensor) and x.dtype in (torch.float32, torch.float64):
            memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
            memory *= 0.9 + 0.2 * torch.rand(memory.shape, generator=generator, dtype=x.dtype)
    return found


def _shown(fusion: Fusion) -> list[int]:
    return [place for place, out in enumerate(fusion.outputs) if not out.hidden]


def _accepts(wanted: Expected, place: int, one: torch.Tensor) -> bool:
    return deviation(one, wanted.wide.outputs[place], wanted.limits[place].values).ok


def _distance(wanted: Expected, other: Evaluation, fusion: Fusion) -> float:
    """How many bounds the outputs of a mutant are off at most, of elements that are decided."""
    most = 0.0
    for place in _shown(fusion):
        dtype = fusion.outputs[place].value.dtype.info.torch
        one, two = (x.outputs[place].to(dtype) for x in (wanted.wide, other))
        bound = wanted.limits[place].values
        same = (one == two) | ((one != one) & (two != two))
        wide = torch.complex128 if one.is_complex() else torch.float64
        apart = (one.to(wide) - two.to(wide)).abs().nan_to_num(nan=torch.inf)
        off = torch.where(same | bound.isinf(), 0.0, apart / bound)
        most = max(most, float(off.max()) if off.numel() else 0.0)
    return most


def _run(mutant: Mutant, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """As a GPU would, interpreted."""
    given = copied(inputs)
    device = gpu(132)
    lowered = lower(mutant.fusion, signature(mutant.fusion, given, CPU), device)
    return list(make_plan(lowered, given, CPU, device).run(given))


def check(tally: Tally) -> None:
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.caught == tally.far
    assert statistics.median(tally.ratios) <= TYPICAL


@pytest.mark.parametrize("name", SOME)
def test_a_few_definitions_and_mutants(name):
    tally = Tally()
    for seed in range(2):
        tally.take(name, seed)
    assert not tally.failures, "\n".join(tally.failures)


@pytest.mark.slow
def test_bounds_hold_for_right_kernels_and_not_for_wrong_ones():
    tally = Tally()
    for seed in range(GRAPHS):
        tally.take(SOME[seed % len(SOME)], seed)
    check(tally)
    assert tally.far > GRAPHS // 2
    # Not one definition out of a hundred has elements that no check looks at.
    assert tally.undecided <= tally.elements / 100
