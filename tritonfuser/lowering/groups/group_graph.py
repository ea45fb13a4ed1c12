"""``GroupGraph``: which fusion group computes which value, and which groups run before which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ...ir import Value
from ...symbolic.sizes import hint
from .anchor import Anchor
from .fusion_group import FusionGroup

WORTH_BYTES = 1 << 20
"""Differences in shared loads below this do not matter: loading so much takes a tenth of a
launch."""


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
    """All groups by number, with their dependences.

    Sets of groups are bit masks: unions and differences of them take one operation.

    Attributes
    ----------
    listed : list of FusionGroup
        The groups, by number.
    owner : dict of Value to int
        The group that computes a value; the last one if several write parts of it.
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
        """A snapshot, to which later changes can be rolled back."""
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
        """Replace a group by ``group``, which has one more ``anchor`` and the same number."""
        self.listed[group.number] = group
        self.owner.update(dict.fromkeys(anchor.values, group.number))
        if anchor.member is None:
            known = self.writers.get(anchor.value, 0)
            self.writers[anchor.value] = known | 1 << group.number
        self._link(group)

    def require(self, number: int, others: frozenset[int]) -> None:
        """Let a group run after others, which must not depend on it."""
        group = self.listed[number]
        self.listed[number] = replace(group, needs=group.needs | others)
        self._link(self.listed[number])

    def _link(self, group: FusionGroup) -> None:
        """Record that the groups which a group needs run before it, and before its dependents."""
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
        """The kernels that an anchor can join without a cycle, as a bit mask: those that need not
        run before a group whose results the anchor reads."""
        owners = self._owners(anchor)
        found = self.kernels & ~self.up_to(owners)
        for number in owners:
            if self.kernels >> number & 1 and not self.up_to(owners - {number}) >> number & 1:
                found |= 1 << number
        return found

    def candidates(self, anchor: Anchor, among: int) -> Iterator[FusionGroup]:
        """The kernels of a mask, in the order in which an anchor tries to join them.

        First those whose results it reads, then the others. Within both, kernels that share more
        loaded bytes with it come first. Among equals, a box of a value prefers kernels with no more
        positions than itself, and then the latest kernel comes first.
        """
        touched = bits({self.owner[v] for v in anchor.footprint.at_own_index}) & among
        for mask in (touched, among & ~touched):
            groups = [self.listed[number] for number in largest_first(mask)]
            yield from sorted(groups, key=lambda g: (-_shared_loads(anchor, g), _idles(anchor, g)))


def _shared_loads(anchor: Anchor, group: FusionGroup) -> int:
    """Bytes that both an anchor and a group load, in units of ``WORTH_BYTES``."""
    shared = anchor.loaded_tensors & group.loaded_tensors
    return sum(map(_stored_bytes, shared)) // WORTH_BYTES


def _idles(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether programs of a group would idle for a box of a value, which has fewer positions."""
    if anchor.part is None:
        return False
    return hint(group.loops.row_extent) > hint(anchor.loops.row_extent)


def _stored_bytes(value: Value) -> int:
    """Bytes of a tensor in memory, about: expanded dims of inputs count as 1."""
    layout, held = value.tensor.layout, value.tensor.sizes
    if layout is not None and layout.strides is not None:
        steps = zip(held, layout.strides, strict=True)
        held = tuple(size for size, stride in steps if hint(stride))
    return value.dtype.info.bytes * prod(map(hint, held))
