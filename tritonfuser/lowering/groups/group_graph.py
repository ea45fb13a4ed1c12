"""The graph of fusion groups: which group makes which value, and which run before which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ...ir import Value
from ...symbolic.sizes import hint
from .anchor import Anchor
from .fusion_group import FusionGroup

WORTH_BYTES = 1 << 20
"""Loading so much takes about a tenth of a launch. A kernel is not preferred for less."""


def bits(numbers: Iterable[int]) -> int:
    """A set of small numbers as a bit mask: bit ``n`` is set for each number ``n``."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def largest_first(mask: int) -> Iterator[int]:
    """The numbers of a bit mask, the largest first."""
    while mask:
        number = mask.bit_length() - 1
        mask ^= 1 << number
        yield number


@dataclass
class GroupGraph:
    """Groups by number, and what they need of one another.

    Sets of groups are bit masks: unions and differences of them take one operation.

    Attributes
    ----------
    listed : list of FusionGroup
        The groups, by number.
    owner : dict of Value to int
        The group that makes a value. Where several write it, the last of them.
    writers : dict of Value to int
        All groups that write a stored value or parts of it, as a bit mask.
    kernels : int
        The groups that torch does not run, as a bit mask.
    _before : list of int
        By number: the groups that must run before a group, as a bit mask.
    """

    listed: list[FusionGroup] = field(default_factory=list)
    owner: dict[Value, int] = field(default_factory=dict)
    writers: dict[Value, int] = field(default_factory=dict)
    kernels: int = 0
    _before: list[int] = field(default_factory=list)

    def copy(self) -> GroupGraph:
        """A snapshot: later changes can be undone by going back to it."""
        return GroupGraph(
            [*self.listed], {**self.owner}, {**self.writers}, self.kernels, [*self._before]
        )

    def __len__(self) -> int:
        return len(self.listed)

    def start(self, group: FusionGroup) -> None:
        """Add a group. Its number must be the next one."""
        assert group.number == len(self.listed)
        self.listed.append(group)
        self._before.append(0)
        if group.library is None:
            self.kernels |= 1 << group.number
        self._link(group)

    def put(self, group: FusionGroup, anchor: Anchor) -> None:
        """Replace the group of this number by ``group``, which has ``anchor`` in it."""
        self.listed[group.number] = group
        self.owner.update(dict.fromkeys(anchor.values, group.number))
        if anchor.member is None:
            known = self.writers.get(anchor.value, 0)
            self.writers[anchor.value] = known | 1 << group.number
        self._link(group)

    def require(self, number: int, others: frozenset[int]) -> None:
        """Let a group run after others. They must not need it."""
        group = self.listed[number]
        self.listed[number] = replace(group, needs=group.needs | others)
        self._link(self.listed[number])

    def _link(self, group: FusionGroup) -> None:
        """Record that what a group needs runs before it, and before all that need the group."""
        number = group.number
        fresh = self.up_to(group.needs) & ~self._before[number]
        if not fresh:
            return
        self._before[number] |= fresh
        for other, before in enumerate(self._before):
            if before >> number & 1:
                self._before[other] = before | fresh

    def before(self, group: FusionGroup) -> int:
        """The groups that must run before a group, as a bit mask."""
        return self._before[group.number]

    def up_to(self, numbers: Iterable[int]) -> int:
        """Groups and all that must run before them, as a bit mask."""
        found = 0
        for number in numbers:
            found |= 1 << number | self._before[number]
        return found

    def writing(self, values: Collection[Value]) -> frozenset[int]:
        """The groups that write values or parts of them."""
        found = bits(self.owner[v] for v in values if v in self.owner)
        for value in values:
            found |= self.writers.get(value, 0)
        return frozenset(largest_first(found))

    def needs(self, anchor: Anchor, group: FusionGroup) -> frozenset[int]:
        """The other groups whose results an anchor reads."""
        return self._owners(anchor) - {group.number}

    def _owners(self, anchor: Anchor) -> frozenset[int]:
        """The groups whose results an anchor reads."""
        return frozenset(self.owner[v] for v in anchor.footprint.results)

    def possible(self, anchor: Anchor) -> int:
        """The kernels that do not run before a group whose results an anchor reads, as a mask."""
        owners = self._owners(anchor)
        found = self.kernels & ~self.up_to(owners)
        for number in owners:
            if self.kernels >> number & 1 and not self.up_to(owners - {number}) >> number & 1:
                found |= 1 << number
        return found

    def candidates(self, anchor: Anchor, among: int) -> Iterator[FusionGroup]:
        """Kernels of a mask, in the order in which an anchor tries to join them.

        Those that it reads results of come first. Of these and of the others it prefers the kernels
        that load most of what it loads, which is then loaded once. Of those a box prefers the
        kernels that have no more positions than it, and all others the latest.
        """
        touched = bits({self.owner[v] for v in anchor.footprint.at_own_index}) & among
        for mask in (touched, among & ~touched):
            groups = [self.listed[number] for number in largest_first(mask)]
            yield from sorted(groups, key=lambda g: (-_shared_loads(anchor, g), _idles(anchor, g)))


def _shared_loads(anchor: Anchor, group: FusionGroup) -> int:
    """How much of what an anchor loads a group loads too, in units that are worth a difference."""
    shared = anchor.loaded_tensors & group.loaded_tensors
    return sum(map(_stored_bytes, shared)) // WORTH_BYTES


def _idles(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether a group has more positions than a box of a value."""
    if anchor.part is None:
        return False
    return hint(group.loops.row_extent) > hint(anchor.loops.row_extent)


def _stored_bytes(value: Value) -> int:
    """Bytes of a tensor in memory, about: a dim that an input is expanded along counts as 1."""
    layout, held = value.tensor.layout, value.tensor.sizes
    if layout is not None and layout.strides is not None:
        steps = zip(held, layout.strides, strict=True)
        held = tuple(size for size, stride in steps if hint(stride))
    return value.dtype.info.bytes * prod(map(hint, held))
