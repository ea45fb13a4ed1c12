"""The check of a definition compiled once with its sizes open, and run at others."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
import torch

from tests.e2e.checking import CPU, MOST_PROGRAMS, copied, gpu
from tests.e2e.graphs.growing import Grown
from tests.e2e.graphs.resized import check_values, expectations
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.conditions import Conditions
from tritonfuser.cache.keys.open_sizes import KeyReader, OpenSignature, SplitKey, with_open_sizes
from tritonfuser.cache.keys.signature import key_maker, signature
from tritonfuser.cache.keys.vectors import Vectors
from tritonfuser.cache.plan.execution_plan import ExecutionPlan, make_plan
from tritonfuser.device import DeviceProperties
from tritonfuser.devices import of
from tritonfuser.errors import TritonFuserError
from tritonfuser.lowering.pipeline import lower

LARGEST = 70


@dataclass(frozen=True)
class Open:
    """A definition compiled at one set of sizes, for others that differ in the same places."""

    plan: ExecutionPlan
    conditions: Conditions

    def at(self, split: SplitKey) -> ExecutionPlan | None:
        """The plan at other sizes, None where its guards do not let them through."""
        atoms = self.conditions.bind(split.numbers)
        assert (atoms is None) is bool(self.conditions.failing(split.numbers))
        return None if atoms is None else self.plan.at(atoms)


def open_signature(
    fd: FusionDefinition, inputs: Sequence[Any], others: Sequence[Sequence[Any]]
) -> OpenSignature | None:
    """The signature of inputs, open in what differs in others; None where nothing can be.

    Nothing is counted on for the sake of vectors, so that the kernels take as many sizes as can be.
    """
    fusion = fd.fusion.ir
    key, reader = key_maker(fusion), KeyReader(fusion)
    split = reader.split(key(inputs))
    found = [reader.split(key(other)) for other in others]
    seen = [other.numbers for other in found if other.family == split.family]
    facts = signature(fusion, inputs, CPU)
    with mock.patch.object(Vectors, "multiples", lambda self, symbols: [1] * len(symbols)):
        return with_open_sizes(fusion, facts, [*seen, split.numbers], reader.scalars(split))


def compile_open(
    fd: FusionDefinition,
    inputs: Sequence[Any],
    others: Sequence[Sequence[Any]],
    device: DeviceProperties,
) -> Open | None:
    """Compiled for inputs, open in what differs in others; None where nothing can be.

    Raises
    ------
    TritonFuserError
        As it would be with sizes written out.
    """
    fusion = fd.fusion.ir
    sizes = open_signature(fd, inputs, others)
    if sizes is None:
        return None
    lowered = lower(fusion, sizes.signature, device, env=sizes.env)
    plan = make_plan(lowered, inputs, CPU, device)
    sizes.env.close()
    reader = KeyReader(fusion)
    names = reader.number_names(reader.split(key_maker(fusion)(inputs)))
    return Open(plan, Conditions(sizes.env, sizes.numbers, names))


def programs(plan: ExecutionPlan) -> int:
    return sum(math.prod(s.source.grid) for s in plan.steps if s.source is not None)


def check_open(
    fd: FusionDefinition, given: Sequence[Sequence[Any]], device: DeviceProperties
) -> tuple[int, bool]:
    """Compiled at the first inputs, run at all that it takes.

    Returns at how many others it ran, and whether it was open at all.
    """
    fusion = fd.fusion.ir
    try:
        made = compile_open(fd, given[0], given[1:], device)
    except TritonFuserError:
        return 0, False
    if made is None or not made.conditions.is_open:
        return 0, False
    key, reader = key_maker(fusion), KeyReader(fusion)
    family = reader.split(key(given[0])).family
    count = 0
    for place, inputs in enumerate(given):
        split = reader.split(key(inputs))
        plan = made.at(split) if split.family == family else None
        assert plan is not None or place > 0, made.conditions.failing(split.numbers)
        if plan is None or programs(plan) > MOST_PROGRAMS:
            continue
        expected, own = expectations(fd, inputs), copied(inputs)
        if expected is None:  # for values, as offsets of groups: guards look at sizes alone
            with pytest.raises(TritonFuserError):
                plan.run(own)
            continue
        found = plan.run(own)
        shapes = [list(x.shape) for x in inputs if isinstance(x, torch.Tensor)]
        check_values(fd, found, own, expected, f"open, {device.name}, at {shapes}")
        count += place > 0
    return count, True


def check_grown_open(grown: Grown, rng: random.Random) -> tuple[int, bool]:
    """A random definition at more sizes, as scheduled here and for a small GPU."""
    several = sorted({n for table in grown.sizes for n in table})
    tables = [
        {n: rng.choice((rng.randint(2, LARGEST), 16 * rng.randint(1, 4))) for n in several}
        for _ in range(6)
    ]
    tables += [{**tables[0], rng.choice(several): rng.randint(2, LARGEST)} for _ in range(3)]
    given = [[made.resized(table) for made in grown.made] for table in tables]
    given = [inputs for inputs in given if expectations(grown.fd, inputs) is not None]
    if len(given) < 2:
        return 0, False
    counts = [check_open(grown.fd, given, device) for device in (of(CPU), gpu(4))]
    return sum(count for count, _ in counts), any(was for _, was in counts)
