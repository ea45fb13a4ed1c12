"""Programs recorded with one wrong call among the right ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.graphs.growing import Grown
from tests.e2e.misuse.judging import fault_of
from tests.e2e.misuse.outcome import Wrong, fresh, is_small, same
from tests.e2e.misuse.record_mutations import change
from tests.e2e.misuse.tracing import Replay, Step, Traced
from tests.e2e.misuse.wrong_values import OfDefinition
from tritonfuser import FusionDefinition, TritonFuserError, ValidationError


@dataclass(frozen=True)
class Changed:
    """A step of a program, and what it is changed to."""

    place: int
    what: str
    step: Step

    def __str__(self) -> str:
        return f"step {self.place}: {self.what}: {self.step}"


def misuse(rng: random.Random, grown: Grown) -> str:
    """Change one call; the outcome in a word.

    Raises
    ------
    Wrong
        The call is refused badly, leaves something behind, or gives wrong numbers.
    """
    assert isinstance(grown.fd, Traced)
    steps = grown.fd.steps
    place = rng.randrange(len(steps))
    made = 1 + max((n for step in steps[:place] for n in step.made), default=-1)
    changed = Changed(place, *change(rng, steps[place], made))
    fd = FusionDefinition()
    with fd:
        replay = Replay(fd)
        for step in steps[:place]:
            replay.do(step)
        outcome = _attempt(replay, changed)
        later = None
        for step in steps[place + (outcome == "taken") :]:
            try:
                replay.do(step)
            except (TritonFuserError, KeyError) as error:
                if outcome == "refused" or (fault := fault_of_later(error, step)) is not None:
                    raise Wrong(f"{changed}\nlater {step}: {error!r} {fault}") from error
                later = step
                break
    if later is not None:
        return "later refused"
    if outcome == "refused" and makes_values(changed.step):
        return outcome
    if outcome == "refused":
        same(fd.run(fresh(grown.inputs)), grown.fd.run(fresh(grown.inputs)), f"{changed}")
        return outcome
    return _run(fd, grown.inputs, changed)


def fault_of_later(error: BaseException, step: Step) -> str | None:
    """What is wrong with a refusal of a right call behind a changed one that was taken."""
    # What the changed call made has no number where it made less than the right one.
    return None if isinstance(error, KeyError) else fault_of(error, [step.op])


def makes_values(step: Step) -> bool:
    """Whether an argument is a new value of the definition."""
    return any(isinstance(arg, OfDefinition) for arg in (*step.args, *step.kwargs.values()))


def _attempt(replay: Replay, changed: Changed) -> str:
    fd, before = replay.fd, f"{replay.fd.fusion.ir}"
    try:
        replay.do(changed.step)
    except Exception as error:
        fault = fault_of(error, [changed.step.op])
        if fault is not None:
            raise Wrong(f"{changed}\n{fault}") from error
        after = f"{fd.fusion.ir}"
        # A wrong value may be an input of its own.
        if after == before or makes_values(changed.step):
            return "refused"
        raise Wrong(f"{changed}\nleft something behind") from error
    return "taken"


def _run(fd: FusionDefinition, inputs: Sequence[Any], changed: Changed) -> str:
    """Run a changed program: it may be right, then its numbers have to be."""
    ops = {node.op for node in fd.fusion.ir.nodes}
    if not is_small(fd):
        return "taken, too large to run"
    try:
        fd.validate(fresh(inputs))
    except Exception as error:
        fault = fault_of(error, {*ops, changed.step.op, "nput", "add_output", "Fusion is empty"})
        if fault is None and not isinstance(error, ValidationError):
            return "refused by the run"
        raise Wrong(f"{changed}\n{fault}\n{error!r}\n{fd!r}") from error
    return "right"
