"""The groups of a grouping so far: which makes which value, and which have to run before which."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field

from ...ir import Value
from ...symbolic.sizes import hint
from .grouping import Group, Seed


def bits(numbers: Iterable[int]) -> int:
    """A set of small numbers as the bits of one: unions and differences take no time."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def largest_first(mask: int) -> Iterator[int]:
    """The numbers in such a set."""
    while mask:
        number = mask.bit_length() - 1
        mask ^= 1 << number
        yield number


@dataclass
class Groups:
    """Groups by number.

    Attributes
    ----------
    owner : dict
        The group that makes a value; of several that write it, the last.
    writers : dict
        All groups that write a value which several write parts of, or that is only stored.
    kernels : int
        Those that torch does not run, as bits.
    """

    listed: list[Group] = field(default_factory=list)
    owner: dict[Value, int] = field(default_factory=dict)
    writers: dict[Value, int] = field(default_factory=dict)
    kernels: int = 0
    _before: list[int] = field(default_factory=list)

    def copy(self) -> Groups:
        """The state now, that a later one can be given up for."""
        return Groups(
            [*self.listed], {**self.owner}, {**self.writers}, self.kernels, [*self._before]
        )

    def __len__(self) -> int:
        return len(self.listed)

    def start(self, group: Group) -> None:
        """Add a group; its number is the next one."""
        assert group.number == len(self.listed)
        self.listed.append(group)
        self._before.append(0)
        if group.library is None:
            self.kernels |= 1 << group.number
        self._link(group)

    def put(self, group: Group, seed: Seed) -> None:
        """Exchange a group for itself with a seed in it."""
        self.listed[group.number] = group
        self.owner.update(dict.fromkeys(seed.values, group.number))
        if seed.member is None:
            known = self.writers.get(seed.value, 0)
            self.writers[seed.value] = known | 1 << group.number
        self._link(group)

    def _link(self, group: Group) -> None:
        """Note what a group needs, for those behind it too."""
        number = group.number
        fresh = self.up_to(group.needs) & ~self._before[number]
        if not fresh:
            return
        self._before[number] |= fresh
        for other, before in enumerate(self._before):
            if before >> number & 1:
                self._before[other] = before | fresh

    def before(self, group: Group) -> int:
        """The groups that have to run before one, as bits."""
        return self._before[group.number]

    def up_to(self, numbers: Iterable[int]) -> int:
        """Groups and those before them, as bits."""
        found = 0
        for number in numbers:
            found |= 1 << number | self._before[number]
        return found

    def writing(self, values: Collection[Value]) -> frozenset[int]:
        """The groups that write values, all that write parts of them."""
        found = bits(self.owner[v] for v in values if v in self.owner)
        for value in values:
            found |= self.writers.get(value, 0)
        return frozenset(largest_first(found))

    def owners(self, seed: Seed) -> frozenset[int]:
        """The groups whose results a seed reads."""
        reach = seed.reach
        return frozenset(self.owner[v] for v in (*reach.native, *reach.foreign))

    def possible(self, seed: Seed) -> int:
        """The kernels that do not have to run before one that the seed reads, as bits."""
        owners = self.owners(seed)
        found = self.kernels & ~self.up_to(owners)
        for number in owners:
            if self.kernels >> number & 1 and not self.up_to(owners - {number}) >> number & 1:
                found |= 1 << number
        return found

    def candidates(self, seed: Seed, among: int) -> Iterator[Group]:
        """Kernels whose reductions a seed reads, and then the others, the latest first."""
        touched = bits({self.owner[v] for v in seed.reach.native}) & among
        for mask in (touched, among & ~touched):
            for number in largest_first(mask):
                yield self.listed[number]


@dataclass(frozen=True)
class InMemory:
    """What a kernel loads even where it could compute it.

    Results of reductions elsewhere, what is said to be stored, and what kernels before it store
    that has one element for many of its own.

    Parameters
    ----------
    places : container
        All values that are computed in one place only.
    size : int
        The elements of the kernel's loop nest.
    """

    groups: Groups
    group: Group
    places: Container[Value]
    size: int

    def __contains__(self, value: object) -> bool:
        if value in self.places and value not in self.group.places:
            return True
        if value in self.group.stored:
            return True
        return isinstance(value, Value) and self._is_worth_it(value)

    def _is_worth_it(self, value: Value) -> bool:
        writers = self.groups.writers.get(value, 0)
        if not writers or writers & ~self.groups.before(self.group):
            return False
        return 8 * hint(value.tensor.numel) <= hint(self.size)
