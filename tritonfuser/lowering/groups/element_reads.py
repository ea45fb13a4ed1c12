"""``ElementReads``: what a kernel loads and computes for some elements, and its instructions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ...ir import Fusion, Node, Value
from ...ops.builder import op_of
from ...ops.forms import Factory, Random
from ...ops.table import View
from ..access.reads import KnownReads, Read
from ..access.rough_instructions import LOAD_INSTRUCTIONS, MOVED, rough_instructions


class ElementReads:
    """Walks from elements of a fusion's values to what they are computed from.

    Parameters
    ----------
    anchored : container of Value
        Results of reductions and of torch: kernels that compute other values only load them.
    operands : KnownReads
        What a node's element is computed from.
    """

    def __init__(
        self,
        fusion: Fusion,
        anchored: Container[Value],
        operands: KnownReads,
    ) -> None:
        self.fusion = fusion
        self.anchored = anchored
        self.operands = operands
        self._computed: dict[Read, tuple[tuple[Node, Read], ...]] = {}

    def needed(self, starts: Iterable[Read]) -> list[Read]:
        """All reads that some elements need, loaded or computed, in breadth-first order."""
        found = dict.fromkeys(Read(start.value, start.index) for start in starts)
        queue = list(found)
        for read in queue:
            node = self._maker(read)
            if node is None:
                continue
            for item in self.operands(node, read):
                bare = Read(item.value, item.index) if item.guards else item
                if bare not in found:
                    found[bare] = None
                    queue.append(bare)
        return queue

    def computed(self, start: Read) -> tuple[tuple[Node, Read], ...]:
        """The nodes computed for an element, each with its index; those nearest to it first."""
        found = self._computed.get(start)
        if found is None:
            makers = ((self._maker(read), read) for read in self.needed([start]))
            found = tuple((node, read) for node, read in makers if node is not None)
            self._computed[start] = found
        return found

    def instructions(self, reads: Sequence[Read]) -> int:
        """Estimate the instructions for loading and computing some values at one position.

        Constants take none. Views take none, except where they choose between operands.

        Parameters
        ----------
        reads : sequence of Read
            The values, with all that they are computed from.
        """
        varying = self._varying(reads)
        count = 0
        for read in reads:
            if read not in varying:
                continue
            node = self._maker(read)
            if node is None:
                count += LOAD_INSTRUCTIONS
            elif isinstance(op_of(node).form, View):
                count += MOVED * sum(
                    bool(source.guards) for source in self.operands.sources(node, read)
                )
            else:
                count += rough_instructions(node)
        return count

    def _maker(self, read: Read) -> Node | None:
        """The node that computes a value. None where a kernel loads it."""
        return None if read.value in self.anchored else self.fusion.producers.get(read.value)

    def _varying(self, reads: Sequence[Read]) -> set[Read]:
        """The reads that depend on the position: loaded, or computed from loads or from indices."""
        users: dict[Read, list[Read]] = {}
        found: dict[Read, None] = {}
        for read in reads:
            node = self.fusion.producers.get(read.value)
            if self._varies_by_itself(node, read):
                found[read] = None
            elif node is not None:
                for item in self.operands(node, read):
                    bare = Read(item.value, item.index) if item.guards else item
                    users.setdefault(bare, []).append(read)
        queue = list(found)
        for read in queue:
            reached = [user for user in users.get(read, ()) if user not in found]
            found.update(dict.fromkeys(reached))
            queue += dict.fromkeys(reached)
        return set(found)

    def _varies_by_itself(self, node: Node | None, read: Read) -> bool:
        """Whether a read is a load, a random number, or counts positions (``iota``)."""
        form = None if node is None else op_of(node).form
        if isinstance(form, Random) or (isinstance(form, Factory) and "{i0}" in form.triton):
            return True
        return read.value.is_tensor and (node is None or read.value in self.anchored)
