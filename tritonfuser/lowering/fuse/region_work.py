"""Whether a value that concatenations piece together is computed faster box by box.

A kernel over all of its elements computes, for each of them, what any element needs. That takes
instructions; the bytes are much the same either way.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...device import DeviceProperties
from ...ir import Value
from ...symbolic.choices import choose, env_among
from ...symbolic.index_expr import extent
from ..access.bytes_moved import moved_bytes
from ..access.traffic import Traffic
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.group_graph import GroupGraph

MARGIN = 0.8
"""Share of the instructions from which on it is not sure that fewer of them take less time: each
box has an address of its own."""


def threads_at_once(device: DeviceProperties) -> int:
    """Threads that are resident on all multiprocessors together."""
    return device.sm_count * device.max_threads_per_sm


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreWork:
    """The extra work of kernels for storing a value, beyond what they compute anyway.

    Attributes
    ----------
    nests : tuple of (int, int)
        For each kernel its number of positions, and the extra instructions at each of them.
    total_bytes : int
        Extra bytes that are read and written.
    kernels : int
        Kernels that only store this value.
    """

    nests: tuple[tuple[int, int], ...]
    total_bytes: int
    kernels: int

    def instructions(self, device: DeviceProperties) -> int:
        """Instructions of all threads. A kernel with idle threads counts as if these worked too.

        Its time is that of one thread's instructions, however few positions it has.
        """
        full = threads_at_once(device)
        return sum(max(positions, full) * count for positions, count in self.nests)

    def seconds(self, device: DeviceProperties) -> float:
        """Time of the work: of instructions or of bytes, whichever is longer, plus the launches."""
        computing = self.instructions(device) / device.instructions_per_s
        moving = self.total_bytes / device.bandwidth_bytes_per_s
        return max(computing, moving) + device.launch_s * self.kernels


def pays_in_boxes(whole: StoreWork, boxes: StoreWork, device: DeviceProperties) -> bool:
    """Whether a value is expected to be stored faster box by box than as a whole."""
    sizes = (*_positions(whole), *_positions(boxes), whole.total_bytes, boxes.total_bytes)
    return choose(env_among(*sizes), boxes_are_faster, (whole, boxes, device))


def _positions(work: StoreWork) -> list[int]:
    return [positions for positions, _ in work.nests]


def boxes_are_faster(facts: tuple[StoreWork, StoreWork, DeviceProperties]) -> bool:
    """Whether the second way to store a value takes less time than the first.

    Where it takes no more kernels, it is enough that it takes fewer instructions by ``MARGIN``.
    """
    whole, boxes, device = facts
    if boxes.kernels <= whole.kernels:
        fewer = boxes.instructions(device) < MARGIN * whole.instructions(device)
        return fewer or boxes.kernels < whole.kernels
    return boxes.seconds(device) < whole.seconds(device)


def store_work(value: Value, graph: GroupGraph, maker: AnchorMaker, kernels: int) -> StoreWork:
    """The work that groups have for storing a value, as a whole or box by box.

    Parameters
    ----------
    graph : GroupGraph
        The groups. The value has been placed.
    kernels : int
        Groups that it started.
    """
    nests: list[tuple[int, int]] = []
    traffic: list[Traffic] = []
    for group in graph.listed:
        stores = [store for store in group.stores if store.value == value]
        if not stores:
            continue
        mine = maker.elements.needed(read for store in stores for read in store.root_reads)
        own = {read for store in stores for read in store.root_reads}
        others = set(maker.elements.needed(read for read in group.root_reads() if read not in own))
        fresh = [read for read in mine if read not in others]
        positions = extent(group.parallel) * extent(group.reduced)
        nests.append((positions, maker.elements.instructions(fresh)))
        loads = [r for r in fresh if r.value in maker.home_index or r.value in maker.fusion.given]
        traffic += maker.traffic(loads, stores)
    return StoreWork(
        nests=tuple(nests), total_bytes=moved_bytes(maker.fusion, traffic), kernels=kernels
    )


def whole_work(whole: Anchor, maker: AnchorMaker) -> StoreWork:
    """The work of storing a value as a whole in a kernel that exists anyway."""
    needed = maker.elements.needed(whole.root_reads)
    traffic = maker.traffic(whole.footprint.loads | whole.footprint.reducers, [whole.store])
    return StoreWork(
        nests=((extent(whole.parallel), maker.elements.instructions(needed)),),
        total_bytes=moved_bytes(maker.fusion, traffic),
        kernels=0,
    )
