"""Orders of axes with short reuse distances: what loads the same data runs soon afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..cost.model import KernelTime
from ..cost.sides import broadcast_side
from ..params import HeuristicParams, KernelParams, PointwiseParams, TransposeParams
from ..problem import Problem
from ..streams import Stream
from .orders import near_orders
from .thresholds import seconds_to_beat
from .warps import Kernels

GAIN_OF_ORDER = 0.8
"""Another order of a flat kernel's axes is predicted to take at most this share of its time, launch
included. H100, 106 orders of flat kernels of random definitions and of models'
steps, with the same innermost axis: the four below this share took 0.88 times as long (geometric
mean), those predicted to take 0.8 to 1.02 times 1.06."""


def with_shorter_reuse(kernels: Kernels, params: HeuristicParams) -> HeuristicParams:
    """Params with another order of axes, if caches then keep more of what is read again.

    Example: scores ``[batch, heads, rows, columns]`` with a bias ``[heads, rows, columns]``. In
    memory order, the bias is read again after all heads of a batch element. With the batch axis
    innermost among the rows, the programs that read one row of the bias follow one another.

    A flat kernel that multiplies by sines ``[rows, columns]`` gets the heads into its tiles, and
    reads each sine once for all of them. Tiles of two sides are left alone: an order of all axes
    would give them one side.
    """
    if not isinstance(params, KernelParams) or getattr(params, "axes", None) != ():
        return params
    if isinstance(params, TransposeParams):
        return params
    first = kernels.time(params)
    if first is None:
        return params
    if isinstance(params, PointwiseParams):
        return _with_reuse_in_tiles(kernels, params, first)
    return _fastest_order(kernels, params, first, _orders_of_rows(kernels, params, first))


def _orders_of_rows(
    kernels: Kernels, params: KernelParams, first: KernelTime
) -> Iterator[tuple[int, ...]]:
    """Orders of the rows that may move fewer bytes: of broadcast tensors that are read again, or of
    partially used sectors. None if the kernel would gain less by that than the model's error."""
    problem, reread = kernels.problem, kernels.reread_bytes(params)
    if reread:
        most = max(reread, key=lambda stream: reread[stream])
        yield _with_innermost(problem, broadcast_side(problem, most))
    if all(len(group) == 1 for group in problem.order):
        return  # there is one order
    without = first.with_more_bytes(-kernels.sector_refetch_bytes(params), problem.device)
    without = without.without("L2 stores")
    if not kernels.within_model_error(first.seconds, without.seconds):
        yield from near_orders(problem)


def _fastest_order(
    kernels: Kernels,
    params: KernelParams,
    first: KernelTime,
    orders: Iterable[tuple[int, ...]],
) -> HeuristicParams:
    """The params with the fastest of some orders; unchanged if none is faster by more than the
    model's error."""
    best, least = params, first.seconds
    for order in orders:
        found = _in_order(kernels, params, order)
        if found is not None and not kernels.within_model_error(least, found[1].seconds):
            best, least = found[0], found[1].seconds
    return best


def _with_reuse_in_tiles(
    kernels: Kernels, params: KernelParams, first: KernelTime
) -> HeuristicParams:
    """A flat kernel's params with the order of axes in which a tile reuses what it loads of
    broadcast tensors, if that is much faster. It saves time of caches, not of memory."""
    most = seconds_to_beat(kernels.problem, float(first.seconds), GAIN_OF_ORDER)
    if kernels.least_s - kernels.launch_s > most or first.limit == "memory":
        return params
    best: tuple[KernelParams, KernelTime] | None = None
    for order in dict.fromkeys(_orders_with_reuse(kernels.problem)):
        found = _in_order(kernels, params, order)
        if found is None or found[1].seconds > most:
            continue
        if best is None or not kernels.within_model_error(best[1].seconds, found[1].seconds):
            best = found
    return params if best is None else best[0]


def _orders_with_reuse(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Orders with broadcast axes next to the innermost one: for each tensor its innermost broadcast
    axis, then all of them. The innermost axis of the kernel stays, since most tensors are
    contiguous along it."""
    inner = len(problem.axes) - 1
    for stream in problem.streams:
        if stream.is_store or not _has_innermost(stream, inner):
            continue
        side = broadcast_side(problem, stream)
        for places in (side[-1:], side):
            if places:
                yield _with_innermost(problem, places, inner)


def _has_innermost(stream: Stream, inner: int) -> bool:
    """Whether a tensor runs along the innermost axis."""
    return any(term.axis == inner for term in stream.stride_terms)


def _with_innermost(
    problem: Problem, places: tuple[int, ...], inner: int | None = None
) -> tuple[int, ...]:
    """The numbers of all axes, with the axes at ``places`` last in their groups. The axis at
    ``inner`` stays behind them."""
    own = [number for group in problem.order for number in group]
    moved = {number for place, number in enumerate(own) if place in places}
    innermost = None if inner is None else own[inner]
    place_of = {number: (number in moved) + 2 * (number == innermost) for number in own}
    return tuple(
        number for group in problem.order for number in sorted(group, key=place_of.__getitem__)
    )


def _in_order(
    kernels: Kernels, params: KernelParams, order: tuple[int, ...]
) -> tuple[KernelParams, KernelTime] | None:
    """The params with an order of axes, and their time."""
    changed: dict[str, Any] = {"axes": order}
    made = replace(params, **changed)
    time = kernels.time(made)
    return None if time is None else (made, time)
