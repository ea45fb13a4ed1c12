"""The conditions under which an open variant serves the numbers of a key, as one function.

The function is generated: it binds the symbols to the numbers, checks the guards, and returns the
values of all atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...symbolic.queries import known_divisor
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atom_text, atoms_in, guard_text
from ...symbolic.sizes import is_size
from .open_sizes import KeyNumbers

CHOSEN = "parts of a reduction"
"""What ``Conditions.symbols`` says of a number that heuristics choose."""

Bind = Callable[[KeyNumbers], "list[int] | None"]


@dataclass(frozen=True)
class Condition:
    """A condition on a key.

    Attributes
    ----------
    text : str
        The condition as a Python expression.
    about : str
        The number that it is about, such as ``tv0.shape[1]``.
    """

    text: str
    about: str


class Conditions:
    """The conditions under which a variant is correct.

    Parameters
    ----------
    env : ShapeEnv
        A closed env, with all guards of the lowering.
    numbers : tuple of int
        The numbers of the key: constants and sizes of ``env``.
    number_names : sequence of str
        The name of each number.

    Attributes
    ----------
    bind : callable
        A function of the numbers of a key. Returns the values of the env's atoms where the
        conditions hold, else None.
    symbols : dict
        The number of the key that each symbol stands for, ``{"size0": "tv0.shape[1]"}``;
        ``CHOSEN`` for numbers that heuristics choose.
    multiples : tuple of str
        Conditions on divisibility, such as ``"size0 % 16 == 0"``.
    guards : tuple of str
        The guards of the lowering.
    """

    def __init__(self, env: ShapeEnv, numbers: KeyNumbers, number_names: Sequence[str]) -> None:
        self._env = env
        self._number_names = list(number_names)
        self.symbols: dict[str, str] = {}
        self.guards = tuple(guard_text(env, guard) for guard in env.guards)
        self._given: list[str] = []
        self._exact: list[Condition] = []
        self.multiples: tuple[str, ...] = ()
        for place, number in enumerate(numbers):
            self._add_conditions(place, number)
        self._chosen: dict[str, Any] = {}
        self._computed = [
            line for place in range(len(env.atoms)) for line in self._computed_lines(place)
        ]
        text = self._text()
        self.bind: Bind = _defined(text, self._chosen)["bind"]

    def _add_conditions(self, place: int, number: int) -> None:
        """Add the conditions on one number of the key."""
        text = repr(number)
        if text in self.symbols or not is_size(number) or not text.isidentifier():
            self._exact.append(Condition(f"n{place} == {text}", self._number_names[place]))
            return
        self.symbols[text] = self._number_names[place]
        self._given.append(f"{text} = n{place}")
        self._exact.append(Condition(f"{text} >= 2", self._number_names[place]))
        multiple = known_divisor(number)
        if multiple > 1:
            of = f"{text} % {multiple} == 0"
            self.multiples += (of,)
            self._exact.append(Condition(of, self._number_names[place]))

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
        numbers = ", ".join(f"n{place}" for place in range(len(self._number_names)))
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
        """Whether any size may differ from its hint."""
        return any(a.low < a.high for a in self._env.atoms if a.is_symbol)

    def failing(self, numbers: KeyNumbers) -> str:
        """The first condition that does not hold for numbers, in words; empty where all hold."""
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
        """The values of the sizes in a text: ``size0 is 8192 (tv0.shape[1])``."""
        found: list[str] = []
        for atom in atoms_in(self._env, text):
            about = self.symbols.get(atom.name)
            found.append(f"{atom.name} is {scope[atom.name]}" + (f" ({about})" if about else ""))
        return ", ".join(found)


def _defined(text: str, scope: dict[str, Any]) -> dict[str, Any]:
    scope = dict(scope)
    exec(compile(text, "<tritonfuser conditions>", "exec"), scope)
    return scope
