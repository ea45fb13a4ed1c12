"""Choices by the sizes of one run: correct at all sizes of a variant, maybe not the fastest.

A guard says at which sizes a kernel is right. A choice says at which sizes it is the kernel that
would be made there: it keeps the question with its facts, so that it can be asked again at other
sizes, without a lowering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .guards import Choice
from .shape_env import ShapeEnv
from .sizes import made, sizes_among
from .substitution import at, substitution

T = TypeVar("T")
A = TypeVar("A")


def env_among(*values: int) -> ShapeEnv | None:
    """The shape env of the sizes among some numbers; None where none varies."""
    return next((size.env for size in sizes_among(*values)), None)


def choose(env: ShapeEnv | None, ask: Callable[[T], A], facts: T) -> A:
    """``ask(facts)`` at the sizes of this run; where they vary the question is kept.

    Parameters
    ----------
    env : ShapeEnv or None
        Of the sizes in the facts. None where there are none.
    ask : callable
        A function of a module: it takes plain numbers, and its answer is compared with ``==``.
    """
    if env is None:
        return ask(facts)
    answer = ask(hinted(env, facts))
    env.choices.setdefault(f"{ask.__qualname__} {facts!r}", Choice(ask, facts, answer))
    return answer


def choose_number(
    env: ShapeEnv | None,
    ask: Callable[[T], int],
    facts: T,
    least: int,
    most: int,
    multiple: int = 1,
) -> int:
    """``ask(facts)``, a number that kernels take as an argument: a size, where the facts vary.

    Parameters
    ----------
    least, most : int
        Bounds of the answer at all sizes.
    multiple : int
        What divides the answer at all sizes.
    """
    if env is None:
        return ask(facts)
    at_sizes, hints = substitution(facts), [atom.hint for atom in env.atoms]
    place = env.add_chosen(
        f"{ask.__qualname__} {facts!r}",
        ask(at_sizes(hints)),
        least,
        most,
        lambda atoms: ask(at_sizes(atoms)),
        multiple,
    )
    return made(env, {(place,): multiple})


def hinted(env: ShapeEnv | None, facts: T) -> T:
    """Facts with the sizes of this run."""
    if env is None:
        return facts
    found: T = at(facts, [atom.hint for atom in env.atoms])
    return found
