"""A random definition with its inputs, and the check of everything about it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, again, assert_same, copied, gpu, round_trip, same_outline
from tests.e2e.graphs import DTYPES, LIMIT, SIZES, D, Graph, Input, Term
from tests.e2e.moves import MOVES, Move
from tritonfuser import DataType, FusionDefinition, TritonFuserError
from tritonfuser.dtypes import Category
from tritonfuser.errors import DefinitionError
from tritonfuser.frontend.oracle import Evaluation, reference


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
) -> Grown:
    """Up to ``most`` random ops on random inputs."""
    with FusionDefinition() as fd:
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
        if term.category < Category.FLOAT:
            assert torch.equal(one, wanted), f"{where}\n{one}\nwanted\n{wanted}"
            continue
        # A reference that is off itself says nothing of the run.
        slack = 4 * term.error
        torch.testing.assert_close(
            real(term.ref), real(wanted), rtol=1e-9, atol=slack, equal_nan=True
        )
        close = torch.isclose(real(one), real(wanted), rtol=0, atol=slack, equal_nan=True)
        assert bool(close.all()), f"{where}\n{one}\nwanted\n{wanted}\nwithin {slack}"


def real(x: torch.Tensor) -> torch.Tensor:
    """Numbers in float64, complex ones as pairs."""
    return torch.view_as_real(x.resolve_conj()).double() if x.is_complex() else x.double()


def check_inputs(grown: Grown, found: Sequence[Any]) -> None:
    """Inputs as they were, but for what the definition writes into them."""
    for place, (one, before) in enumerate(zip(found, grown.inputs, strict=True)):
        term = grown.written.get(place)
        if term is not None:
            close = torch.isclose(real(one.cpu()), real(term.ref), 0, 4 * term.error, True)
            assert bool(close.all()), f"input {place}\n{one}\nwanted\n{term.ref}"
        elif isinstance(before, torch.Tensor):
            torch.testing.assert_close(real(one), real(before), rtol=0, atol=0, equal_nan=True)


def check_resized(grown: Grown) -> int:
    """The same definition at other sizes, then at the first ones again; how many it ran at.

    Sizes that its ops do not fit are left out: torch says which.
    """
    count = 0
    for table in grown.sizes:
        given = [made.resized(table) for made in grown.made]
        plain = [_cpu(x) for x in given]
        try:
            wide = reference(grown.fd.fusion, plain)
            own = reference(grown.fd.fusion, plain, double=False)
        except (RuntimeError, IndexError, TritonFuserError):
            continue
        if any(x.numel() > 4 * LIMIT for x in wide):
            continue
        if any(plain[place].shape != made for place, made in written_shapes(grown, plain).items()):
            with pytest.raises(DefinitionError, match="add_output"):
                grown.fd.run(copied(given))
            continue
        count += 1
        found = grown.fd.run(copied(given))
        runs = {"run": found}
        if not any(x.is_cuda for x in found):
            runs["as on a GPU"] = Schedule(gpu(4)).run(grown.fd, copied(given)) or found
        for what, outputs in runs.items():
            for place, one in enumerate(outputs):
                where = f"{what} at {table}: output {place}, {grown.outputs[place].handle} of"
                assert_near(_cpu(one), wide[place], own[place], looseness(grown.fd), where)
    if count:
        check_outputs(grown, grown.fd.run(copied(grown.inputs)), "run again")
    return count


def written_shapes(grown: Grown, inputs: Sequence[Any]) -> dict[int, torch.Size]:
    """The shapes of what is written into inputs, by their places."""
    if not grown.written:
        return {}
    fusion = grown.fd.fusion.ir
    outputs = Evaluation(fusion, inputs, double=True).outputs
    pairs = zip(fusion.outputs, outputs, strict=True)
    return {fusion.inputs.index(o.alias_of): x.shape for o, x in pairs if o.alias_of is not None}


def looseness(fd: FusionDefinition) -> float:
    """A relative error that the narrowest dtype of a definition makes likely."""
    fusion = fd.fusion.ir
    dtypes = {v.dtype for n in fusion.nodes for v in n.outs} | {v.dtype for v in fusion.inputs}
    if dtypes & {D.Float8_e4m3fn, D.Float8_e5m2}:
        return 0.5
    return 0.04 if dtypes & {D.Half, D.BFloat16} else 2e-5


def assert_near(
    found: torch.Tensor, wide: torch.Tensor, own: torch.Tensor, rtol: float, where: str
) -> None:
    """Within what float64 and torch's own dtypes differ by; numbers that do not, to the bit."""
    assert found.shape == wide.shape, f"{where} shape {found.shape}, wanted {wide.shape}"
    if not (found.is_floating_point() or found.is_complex()):
        # Where rounding decides, it may decide otherwise.
        decided = rtol < 1e-4 and torch.equal(own, wide)
        assert not decided or torch.equal(found, wide), f"{where}\n{found}\nwanted\n{wide}"
        return
    found, wide, own = real(found), real(wide), real(own)
    settled = wide.isfinite() == own.isfinite()
    both = wide.isfinite() & own.isfinite()
    size = float(wide[both].abs().max()) if bool(both.any()) else 0.0
    off = float((wide - own)[both].abs().max()) if bool(both.any()) else 0.0
    close = torch.isclose(found, wide, rtol=0, atol=16 * off + rtol * size, equal_nan=True)
    assert bool((close | ~settled).all()), f"{where}\n{found}\nwanted\n{wide}"


def check_as_one_kernel(grown: Grown) -> None:
    """Where a definition fits one kernel, that gives the same."""
    given = copied(grown.inputs)
    try:
        found = again(grown.fd).run_kernel(given)
    except TritonFuserError as refusal:
        assert "KernelExecutor does not support the Fusion" in str(refusal)
        return
    check_outputs(grown, found, "one kernel")
    check_inputs(grown, given)


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
    check_as_one_kernel(grown)
    check_resized(grown)


def schedules(rng: random.Random) -> list[Schedule]:
    """As on a large and on a small GPU, and with params that nobody would propose."""
    sms = rng.choice((1, 4, 132))
    return [Schedule(gpu(sms)), Schedule(gpu(rng.choice((1, 2))), random.Random(rng.random()))]
