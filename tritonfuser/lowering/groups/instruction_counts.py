"""The instructions of a kernel that computes given values at given indices."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from ...ir import Fusion, Node
from ...ops.builder import op_of
from ...ops.table import Factory, Random, View
from ..access.read_footprint import Read, sources_of
from ..access.rough_instructions import LOAD_INSTRUCTIONS, MOVED, rough_instructions

Operands = Callable[[Node, Read], Iterable[Read]]
"""What a node's element is computed from: ``read_footprint.reads``, or a cached version of it."""


def instructions(
    fusion: Fusion, anchored: Container[object], operands: Operands, reads: Sequence[Read]
) -> int:
    """Estimate the instructions for loading and computing some values at one position.

    Constants take none. Views take none, except where they choose between operands.

    Parameters
    ----------
    anchored : container of Value
        Results of reductions and of torch, which are loaded.
    reads : sequence of Read
        The values, with all that they are computed from.
    """
    varying = _varying(fusion, anchored, operands, reads)
    count = 0
    for read in reads:
        node = fusion.producers.get(read.value)
        if read not in varying:
            continue
        if node is None or read.value in anchored:
            count += LOAD_INSTRUCTIONS
        elif isinstance(op_of(node).form, View):
            count += MOVED * sum(bool(source.guards) for source in sources_of(node, read))
        else:
            count += rough_instructions(node)
    return count


def _varying(
    fusion: Fusion, anchored: Container[object], operands: Operands, reads: Sequence[Read]
) -> set[Read]:
    """The reads that depend on the position: loaded, or computed from loads or from indices."""
    users: dict[Read, list[Read]] = {}
    found: dict[Read, None] = {}
    for read in reads:
        node = fusion.producers.get(read.value)
        if _varies_by_itself(node, read, anchored):
            found[read] = None
        elif node is not None:
            for item in operands(node, read):
                users.setdefault(Read(item.value, item.index), []).append(read)
    queue = list(found)
    for read in queue:
        reached = [user for user in users.get(read, ()) if user not in found]
        found.update(dict.fromkeys(reached))
        queue += dict.fromkeys(reached)
    return set(found)


def _varies_by_itself(node: Node | None, read: Read, anchored: Container[object]) -> bool:
    """Whether a read is a load, a random number, or counts positions (``iota``)."""
    form = None if node is None else op_of(node).form
    if isinstance(form, Random) or (isinstance(form, Factory) and "{i0}" in form.triton):
        return True
    return read.value.is_tensor and (node is None or read.value in anchored)
