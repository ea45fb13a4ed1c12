"""Choices: decisions by the sizes of one run that are correct, but maybe not fastest, at others.

A guard says at which sizes a kernel is correct. A choice says at which sizes the heuristics would
make the same kernel again. It stores the question and its facts, so that the question can be asked
at other sizes without lowering the definition again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .evaluation import evaluate, evaluator
from .guards import Choice
from .shape_env import ShapeEnv
from .sizes import as_size, sizes_among

T = TypeVar("T")
A = TypeVar("A")


def env_among(*values: int) -> ShapeEnv | None:
    """The ``ShapeEnv`` of the first size among some numbers; None where all are plain ints."""
    return next((size.env for size in sizes_among(*values)), None)


def choose(env: ShapeEnv | None, ask: Callable[[T], A], facts: T) -> A:
    """``ask(facts)`` at the sizes of this run. Where sizes vary, the question is stored in ``env``.

    Parameters
    ----------
    env : ShapeEnv or None
        The env of the sizes in ``facts``. None where ``facts`` contains none.
    ask : callable
        A module-level function of facts in plain numbers. Its answers are compared with ``==``.
    facts : object
        A tuple or dataclass, which may contain sizes.
    """
    if env is None:
        return ask(facts)
    answer = ask(with_hints(env, facts))
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
    """``ask(facts)`` as a number that may differ at other sizes: kernels take it as an argument.

    Parameters
    ----------
    env : ShapeEnv or None
        The env of the sizes in ``facts``. With None the answer is a plain int.
    ask : callable
        As for ``choose``.
    facts : object
        As for ``choose``.
    least, most : int
        Inclusive bounds of the answer at all sizes.
    multiple : int
        A divisor of the answer at all sizes.

    Returns
    -------
    int
        A ``Size`` where the facts contain one.
    """
    if env is None:
        return ask(facts)
    at_sizes, hints = evaluator(facts), [atom.hint for atom in env.atoms]
    place = env.symbols.add_chosen(
        f"{ask.__qualname__} {facts!r}",
        ask(at_sizes(hints)),
        least,
        most,
        lambda atoms: ask(at_sizes(atoms)),
        multiple,
    )
    return as_size(env, {(place,): multiple})


def with_hints(env: ShapeEnv | None, facts: T) -> T:
    """``facts`` with every size replaced by its hint, its value in this run."""
    if env is None:
        return facts
    found: T = evaluate(facts, [atom.hint for atom in env.atoms])
    return found
