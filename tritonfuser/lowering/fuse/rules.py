"""``Rules``: the settings of a grouping."""

from __future__ import annotations

from dataclasses import dataclass

from ...device import DeviceProperties
from ...ir import Value


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings that all groupings of a fusion share, before and after its reductions are split.

    Attributes
    ----------
    device : DeviceProperties
        The device to schedule for.
    fuse_all : bool
        Whether all matrix products that can be generated kernels are, with every op that fits.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    over_rows : bool
        Whether reductions over rows may join kernels that reduce along these rows.
    rereads_rows : bool
        Whether a kernel may read its rows twice.
    stored_flat : frozenset of str
        Names of values that flat kernels store.
    """

    device: DeviceProperties
    fuse_all: bool = False
    misaligned: frozenset[Value] = frozenset()
    over_rows: bool = True
    rereads_rows: bool = True
    stored_flat: frozenset[str] = frozenset()
