"""Whether heuristics would choose the schedule of a variant at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any

from ...errors import TritonFuserError
from ...heuristics.params import HeuristicParams
from ...lowering.fuse.joined_kernels import is_slower_joined
from ...lowering.fuse.scheduler_queries.kernels import is_refused, register_limit_at
from ...lowering.fuse.scheduler_queries.products import saves_no_time
from ...lowering.fuse.scheduler_queries.split_answers import are_shared, best_parts, wanted_parts
from ...lowering.fuse.second_sides import second_side
from ...symbolic.evaluation import AtomValues, evaluator
from ...symbolic.guards import Choice
from ...symbolic.shape_env import ShapeEnv

PROBED = tuple(4**power for power in range(-6, 7) if power)
"""Factors on sizes at which it is tried whether the answer to a question of yes or no changes."""

Answers = tuple[Any, ...]


class ScheduleChoices:
    """The choices of a lowering: questions about its sizes, and answers that lead to its kernels.

    Attributes
    ----------
    count : int
        Questions whose answers sizes may change.
    """

    def __init__(self, env: ShapeEnv) -> None:
        hints = [atom.hint for atom in env.atoms]
        probes = list(_probes(env))
        self._facts: list[Callable[[AtomValues], Any]] = []
        self._asked: list[tuple[Callable[[Any], Any], int]] = []
        places: dict[str, int] = {}
        for choice in env.choices.values():
            if not _may_change(choice, probes):
                continue
            place = places.setdefault(repr(choice.facts), len(places))
            if place == len(self._facts):
                self._facts.append(evaluator(choice.facts))
            self._asked.append((choice.ask, place))
        self.count = len(self._asked)
        self._first = self.answers(hints)
        self._accepted = [self._first]

    def answers(self, atoms: AtomValues) -> Answers:
        """What heuristics answer at other sizes."""
        facts = [made(atoms) for made in self._facts]
        return tuple(_answer(ask, facts[place]) for ask, place in self._asked)

    def are_accepted(self, atoms: AtomValues) -> bool:
        """Whether the answers at these sizes are known to lead to the same kernels."""
        return self.answers(atoms) in self._accepted

    def accept(self, atoms: AtomValues) -> None:
        """Remember that the answers at these sizes lead to the same kernels."""
        self._accepted.append(self.answers(atoms))

    def agreement(self, atoms: AtomValues) -> int:
        """How many answers at these sizes equal those of the lowering."""
        return sum(a == b for a, b in zip(self._first, self.answers(atoms), strict=True))

    def difference(self, atoms: AtomValues) -> str:
        """The first answer that differs, in words; empty where none does."""
        pairs = zip(self._asked, self._first, self.answers(atoms), strict=True)
        return next((_difference(ask, a, b) for (ask, _), a, b in pairs if a != b), "")


def _answer(ask: Callable[[Any], Any], facts: Any) -> Any:
    try:
        return ask(facts)
    except TritonFuserError as error:  # no scheduler takes it
        return str(error)


def _may_change(choice: Choice, probes: list[AtomValues]) -> bool:
    """Whether other sizes may have another answer.

    An answer of yes or no is tried at ``probes``, since most do not depend on sizes. ``are_shared``
    is always asked again: its answer changes back and forth between neighbouring sizes.
    """
    if not isinstance(choice.answer, bool) or choice.ask is are_shared:
        return True
    facts = evaluator(choice.facts)
    return any(_answer(choice.ask, facts(atoms)) != choice.answer for atoms in probes)


def _probes(env: ShapeEnv) -> Iterator[AtomValues]:
    """Other sizes, each alone and all together by the same factor."""
    sizes = [atom.hint * atom.multiple for atom in env.atoms if atom.is_symbol]
    for factor in PROBED:
        for chosen in ({*range(len(sizes))}, *({place} for place in range(len(sizes)))):
            scaled = [int(n * factor) if p in chosen else n for p, n in enumerate(sizes)]
            if min(scaled) >= 2:
                with suppress(ZeroDivisionError):  # no sizes of any variant
                    yield env.symbols.values(scaled)


def _difference(ask: Callable[[Any], Any], old: Any, new: Any) -> str:
    """``inner_persistent: block_r was 1024, now 512``."""
    if not (isinstance(old, HeuristicParams) and isinstance(new, HeuristicParams)):
        return f"{_ABOUT.get(ask, 'the schedule')} was {old}, now {new}"
    if old.scheduler != new.scheduler:
        return f"the scheduler was {old.scheduler}, now {new.scheduler}"
    pairs = ((f.name, getattr(old, f.name), getattr(new, f.name)) for f in fields(old))
    return f"{old.scheduler}: " + ", ".join(f"{n} was {a}, now {b}" for n, a, b in pairs if a != b)


_ABOUT: dict[Callable[[Any], Any], str] = {
    is_refused: "whether a kernel is refused",
    register_limit_at: "the limit on a kernel's registers",
    are_shared: "whether programs share out rows",
    wanted_parts: "the number of parts of a reduction, and what it is a multiple of,",
    best_parts: "how many parts a reduction has",
    saves_no_time: "whether torch computes a product",
    is_slower_joined: "whether flat kernels are one",
    second_side: "the second side of tiles",
}
