"""Each pass twice: it depends on its arguments alone, and asks of sizes the same each time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pytest

from tests.e2e.checking import CPU, gpu
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.opened import open_signature
from tests.e2e.test_open_sizes import CHOSEN, DYNAMIC, define, noise
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.device import DeviceProperties
from tritonfuser.devices import of
from tritonfuser.errors import TritonFuserError
from tritonfuser.heuristics.params import HeuristicParams
from tritonfuser.lowering import emission, graph_passes, pipeline, segment_choice
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.symbolic.shape_env import ShapeEnv
from tritonfuser.symbolic.size_text import guard_text

DEVICES = pytest.mark.parametrize("device", (of(CPU), gpu()), ids=lambda device: device.arch)

CALLED = {
    pipeline: ("concretize",),
    graph_passes: (
        "simplify",
        "split_complex",
        "mark_softmax",
        "add_seeds",
        "concatenate_choices",
        "concatenate_padded",
        "narrow_padded_sums",
        "shrink_positional",
        "merge_slices",
        "reduce_strength",
        "reduce_precision",
    ),
    segment_choice: ("choose",),
    emission: ("tile", "emit_kernel"),
}
"""The functions that ``lower`` calls, by their names in the modules that call them."""

Record = tuple[str, str, list[str]]
"""A pass, what it gave, and all that is known of the sizes behind it."""


def known(env: ShapeEnv | None) -> list[str]:
    """Symbols with their bounds, and guards in their order."""
    if env is None:
        return []
    return [*map(repr, env.atoms), *(guard_text(env, guard) for guard in env.guards)]


def twice(name: str, function: Callable[..., Any], env: ShapeEnv | None, told: list[Record]) -> Any:
    """A function that is called once more with the same arguments, and must give the same."""

    def run(*args: Any) -> Any:
        found = function(*args)
        first = (name, repr(found), known(env))
        assert (name, repr(function(*args)), known(env)) == first, f"{name} once more"
        told.append(first)
        return found

    return run


@contextmanager
def every_pass_twice(env: ShapeEnv | None) -> Iterator[list[Record]]:
    told: list[Record] = []
    with ExitStack() as patches:
        for module, names in CALLED.items():
            made = {name: twice(name, getattr(module, name), env, told) for name in names}
            patches.enter_context(mock.patch.multiple(module, **made))
        yield told


def lowered(fd: FusionDefinition, inputs: Sequence[Any], others: Any, device: Any) -> list[Record]:
    """All that the passes give, and the plan."""
    sizes = open_signature(fd, inputs, others)
    env = None if sizes is None else sizes.env
    facts = signature(fd.fusion.ir, inputs, CPU) if sizes is None else sizes.signature
    with every_pass_twice(env) as told:
        try:
            found = pipeline.lower(fd.fusion.ir, facts, device, env=env)
        except TritonFuserError as error:
            return [*told, ("refused", str(error), known(env))]

    def plan() -> str:
        return make_plan(found, inputs, CPU, device).text

    twice("plan", plan, env, told)()
    assert {name for name, _, _ in told} >= {name for names in CALLED.values() for name in names}
    return told


def check(fd: FusionDefinition, given: Sequence[Any], device: DeviceProperties) -> list[Record]:
    """Of signatures of their own each time, sizes open and written out."""
    assert lowered(fd, given[0], (), device) == lowered(fd, given[0], (), device)
    told = lowered(fd, given[0], given[1:], device)
    assert told == lowered(fd, given[0], given[1:], device)
    return told


@pytest.mark.covering
@DEVICES
@pytest.mark.parametrize("name", CHOSEN)
def test_passes_over_chosen_definitions_give_the_same_twice(
    name: str, device: DeviceProperties
) -> None:
    body, shapes = CHOSEN[name]
    given = [[noise(*shape, seed=n) for n, shape in enumerate(case)] for case in shapes]
    told = check(define(body), given, device)
    assert told[-1][2], "there are symbols"


@pytest.mark.covering
@DEVICES
@pytest.mark.parametrize("name", CHOSEN)
def test_under_given_params(name: str, device: DeviceProperties) -> None:
    """Those that were proposed are legal where sizes are open, and give the same kernels."""
    body, shapes = CHOSEN[name]
    given = [[noise(*shape, seed=n) for n, shape in enumerate(case)] for case in shapes]
    fd = define(body)
    params: tuple[HeuristicParams, ...] | None = None
    texts: list[list[str]] = []
    for _ in range(2):
        sizes = open_signature(fd, given[0], given[1:])
        assert sizes is not None
        options = RunOptions(params=params)
        found = pipeline.lower(fd.fusion.ir, sizes.signature, device, options, sizes.env)
        params = tuple(piece.params for piece in found.segmented.segments)
        texts.append([source.text for source in found.sources if source is not None])
    assert texts[0] == texts[1]


@pytest.mark.covering
@DEVICES
@pytest.mark.parametrize("kind", DYNAMIC)
def test_passes_over_random_definitions_give_the_same_twice(
    kind: str, device: DeviceProperties
) -> None:
    """Random definitions, at the sizes they were made at and at twice those."""
    for number in range(4):
        grown = KINDS[kind].grow(random.Random(f"{kind} {number}"))
        sizes = {n for table in grown.sizes for n in table}
        tables = ({n: n for n in sizes}, {n: 2 * n for n in sizes})
        check(grown.fd, [[made.resized(table) for made in grown.made] for table in tables], device)


def test_a_pass_that_remembers_is_found() -> None:
    """And one that records a guard each time."""
    env = ShapeEnv()
    for forgetful in (iter((1, 2)).__next__, lambda: env.symbols.add(2 + len(env.atoms))):
        with pytest.raises(AssertionError, match="once more"):
            twice("it", forgetful, env, [])()
