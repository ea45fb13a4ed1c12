"""Values that could be stored in memory, each with the most that this may save.

Those are the waists of the graph: where a chain of ops is narrowest before a reduction or a view,
and behind a value that several ops use. Inputs that do not lie in the order of their dims are among
them: a copy does.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import Pointwise, View
from ...shapes import contiguous_strides
from ...symbolic.sizes import hint
from ..access.aliases import buffer_strides
from ..access.read_footprint import is_reducer
from ..access.rough_instructions import is_fused
from ..passes.invariants.exact_dtypes import exact_bytes
from ..passes.invariants.materialize import can_be_kept
from .kernel_times import TimedKernels

SMALL = 16
"""Values that are computed from less than this part of the bytes of a kernel's largest tensor are
not put into memory for that kernel."""


def candidates(fusion: Fusion, now: TimedKernels, device: DeviceProperties) -> dict[str, float]:
    """For each value that could be in memory the most seconds that it may save, if that is any.

    It saves at most what the kernels that compute or load it take beyond the time of their bytes:
    with it in memory they compute less too.
    It costs a kernel, and its own bytes, written once and read once. Of values that are alike in
    both the first and the last are taken: what lies between differs little.

    Parameters
    ----------
    fusion : Fusion
        In which values are put into memory.
    now : TimedKernels
        The kernels without those values in memory.
    """
    apart, under = can_be_kept(fusion), _largest_under(fusion)
    slow = [(each.values, each.largest, each.seconds) for each in now.excesses]
    out_of_order = set(_out_of_order(fusion))
    alike: dict[tuple[float, ...], list[str]] = {}
    for value in dict.fromkeys(_waists(fusion)):
        if value.name in apart:
            much = inf if value in out_of_order else SMALL * under[value]
            users = (
                seconds for names, most, seconds in slow if value.name in names and much >= most
            )
            kept = hint(value.tensor.numel) * exact_bytes(value, fusion.producers)
            cost = LEAST_KERNEL_S + 2 * kept / device.bandwidth_bytes_per_s
            alike.setdefault((cost, *users), []).append(value.name)
    found: dict[str, float] = {}
    for (cost, *seconds), names in alike.items():
        if sum(seconds) > cost:
            found.update(dict.fromkeys((names[0], names[-1]), sum(seconds) - cost))
    return found


def _largest_under(fusion: Fusion) -> dict[Value, int]:
    """For each value, the bytes of the largest tensor that it is computed from."""
    found = {v: _held_bytes(v) for v in fusion.inputs if v.is_tensor}
    for node in fusion.nodes:
        under = max((found.get(v, 0) for v in node.operands()), default=0)
        for out in node.outs:
            if out.is_tensor:
                found[out] = under if is_fused(node) else _held_bytes(out)
    return found


def _out_of_order(fusion: Fusion) -> Iterator[Value]:
    """The inputs whose memory order is not that of their dims.

    Small ones are among them: each element that is read may take a line of the L1 cache, and the
    rows that share an element read it again and again.
    """
    for value in fusion.inputs:
        if value.is_tensor and value in fusion.consumers:
            strides = buffer_strides(fusion, value)
            if strides != contiguous_strides(value.tensor.sizes):
                yield value


def _waists(fusion: Fusion) -> Iterator[Value]:
    yield from _out_of_order(fusion)
    for node in fusion.nodes:
        is_view = isinstance(as_call(node).op.form, View)
        if is_view or is_reducer(node):
            yield from (_narrowest(fusion, v) for v in node.operands() if v.is_tensor)
        branches = len(fusion.consumers.get(node.out, ())) > 1
        if is_fused(node) and node.out.is_tensor and (is_view or branches):
            yield _narrowest(fusion, node.out)


def _narrowest(fusion: Fusion, value: Value) -> Value:
    """The value of least bytes on the chain of single operands in the shape of ``value``."""
    best = value
    while (operand := _only_operand(fusion.producers.get(value), value)) is not None:
        value = operand
        if _held_bytes(value) < _held_bytes(best):
            best = value
    return best


def _only_operand(node: Node | None, value: Value) -> Value | None:
    """The only computed tensor among the operands of a pointwise value; None for several."""
    if node is None or not isinstance(as_call(node).op.form, Pointwise):
        return None
    tensors = [v for v in node.operands() if v.is_tensor and hint(v.tensor.numel) > 1]
    if len(tensors) != 1 or tensors[0].tensor.sizes != value.tensor.sizes:
        return None
    return tensors[0]


def _held_bytes(value: Value) -> int:
    return hint(value.tensor.numel) * value.dtype.info.bytes
