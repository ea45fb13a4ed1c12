"""Values that one kernel would compute at many positions for each element of its results.

Steps of a stencil, ``y = (y shifted left + y shifted right) / 2``, double the positions of ``y``
with every step back: a kernel for ten of them computes the first at 1024 positions, of which most
are the same. Such a value is put in memory, so that each element is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....ir import Fusion, Node, Value
from ....lazy import cached_property
from ....ops.builder import op_of
from ....ops.table import View
from ....symbolic.sizes import hint
from ...access.rough_instructions import is_fused, rough_instructions
from .materialize import can_be_kept

MOST_POSITIONS = 4
"""Positions of a value, for each element of a result, up to which a kernel computes it at all of
them. A kernel whose time is that of its memory has some forty instructions an element."""

MOST_REPEATED = 64
"""Instructions an element up to which a value is computed again and again: it takes about as long
to store and load it. A cast, or a product of two inputs, is loaded as cheaply as its operands."""

MOST_WAYS = 64
"""Ways to a value from one result up to which a kernel has an expression for each, where only one
of them is gone at a time: parts of a cat."""

MOST_VIEWS = 32
"""Views one behind the other, up to which a kernel follows positions through all of them."""

Chain = tuple[object, ...]
"""The result of a kernel, by its number, and the views that lead from it to a value, each with the
operand that it takes."""


@dataclass
class _Uses:
    """How a value is reached from the results of kernels.

    Attributes
    ----------
    chains : dict of Chain to float
        For each way how many of the result's elements go it.
    """

    chains: dict[Chain, float] = field(default_factory=dict)

    def add(self, chain: Chain, share: float) -> None:
        """Another use of the value; ways beyond those that decide are not kept."""
        if chain in self.chains or len(self.chains) <= 2 * MOST_WAYS:
            self.chains[chain] = max(share, self.chains.get(chain, 0.0))

    @property
    def positions(self) -> float:
        """The most positions for an element of any result."""
        totals: dict[object, float] = {}
        for chain, share in self.chains.items():
            totals[chain[0]] = totals.get(chain[0], 0.0) + share
        return max(totals.values(), default=0.0)

    @property
    def ways(self) -> int:
        """The most ways from any result."""
        return max(Counter(chain[0] for chain in self.chains).values(), default=0)

    @property
    def depth(self) -> int:
        """The most views on the way."""
        return max((len(chain) - 1 for chain in self.chains), default=0)


def read_at_many(fusion: Fusion) -> tuple[str, ...]:
    """The names of values that are to be in memory before kernels read them, in their order."""
    return _Search(fusion).names() if _may_be_crowded(fusion) else ()


def _may_be_crowded(fusion: Fusion) -> bool:
    """Whether there are enough views, and values that several of them are of."""
    views = [node for node in fusion.nodes if isinstance(op_of(node).form, View)]
    if len(views) > MOST_VIEWS:
        return True
    viewed = [value for node in views for value in dict.fromkeys(node.operands())]
    more = sum(len(fusion.consumers[value]) > 1 for value in viewed)
    return bool(2**more > MOST_POSITIONS)


class _Search:
    """Goes from results to inputs, with the ways to each value."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._uses: dict[Value, _Uses] = {}
        self._results = 0

    @cached_property
    def _possible(self) -> frozenset[str]:
        return can_be_kept(self._fusion)

    def names(self) -> tuple[str, ...]:
        """The chosen values."""
        found: list[str] = []
        for output in self._fusion.outputs:
            self._begin(output.value)
        for node in reversed(self._fusion.nodes):
            if not is_fused(node):
                for value in node.operands():
                    self._begin(value)
                continue
            if self._is_crowded(node):
                found.append(node.out.name)
                self._uses[node.out] = _Uses()
                self._begin(node.out)
            self._go_on(node)
        return tuple(reversed(found))

    def _begin(self, value: Value) -> None:
        """A result of a kernel, which computes it at its own positions."""
        self._results += 1
        self._used(value).add((self._results,), 1.0)

    def _used(self, value: Value) -> _Uses:
        return self._uses.setdefault(value, _Uses())

    def _go_on(self, node: Node) -> None:
        """Hand the ways to a value on to its operands."""
        ways = self._used(node.out).chains
        form = op_of(node).form
        for number, value in enumerate(v for v in node.operands() if v.is_tensor):
            if isinstance(form, View):
                share = _share(node, form, value)
                step = node.out, number
                for chain, part in ways.items():
                    self._used(value).add((*chain, step), part * share)
            else:
                for chain, part in ways.items():
                    self._used(value).add(chain, part)

    def _is_crowded(self, node: Node) -> bool:
        """Whether a value is computed too often, or behind too many views."""
        uses = self._used(node.out)
        again = uses.positions - 1 if uses.positions > MOST_POSITIONS else 0.0
        ways = uses.ways - 1 if uses.ways > MOST_WAYS else 0
        often = max(again, ways)
        is_crowded = uses.depth > MOST_VIEWS or (
            often > 0 and any(often * count > MOST_REPEATED for count in self._counts(node))
        )
        return is_crowded and self._can_be_kept(node)

    def _can_be_kept(self, node: Node) -> bool:
        """Whether a value can be in memory: a result that no strides express is no view there."""
        form = op_of(node).form
        moved = isinstance(form, View) and form.alias is None
        return moved or node.out.name in self._possible

    def _counts(self, node: Node) -> Iterator[int]:
        """The instructions that an element is computed by, node by node, each once."""
        count, seen, stack = 0, {node.out}, [node]
        while stack:
            made = stack.pop()
            count += rough_instructions(made)
            yield count
            for value in made.operands():
                maker = self._fusion.producers.get(value)
                if value not in seen and maker is not None and is_fused(maker):
                    seen.add(value)
                    stack.append(maker)


def _share(node: Node, form: View, value: Value) -> float:
    """The share of a view's elements that are elements of an operand: of parts of a cat, theirs."""
    if not form.pieces or form.indices:
        return 1.0
    return min(hint(value.tensor.numel) / max(hint(node.out.tensor.numel), 1), 1.0)
