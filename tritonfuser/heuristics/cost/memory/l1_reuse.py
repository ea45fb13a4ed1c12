"""L1 hits of tensors that several programs of a kernel load alike, as the weights of a norm."""

from __future__ import annotations

from typing import NamedTuple

from ....device import DeviceProperties
from ...streams import Stream
from ..constants import constants_of, evicted_share


class L1Cache(NamedTuple):
    """The L1 cache of one multiprocessor while a kernel runs.

    Attributes
    ----------
    device : DeviceProperties
        The device.
    loaded_bytes : float
        Bytes that one program loads, of all tensors together.
    programs : float
        Programs of the kernel.
    """

    device: DeviceProperties
    loaded_bytes: float
    programs: float

    def hit_rate(self, stream: Stream, part_bytes: float) -> float:
        """Share of a tensor's lines that hit the cache when a program loads its part of them.

        Programs on one multiprocessor are taken to load the parts of the tensor in turn, so a part
        is used again after all other parts. The bytes that these programs load until then are the
        reuse distance.

        Parameters
        ----------
        part_bytes : float
            Bytes of the tensor that one program loads; 0 if no other program loads the same bytes.
        """
        if not part_bytes:
            return 0.0
        parts = max(stream.total_bytes / part_bytes, 1.0)
        programs_of_sm = self.programs / self.device.sm_count
        if programs_of_sm <= parts:
            return 0.0
        capacity = constants_of(self.device).l1_share * self.device.shared_bytes_per_sm
        kept: float = 1 - evicted_share(parts * self.loaded_bytes, capacity)
        return (1 - parts / programs_of_sm) * kept
