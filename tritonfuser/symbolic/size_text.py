"""Sizes as Python text over the names of their env's atoms, which Triton takes as well."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import gcd, lcm, prod

from .guards import Guard, Relation
from .polynomials import Monomial, Polynomial, added, in_order
from .shape_env import ShapeEnv
from .symbols import Atom


def size_text(env: ShapeEnv, p: Polynomial) -> str:
    """``size0 * 1024 + size1 - 3``."""
    terms = [(c < 0, _term(env, monomial, abs(c))) for monomial, c in in_order(p)]
    first = f"{'-' if terms[0][0] else ''}{terms[0][1]}" if terms else "0"
    return first + "".join(f" {'-' if minus else '+'} {text}" for minus, text in terms[1:])


def _term(env: ShapeEnv, monomial: Monomial, coefficient: int) -> str:
    names: list[str] = []
    for place in monomial:
        atom = env.atoms[place]
        if coefficient % atom.multiple:
            names.append(f"({atom.name} // {atom.multiple})")
        else:
            coefficient //= atom.multiple
            names.append(atom.name)
    if coefficient != 1 or not names:
        names.append(str(coefficient))
    return " * ".join(names)


def guard_text(env: ShapeEnv, guard: Guard) -> str:
    """``size0 <= 4096``: a condition in Python."""
    units = {m: prod(env.atoms[v].multiple for v in m) for m, _ in guard.terms}
    times = lcm(*(units[m] // gcd(units[m], c) for m, c in guard.terms))
    p = {monomial: c * times for monomial, c in guard.terms}
    constant = p.pop((), 0)
    sign = guard.relation.value
    if in_order(p)[0][1] < 0:
        p, constant = added({}, p, -1), -constant
        sign = {">=": "<="}.get(sign, sign)
    return f"{size_text(env, p)} {sign} {-constant}"


def atom_text(env: ShapeEnv, atom: Atom) -> str:
    """``(size0 + 7) // (8)``: an atom that is computed. Of a polynomial with a name, that alone."""
    assert atom.parts is not None
    over, sign, under = atom.parts
    if under == (((), 1),):
        return size_text(env, dict(over))
    return f"({size_text(env, dict(over))}) {sign} ({size_text(env, dict(under))})"


def computed(env: ShapeEnv, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The symbols that atoms need, and lines that compute the other atoms from those.

    What heuristics choose is among the symbols: any number within its bounds is right.
    """
    wanted = set(names)
    needed = {place for place, atom in enumerate(env.atoms) if atom.name in wanted}
    lines: list[str] = []
    for place, atom in reversed(list(enumerate(env.atoms))):
        if place not in needed or atom.parts is None:
            continue
        lines.insert(0, f"{atom.name} = {atom_text(env, atom)}")
        sides = (dict(atom.parts[0]), dict(atom.parts[2]))
        needed.update(v for p in sides for monomial in p for v in monomial)
    symbols = [a.name for n, a in enumerate(env.atoms) if n in needed and a.parts is None]
    return symbols, lines


def atoms_in(env: ShapeEnv, text: str) -> list[Atom]:
    """The atoms whose names are words of a text, in their order."""
    words = set(re.findall(r"\bsize\d+\b", text))
    return [atom for atom in env.atoms if atom.name in words]


def bounds_text(env: ShapeEnv, names: Iterable[str], least: int, most: int) -> list[str]:
    """What is known of some atoms, and of products of them: ``["size0 >= 385", "size0 <= 448"]``.

    Parameters
    ----------
    least, most : int
        Lower bounds from ``least`` on are told, and upper ones to ``most``. Products are told of
        only where they are at most ``most``, so that none overflows.
    """
    known = set(names)
    found: list[str] = []
    for atom in env.atoms:
        if atom.name not in known:
            continue
        low, high = atom.low * atom.multiple, atom.high * atom.multiple
        found += [f"{atom.name} >= {low}"] if low >= least else []
        found += [f"{atom.name} <= {high}"] if high <= most else []
    return [*found, *_product_bounds(env, known, least, most)]


def _product_bounds(env: ShapeEnv, known: set[str], least: int, most: int) -> list[str]:
    """Bounds of products, from guards: ``["size0 * size1 >= 385", "size0 * size1 <= 448"]``."""
    lows: dict[Monomial, int] = {}
    highs: dict[Monomial, int] = {}
    for guard in env.guards:
        p = dict(guard.terms)
        constant = p.pop((), 0)
        ((monomial, coefficient),) = p.items() if len(p) == 1 else (((), 0),)
        if len(monomial) < 2 or guard.relation is not Relation.AT_LEAST_ZERO:
            continue
        if not all(env.atoms[place].name in known for place in monomial):
            continue
        unit = prod(env.atoms[place].multiple for place in monomial)
        if coefficient > 0:
            lows[monomial] = max(lows.get(monomial, 0), -(constant // coefficient) * unit)
        else:
            bound = constant // -coefficient * unit
            highs[monomial] = min(highs.get(monomial, bound), bound)
    found: list[str] = []
    for monomial, high in highs.items():
        if high <= most:
            text, low = " * ".join(env.atoms[n].name for n in monomial), lows.get(monomial, 0)
            found += [f"{text} >= {low}"] if low >= least else []
            found += [f"{text} <= {high}"]
    return found
