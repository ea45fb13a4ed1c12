"""``Rules``: what holds for each grouping of a fusion."""

from __future__ import annotations

from dataclasses import dataclass

from ...device import DeviceProperties
from ...ir import Value


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for each grouping of a fusion, however far it is rewritten.

    Attributes
    ----------
    device : DeviceProperties
        The device to schedule for.
    fuse_all : bool
        All matrix products that can be kernels are, with all that can be in them.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    over_rows : bool
        Whether reductions over rows may join kernels along these.
    rereads_rows : bool
        Whether a kernel may read its rows twice.
    apart : frozenset of str
        Values that are stored by kernels without reductions.
    """

    device: DeviceProperties
    fuse_all: bool = False
    misaligned: frozenset[Value] = frozenset()
    over_rows: bool = True
    rereads_rows: bool = True
    apart: frozenset[str] = frozenset()
