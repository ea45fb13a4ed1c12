"""Sizes as Python text over the names of their ledger's atoms, which Triton takes as well."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import gcd, lcm, prod

from .polynomials import Monomial, Polynomial, added, in_order
from .shape_env import Atom, Guard, Ledger


def size_text(ledger: Ledger, p: Polynomial) -> str:
    """``size0 * 1024 + size1 - 3``."""
    terms = [(c < 0, _term(ledger, monomial, abs(c))) for monomial, c in in_order(p)]
    first = f"{'-' if terms[0][0] else ''}{terms[0][1]}" if terms else "0"
    return first + "".join(f" {'-' if minus else '+'} {text}" for minus, text in terms[1:])


def _term(ledger: Ledger, monomial: Monomial, coefficient: int) -> str:
    names: list[str] = []
    for place in monomial:
        atom = ledger.atoms[place]
        if coefficient % atom.multiple:
            names.append(f"({atom.name} // {atom.multiple})")
        else:
            coefficient //= atom.multiple
            names.append(atom.name)
    if coefficient != 1 or not names:
        names.append(str(coefficient))
    return " * ".join(names)


def guard_text(ledger: Ledger, guard: Guard) -> str:
    """``size0 <= 4096``: a condition in Python."""
    units = {m: prod(ledger.atoms[v].multiple for v in m) for m, _ in guard.terms}
    times = lcm(*(units[m] // gcd(units[m], c) for m, c in guard.terms))
    p = {monomial: c * times for monomial, c in guard.terms}
    constant = p.pop((), 0)
    sign = guard.relation.value
    if in_order(p)[0][1] < 0:
        p, constant = added({}, p, -1), -constant
        sign = {">=": "<="}.get(sign, sign)
    return f"{size_text(ledger, p)} {sign} {-constant}"


def computed(ledger: Ledger, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The symbols that atoms need, and lines that compute the other atoms from those."""
    wanted = set(names)
    needed = {place for place, atom in enumerate(ledger.atoms) if atom.name in wanted}
    lines: list[str] = []
    for place, atom in reversed(list(enumerate(ledger.atoms))):
        if place not in needed or atom.parts is None:
            continue
        over, sign, under = dict(atom.parts[0]), atom.parts[1], dict(atom.parts[2])
        text = f"({size_text(ledger, over)}) {sign} ({size_text(ledger, under)})"
        lines.insert(0, f"{atom.name} = {text}")
        needed.update(v for p in (over, under) for monomial in p for v in monomial)
    symbols = [a.name for n, a in enumerate(ledger.atoms) if n in needed and a.parts is None]
    return symbols, lines


def atoms_in(ledger: Ledger, text: str) -> list[Atom]:
    """The atoms whose names are words of a text, in their order."""
    words = set(re.findall(r"\bsize\d+\b", text))
    return [atom for atom in ledger.atoms if atom.name in words]
