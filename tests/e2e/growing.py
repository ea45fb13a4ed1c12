"""A random definition with its inputs, and the check of everything about it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tests.e2e.checking import Schedule, assert_same, copied, gpu, round_trip, same_outline
from tests.e2e.graphs import SIZES, Graph, Term
from tests.e2e.moves import MOVES, Move
from tritonfuser import FusionDefinition
from tritonfuser.frontend.oracle import reference


@dataclass(frozen=True)
class Grown:
    """A definition, what to run it on, and what should come out."""

    fd: FusionDefinition
    inputs: list[Any]
    outputs: list[Term]
    written: dict[int, Term]
    """What is written into inputs, by their places."""


def grow(
    rng: random.Random,
    moves: Sequence[Move] = MOVES,
    most: int = 14,
    sizes: Sequence[int] = SIZES,
    device: str = "cpu",
) -> Grown:
    """Up to ``most`` random ops on random inputs."""
    with FusionDefinition() as fd:
        graph = Graph(fd, rng, sizes, device)
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
    return Grown(fd, graph.inputs, outputs, written)


def _cpu(given: Any) -> Any:
    return given.cpu() if isinstance(given, torch.Tensor) else given


def check_outputs(grown: Grown, found: Sequence[torch.Tensor], what: str) -> None:
    """Each output within the error that was reckoned for it."""
    expected = reference(grown.fd.fusion, [_cpu(x) for x in grown.inputs])
    found = [_cpu(x) for x in found]
    for place, (term, one, wanted) in enumerate(zip(grown.outputs, found, expected, strict=True)):
        where = f"{what}: output {place}, {term.handle} of"
        assert one.dtype is term.dtype.info.torch, f"{where} {one.dtype}"
        assert one.shape == wanted.shape == term.ref.shape, f"{where} shape {one.shape}"
        if not one.is_floating_point():
            assert torch.equal(one, wanted), f"{where}\n{one}\nwanted\n{wanted}"
            continue
        # A reference that is off itself says nothing of the run.
        slack = 4 * term.error
        torch.testing.assert_close(term.ref, wanted, rtol=1e-9, atol=slack, equal_nan=True)
        close = torch.isclose(one.double(), wanted, rtol=0, atol=slack, equal_nan=True)
        assert bool(close.all()), f"{where}\n{one}\nwanted\n{wanted}\nwithin {slack}"


def check_inputs(grown: Grown, found: Sequence[Any]) -> None:
    """Inputs as they were, but for what the definition writes into them."""
    for place, (one, before) in enumerate(zip(found, grown.inputs, strict=True)):
        term = grown.written.get(place)
        if term is not None:
            close = torch.isclose(one.cpu().double(), term.ref.double(), 0, 4 * term.error, True)
            assert bool(close.all()), f"input {place}\n{one}\nwanted\n{term.ref}"
        elif isinstance(before, torch.Tensor):
            torch.testing.assert_close(one, before, rtol=0, atol=0, equal_nan=True)


def check(grown: Grown, rng: random.Random) -> None:
    """Numbers as run here and as a GPU would, twice the same, inputs untouched, printed form."""
    fd, inputs = grown.fd, grown.inputs
    given = copied(inputs)
    outputs = fd.run(given)
    check_outputs(grown, outputs, "run")
    check_inputs(grown, given)
    assert_same(fd.run(copied(inputs)), outputs)
    if any(x.is_cuda for x in outputs):
        same_outline(fd)
        return
    round_trip(fd, inputs, outputs)
    for schedule in schedules(rng):
        given = copied(inputs)
        found = schedule.run(fd, given)
        if found is not None:
            check_outputs(grown, found, str(schedule))
            check_inputs(grown, given)


def schedules(rng: random.Random) -> list[Schedule]:
    """As on a large and on a small GPU, and with params that nobody would propose."""
    sms = rng.choice((1, 4, 132))
    return [Schedule(gpu(sms)), Schedule(gpu(rng.choice((1, 2))), random.Random(rng.random()))]
