"""What programs of a flat kernel find in the L1 cache, since others had it before on the same
multiprocessor: weights, which are the same for all rows."""

from __future__ import annotations

from typing import NamedTuple

from ...device import DeviceProperties
from ..streams import Stream
from .constants import constants_of, share_lost


class L1Cache(NamedTuple):
    """The L1 cache of a multiprocessor, and what passes it.

    Attributes
    ----------
    device : DeviceProperties
        The device.
    loaded_bytes : float
        What a program loads of all tensors.
    programs : float
        The programs of the kernel.
    """

    device: DeviceProperties
    loaded_bytes: float
    programs: float

    def found_share(self, stream: Stream, part_bytes: float) -> float:
        """Share of a tensor's lines that are in the cache when a program loads them.

        A multiprocessor has a part of a tensor again when it has had all other parts. What its
        programs load until then passes the cache.

        Parameters
        ----------
        part_bytes : float
            What a program loads of the tensor; 0 for one that no other program loads.
        """
        if not part_bytes:
            return 0.0
        parts = max(stream.total_bytes / part_bytes, 1.0)
        here = self.programs / self.device.sm_count
        if here <= parts:
            return 0.0
        room = constants_of(self.device).l1_share * self.device.shared_bytes_per_sm
        kept: float = 1 - share_lost(parts * self.loaded_bytes, room)
        return (1 - parts / here) * kept
