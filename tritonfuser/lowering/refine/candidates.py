"""Values that could be materialized in memory, each with the most seconds that this may save.

These are the bottlenecks of the graph (``bottlenecks.py``). Inputs whose memory order is not that
of their dims are among them, since their copies are in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...heuristics.params import TransposeParams
from ...ir import Fusion, Value
from ...shapes.memory import contiguous_strides
from ...symbolic.sizes import hint
from ..access.aliases import buffer_strides
from ..access.rough_instructions import is_fused, load_instructions
from ..passes.invariants.candidates import computing_instructions, expanded, is_per_row
from ..passes.invariants.exact_dtypes import exact_bytes
from ..passes.invariants.kept_orders import in_order
from ..passes.invariants.materialize import materializable
from .bottlenecks import bottlenecks, held_bytes, narrowest_before
from .kernel_times import TimedKernels
from .saved_instructions import SavedInstructions

SMALL = 16
"""A value whose largest source has less than 1 / ``SMALL`` of the bytes of a kernel's largest
tensor is not materialized for that kernel."""


class Candidates(NamedTuple):
    """Names of values that could be in memory, each with the most seconds that this may save.

    Values with equal cost and equal possible savings form a class, in the order of the graph.

    Attributes
    ----------
    first : dict of str to float
        The first and the last value of each class: those between them differ little.
    again : dict of str to float
        Of each class, the value that saves most instructions, among those that kernels compute at
        several indices. Only if it saves more than the first and the last one.
    others : dict of str to float
        Of each class, the first and the last value of each other shape: these have another order in
        memory. Also small values that are broadcast, which kernels compute in the order of a large
        tensor; and inputs of kernels whose tensors are contiguous along more axes than a tile has
        sides, with another dim innermost.
    """

    first: dict[str, float]
    again: dict[str, float]
    others: dict[str, float]


def candidates(fusion: Fusion, now: TimedKernels, device: DeviceProperties) -> Candidates:
    """The values that may save time if they are in memory.

    A value saves at most the excess of the kernels that compute or load it. It costs one more
    kernel, and its own bytes, written once and read once.

    Parameters
    ----------
    fusion : Fusion
        In which values are put into memory.
    now : TimedKernels
        The kernels without those values in memory.
    """
    gains = _Gains(fusion, now, device)
    under, out_of_order = _largest_under(fusion), set(_out_of_order(fusion))
    again = SavedInstructions(now)
    alike: dict[tuple[float, tuple[float, ...]], list[Value]] = {}
    for value in filter(gains.is_possible, dict.fromkeys(_possible(fusion))):
        much = inf if value in out_of_order else SMALL * under[value]
        alike.setdefault((gains.cost(value), gains.of_kernels(value, much)), []).append(value)
    found = Candidates({}, {}, {})
    for (cost, seconds), values in alike.items():
        if sum(seconds) > cost:
            first, others = _ends(values)
            found.first.update(dict.fromkeys(first, sum(seconds) - cost))
            most = max((value.name for value in values), key=again) if len(values) > 2 else first[0]
            if most not in first and again(most) > max(map(again, first)):
                found.again[most] = sum(seconds) - cost
            found.others.update(dict.fromkeys(others, sum(seconds) - cost))
    for value in filter(gains.is_possible, dict.fromkeys(_broadcast(fusion))):
        saved = sum(gains.of_kernels(value, inf)) - gains.cost(value)
        if value.name not in found.first and saved > 0:
            found.others[value.name] = saved
    for value in filter(gains.is_possible, dict.fromkeys(_crossing_inputs(now))):
        saved = sum(gains.of_kernels(value, inf)) - gains.cost(value)
        if saved > 0:
            found.others.update(dict.fromkeys(_with_other_dims_innermost(value), saved))
    return found


class _Gains:
    """What it costs to have a value in memory, and what that may save at most."""

    def __init__(self, fusion: Fusion, now: TimedKernels, device: DeviceProperties) -> None:
        self._fusion, self._device = fusion, device
        self._possible = materializable(fusion)
        self._slow = [(each.values, each.largest, each.seconds) for each in now.excesses]

    def is_possible(self, value: Value) -> bool:
        """Whether the value can be in memory."""
        return value.name in self._possible

    def of_kernels(self, value: Value, most: float) -> tuple[float, ...]:
        """The excess of each slow kernel that uses it, whose largest tensor has at most ``most``
        bytes."""
        return tuple(
            seconds
            for names, largest, seconds in self._slow
            if value.name in names and most >= largest
        )

    def cost(self, value: Value) -> float:
        """Seconds of one more kernel, and of the value's bytes, written once and read once."""
        kept = hint(value.tensor.numel) * exact_bytes(value, self._fusion.producers)
        return LEAST_KERNEL_S + 2 * kept / self._device.bandwidth_bytes_per_s


def _ends(values: Sequence[Value]) -> tuple[list[str], list[str]]:
    """(the first and the last value, the first and the last of each other shape), by name."""
    ends = (values[0], values[-1])
    shapes = dict.fromkeys(value.tensor.sizes for value in values)
    others = []
    for sizes in sorted(shapes, key=lambda sizes: any(v.tensor.sizes == sizes for v in ends)):
        same = [value for value in values if value.tensor.sizes == sizes]
        others += [value.name for value in (same[0], same[-1]) if value not in ends]
    return [value.name for value in ends], others


def _largest_under(fusion: Fusion) -> dict[Value, int]:
    """For each value, the bytes of the largest tensor that it is computed from.

    Its own, where it is computed from none, as random numbers are.
    """
    found = {v: held_bytes(v) for v in fusion.inputs if v.is_tensor}
    for node in fusion.nodes:
        under = max((found[v] for v in node.operands() if v.is_tensor), default=None)
        for out in node.outs:
            if out.is_tensor:
                found[out] = held_bytes(out) if under is None or not is_fused(node) else under
    return found


def _possible(fusion: Fusion) -> Iterator[Value]:
    yield from _out_of_order(fusion)
    yield from bottlenecks(fusion)


def _out_of_order(fusion: Fusion) -> Iterator[Value]:
    """The inputs whose memory order is not that of their dims.

    Also small ones: each read of an element may take a line of the L1 cache, and all rows that
    share an element read it.
    """
    for value in fusion.inputs:
        if value.is_tensor and value in fusion.consumers:
            strides = buffer_strides(fusion, value)
            if strides != contiguous_strides(value.tensor.sizes):
                yield value


def _crossing_inputs(now: TimedKernels) -> Iterator[Value]:
    """The large inputs of kernels whose large tensors are contiguous along more axes than a tile
    has sides."""
    for each in now.excesses:
        least = each.largest / SMALL
        if each.innermost_axes(least) > TransposeParams.tile_sides:
            yield from (v for v in each.segment.inputs if v.is_tensor and held_bytes(v) >= least)


def _with_other_dims_innermost(value: Value) -> Iterator[str]:
    """The names of a tensor with each other dim of several elements innermost in memory."""
    long = [dim for dim, size in enumerate(value.tensor.sizes) if hint(size) > 1]
    for dim in reversed(long[:-1]):
        others = (other for other in range(value.tensor.rank) if other != dim)
        yield in_order(value, (*others, dim))


def _broadcast(fusion: Fusion) -> Iterator[Value]:
    """Computed values that are broadcast, as sines along heads.

    A kernel over the larger tensor computes each of their elements several times, and reads their
    operands in the order of that tensor.
    """
    for value, result in expanded(fusion):
        count = computing_instructions(fusion, value)
        cheap = count is not None and count <= load_instructions(value.dtype.info.bytes)
        if not cheap and not is_per_row(value, result):
            yield narrowest_before(fusion, value)
