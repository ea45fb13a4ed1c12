"""``WarpAccesses``: the loads or stores of one tensor by the warps of a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....device import VECTOR_BYTES
from .access import TileTensor, slice_bytes


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
        """Addresses of a thread that are no linear functions of its positions."""
        vector = self.touched.tensor.nonlinear_vector
        if not vector:
            return 0.0
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


def widest_load(loads: Iterable[WarpAccesses], side: int) -> float:
    """Elements of the widest load along a side, of the tensors over all positions."""
    along = (n.width for n in loads if n.touched.side == side and n.touched.tensor.is_full)
    return float(max(along, default=1))
