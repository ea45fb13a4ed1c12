"""``AxisAtoms``: atomic axes by number, united and split, as a union-find structure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...ir import Value
from ...symbolic.queries import (
    assume_equal,
    assume_less,
    assume_min,
    assume_multiple,
)

Atoms = tuple[int, ...]
"""Numbers of atoms, outermost first."""


class AxisAtoms:
    """Atoms by number: a union-find structure. An atom that was split stands for its two parts."""

    def __init__(self) -> None:
        self._extent: list[int] = []
        self._parent: list[int] = []
        self._parts: dict[int, tuple[int, int]] = {}
        self._users: list[set[Value]] = []

    def extent(self, atom: int) -> int:
        """The positions of an atom."""
        return self._extent[atom]

    def fresh(self, extent: int) -> Atoms:
        """A new atom; none for an extent of 1."""
        if assume_equal(extent, 1):
            return ()
        self._extent.append(extent)
        self._parent.append(len(self._parent))
        self._users.append(set())
        return (len(self._parent) - 1,)

    def resolve(self, atoms: Iterable[int]) -> Atoms:
        """Atoms as those that stand for them now: united ones, and the parts of split ones."""
        done: list[int] = []
        for atom in atoms:
            root = atom if self._parent[atom] == atom else self._find(atom)
            if root in self._parts:
                done += self.resolve(self._parts[root])
            else:
                done.append(root)
        return tuple(done)

    def _find(self, atom: int) -> int:
        while self._parent[atom] != atom:
            self._parent[atom] = self._parent[self._parent[atom]]
            atom = self._parent[atom]
        return atom

    def note_user(self, value: Value, atoms: Sequence[int]) -> None:
        """Remember that a value has atoms. Two atoms of one value are never united."""
        for atom in atoms:
            self._users[atom].add(value)

    def unite(self, a: int, b: int) -> None:
        """Merge two atoms, unless some value has both."""
        if a == b or not self._users[a].isdisjoint(self._users[b]):
            return
        keep, gone = (a, b) if len(self._users[a]) >= len(self._users[b]) else (b, a)
        self._parent[gone] = keep
        self._users[keep] |= self._users[gone]

    def match(self, left: Sequence[int], right: Sequence[int]) -> bool:
        """Unite two factorizations of one extent, innermost first, splitting as needed.

        False where they do not fit, or where a value has both of two atoms: those further in are
        united then.
        """
        first, second = list(self.resolve(left)), list(self.resolve(right))
        while first and second:
            a, b = first.pop(), second.pop()
            small = assume_min(self._extent[a], self._extent[b])
            if assume_equal(small, 0) or not self._divides(small, a, b):
                return False
            if a != b and not self._users[a].isdisjoint(self._users[b]):
                return False
            if assume_less(small, self._extent[a]):
                outer, a = self._split(a, small)
                first.append(outer)
            if assume_less(small, self._extent[b]):
                outer, b = self._split(b, small)
                second.append(outer)
            self.unite(a, b)
        return True

    def take(self, left: list[int], size: int) -> Atoms | None:
        """Pop innermost atoms whose extents multiply to ``size``, splitting the last of them."""
        taken: list[int] = []
        while assume_less(done := prod(self._extent[a] for a in taken), size):
            if not left or not assume_multiple(size, done):
                return None
            atom, need = left.pop(), size // done
            if assume_less(need, self._extent[atom]):
                if not assume_multiple(self._extent[atom], need):
                    return None
                outer, atom = self._split(atom, need)
                left.append(outer)
            taken.insert(0, atom)
        return tuple(taken) if assume_equal(done, size) else None

    def _split(self, atom: int, inner: int) -> tuple[int, int]:
        """Split an atom into (outer, inner), the inner one of the given extent."""
        outer = self.fresh(self._extent[atom] // inner)[0]
        low = self.fresh(inner)[0]
        self._parts[atom] = (outer, low)
        for part in (outer, low):
            self._users[part] |= self._users[atom]
        return outer, low

    def _divides(self, small: int, *atoms: int) -> bool:
        return all(assume_multiple(self._extent[atom], small) for atom in atoms)
