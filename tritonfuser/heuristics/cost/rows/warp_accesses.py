"""``WarpAccesses``: the loads or stores of one tensor by the warps of a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....device import VECTOR_BYTES
from .access import TileTensor, slice_bytes
from .staged import StagedTraffic


class WarpAccesses(NamedTuple):
    """The loads or stores of one tensor by all warps of a program, in a step.

    Attributes
    ----------
    touched : TileTensor
        The tile of the tensor.
    width : int
        Elements of one load or store of a thread.
    instructions : float
        Loads or stores of all warps, also those that masks turn off.
    lines : float
        Cache lines that they touch.
    written_bytes : float
        Bytes of the sectors that stores write. 0 for loads, and for stores at indices of another
        tensor.
    """

    touched: TileTensor
    width: int
    instructions: float
    lines: float
    written_bytes: float

    @property
    def is_store(self) -> bool:
        """Whether the tensor is stored; otherwise it is loaded."""
        return self.touched.tensor.stream.is_store

    def addresses(self, threads: int) -> float:
        """Addresses of a thread, of a tensor whose offset is no linear function of its
        positions."""
        vector = self.touched.tensor.nonlinear_vector
        each = self.touched.elements / min(self.width, vector) / threads
        return max(each, 1.0) * self.touched.per_step

    @property
    def slice_bytes(self) -> float:
        """Bytes from the most loaded slice of the L2 cache: see ``slice_bytes``. 0 but for loads of
        whole vectors."""
        stream = self.touched.tensor.stream
        if self.is_store or self.width * stream.item_bytes != VECTOR_BYTES:
            return 0.0
        return slice_bytes(stream, self.touched.elements * self.touched.per_step)


class AccessSums(NamedTuple):
    """The loads and stores of all tensors by all warps of a program, in a step. Fields that are not
    listed are sums of those of ``WarpAccesses``.

    Attributes
    ----------
    addresses : float
        Addresses of a thread that are no linear functions of its positions.
    loads : float
        Of ``instructions``, those that load.
    indexed : float
        The most instructions of a tensor whose offset needs digits of positions.
    widest : (int, int)
        Elements of the widest load along each side, of the tensors over all positions.
    """

    lines: float
    instructions: float
    written_bytes: float
    addresses: float
    loads: float
    indexed: float
    widest: tuple[int, int]


def added_up(accesses: Iterable[WarpAccesses], staged: StagedTraffic, threads: int) -> AccessSums:
    """The sums of all tensors, in one pass: beside those of the tensors that are staged."""
    lines, instructions, written = staged.lines, staged.accesses, staged.written_bytes
    addresses = loads = indexed = 0.0
    widest = [1, 1]
    for each in accesses:
        tensor, side = each.touched.tensor, each.touched.side
        lines += each.lines
        instructions += each.instructions
        written += each.written_bytes
        if tensor.nonlinear_vector:
            addresses += each.addresses(threads)
        if tensor.digits:
            indexed = max(indexed, each.instructions)
        if not tensor.stream.is_store:
            loads += each.instructions
            if tensor.is_full and each.width > widest[side]:
                widest[side] = each.width
    sides = widest[0], widest[1]
    return AccessSums(lines, instructions, written, addresses, loads, indexed, sides)
