"""The guards of an open variant on the numbers of a key, as one generated function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...symbolic.queries import known_divisor
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atom_text, atoms_in, guard_text
from ...symbolic.sizes import is_size
from .open_sizes import Numbers

CHOSEN = "parts of a reduction"
"""What a number is that heuristics choose."""

Bind = Callable[[Numbers], "list[int] | None"]


@dataclass(frozen=True)
class Condition:
    """A condition as Python text, and the lines that compute what it names."""

    text: str
    about: str


class Conditions:
    """The conditions of a variant.

    Parameters
    ----------
    env : ShapeEnv
        With all guards: the variant is made.
    numbers : tuple of int
        The numbers of a key as expressions.
    words : sequence of str
        What each of them is.

    Attributes
    ----------
    bind : callable
        What the env's atoms are where the numbers fit, else None.
    symbols : dict
        What each symbol is of the inputs, ``{"size0": "tv0.shape[1]"}``, and what was chosen.
    multiples : tuple of str
        What sizes are multiples of: ``("size0 % 16 == 0",)``.
    guards : tuple of str
        What was decided by the sizes at hand.
    """

    def __init__(self, env: ShapeEnv, numbers: Numbers, words: Sequence[str]) -> None:
        self._env = env
        self._words = list(words)
        self.symbols: dict[str, str] = {}
        self.guards = tuple(guard_text(env, guard) for guard in env.guards)
        self._given: list[str] = []
        self._exact: list[Condition] = []
        self.multiples: tuple[str, ...] = ()
        for place, number in enumerate(numbers):
            self._expect(place, number)
        self._chosen: dict[str, Any] = {}
        self._computed = [
            line for place in range(len(env.atoms)) for line in self._computed_lines(place)
        ]
        text = self._text()
        self.bind: Bind = _defined(text, self._chosen)["bind"]

    def _expect(self, place: int, number: int) -> None:
        text = repr(number)
        if text in self.symbols or not is_size(number) or not text.isidentifier():
            self._exact.append(Condition(f"n{place} == {text}", self._words[place]))
            return
        self.symbols[text] = self._words[place]
        self._given.append(f"{text} = n{place}")
        self._exact.append(Condition(f"{text} >= 2", self._words[place]))
        multiple = known_divisor(number)
        if multiple > 1:
            of = f"{text} % {multiple} == 0"
            self.multiples += (of,)
            self._exact.append(Condition(of, self._words[place]))

    def _computed_lines(self, place: int) -> list[str]:
        """The line that computes an atom from those before it; none for a symbol."""
        atom = self._env.atoms[place]
        if atom.chosen is not None:
            self.symbols[atom.name] = CHOSEN
            self._chosen[f"choose_{atom.name}"] = atom.chosen
            return [f"{atom.name} = choose_{atom.name}([{self._values_of(place)}])"]
        return [] if atom.parts is None else [f"{atom.name} = {atom_text(self._env, atom)}"]

    def _values_of(self, count: int) -> str:
        """The values of the first atoms."""
        atoms = self._env.atoms[:count]
        return ", ".join(a.name if a.multiple == 1 else f"{a.name} // {a.multiple}" for a in atoms)

    def _text(self) -> str:
        numbers = ", ".join(f"n{place}" for place in range(len(self._words)))
        exact = " and ".join(condition.text for condition in self._exact)
        guards = " and ".join(self.guards) or "True"
        atoms = self._values_of(len(self._env.atoms))
        lines = [
            f"{numbers}, = numbers",
            *self._given,
            f"if not ({exact}):",
            "    return None",
            "try:",
            *(f"    {line}" for line in self._computed or ["pass"]),
            "except ZeroDivisionError:",
            "    return None",
            f"return [{atoms}] if {guards} else None",
        ]
        return "\n".join(["def bind(numbers):", *(f"    {line}" for line in lines)]) + "\n"

    @property
    def is_open(self) -> bool:
        """Whether any size may be another one than it was."""
        return any(a.low < a.high for a in self._env.atoms if a.is_symbol)

    def failing(self, numbers: Numbers) -> str:
        """The first condition that numbers do not fit, in words; empty where they fit."""
        scope: dict[str, Any] = {**self._chosen, **{f"n{n}": v for n, v in enumerate(numbers)}}
        exec("\n".join(self._given), scope)
        for condition in self._exact:
            if not eval(condition.text, scope):
                return self._unfit(condition, scope)
        try:
            exec("\n".join(self._computed), scope)
        except ZeroDivisionError:
            return "a size is divided by zero"
        for guard in self.guards:
            if not eval(guard, scope):
                chosen = any(atom.chosen for atom in atoms_in(self._env, guard))
                again = "schedule chosen again: " if chosen else ""
                return f"{again}{guard} does not hold: {self._values(guard, scope)}"
        return ""

    def _unfit(self, condition: Condition, scope: dict[str, Any]) -> str:
        left, sign, right = condition.text.partition(" == ")
        if sign and left.startswith("n"):
            wanted = eval(right, scope)
            same = f" ({right})" if not right.isdigit() else ""
            return f"{condition.about} was {wanted}{same}, now {scope[left]}"
        return f"{condition.text} does not hold: {self._values(condition.text, scope)}"

    def _values(self, text: str, scope: dict[str, Any]) -> str:
        """What the sizes in a text are: ``size0 is 8192 (tv0.shape[1])``."""
        found: list[str] = []
        for atom in atoms_in(self._env, text):
            about = self.symbols.get(atom.name)
            found.append(f"{atom.name} is {scope[atom.name]}" + (f" ({about})" if about else ""))
        return ", ".join(found)


def _defined(text: str, scope: dict[str, Any]) -> dict[str, Any]:
    scope = dict(scope)
    exec(compile(text, "<tritonfuser conditions>", "exec"), scope)
    return scope
