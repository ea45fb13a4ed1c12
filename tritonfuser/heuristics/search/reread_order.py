"""The order of axes in which programs that load the same run soon after one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..cost.model import KernelTime
from ..cost.sides import sides_beside
from ..params import HeuristicParams, KernelParams, PointwiseParams, TransposeParams
from ..problem import Problem
from ..streams import Stream
from .orders import near_orders
from .warps import Kernels
from .worth import worth_seconds

GAIN = 0.8
"""Share of the time of a flat kernel, with a launch, that another order of its axes has to be
predicted to take at most. H100, 106 orders of flat kernels of random definitions and of models'
steps, with the same innermost axis: the four below this share took 0.88 times as long (geometric
mean), those predicted to take 0.8 to 1.02 times 1.06."""


def with_rereads_near(kernels: Kernels, params: HeuristicParams) -> HeuristicParams:
    """Params with the axes in another order, where caches lose less of what is read again.

    A bias of scores that is the same for all of a batch, ``[heads, rows, columns]``, is read again
    when all heads are done. With the batch innermost the programs of one row follow one another.
    Sines of ``[rows, columns]`` under heads are read once for all heads of a program. Tiles of two
    sides keep them: an order of all axes would lay these along one.
    """
    if not isinstance(params, KernelParams) or getattr(params, "axes", None) != ():
        return params
    if isinstance(params, TransposeParams):
        return params
    first = kernels.time(params)
    if first is None:
        return params
    if isinstance(params, PointwiseParams):
        return _near_in_a_tile(kernels, params, first)
    return _fastest_of(kernels, params, first, _orders_of_rows(kernels, params, first))


def _orders_of_rows(
    kernels: Kernels, params: KernelParams, first: KernelTime
) -> Iterator[tuple[int, ...]]:
    """Orders in which caches may lose less of what other rows read too: a whole tensor, or the rest
    of a sector; or in which less is stored in parts of sectors. Where that makes no difference that
    the model can tell there are none."""
    problem, lost = kernels.problem, kernels.reread_bytes(params)
    if lost:
        most = max(lost, key=lambda stream: lost[stream])
        yield _beside_innermost(problem, sides_beside(problem, most))
    if all(len(group) == 1 for group in problem.order):
        return  # no other orders
    without = first.with_more_bytes(-kernels.sector_refetch_bytes(params), problem.device)
    without = without.without("L2 stores")
    if not kernels.within_model_error(first.seconds, without.seconds):
        yield from near_orders(problem)


def _fastest_of(
    kernels: Kernels,
    params: KernelParams,
    first: KernelTime,
    orders: Iterable[tuple[int, ...]],
) -> HeuristicParams:
    """The params with the axes in the fastest of some orders; as they are where none is faster by
    more than the model errs by."""
    best, least = params, first.seconds
    for order in orders:
        found = _in_order(kernels, params, order)
        if found is not None and not kernels.within_model_error(least, found[1].seconds):
            best, least = found[0], found[1].seconds
    return best


def _near_in_a_tile(kernels: Kernels, params: KernelParams, first: KernelTime) -> HeuristicParams:
    """A flat kernel's params with what programs read again beside it in their tiles, where that is
    much faster. It saves the caches' time, not that of memory."""

    most = worth_seconds(kernels.problem, float(first.seconds), GAIN)
    if kernels.least_s - kernels.launch_s > most or first.limit == "memory":
        return params
    best: tuple[KernelParams, KernelTime] | None = None
    for order in dict.fromkeys(_orders_beside(kernels.problem)):
        found = _in_order(kernels, params, order)
        if found is None or found[1].seconds > most:
            continue
        if best is None or not kernels.within_model_error(best[1].seconds, found[1].seconds):
            best = found
    return params if best is None else best[0]


def _orders_beside(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Orders with the nearest axis, then all axes, that a tensor is broadcast along beside its own
    innermost one. The innermost axis of the kernel stays: most tensors are contiguous along it."""
    inner = len(problem.axes) - 1
    for stream in problem.streams:
        if stream.is_store or not _has_innermost(stream, inner):
            continue
        side = sides_beside(problem, stream)
        for places in (side[-1:], side):
            if places:
                yield _beside_innermost(problem, places, inner)


def _has_innermost(stream: Stream, inner: int) -> bool:
    return any(term.axis == inner for term in stream.stride_terms)


def _beside_innermost(
    problem: Problem, places: tuple[int, ...], inner: int | None = None
) -> tuple[int, ...]:
    """The numbers of the axes with those at ``places`` last in their groups, but for the place
    ``inner``."""
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
    """The params with the axes in an order, and their time."""
    changed: dict[str, Any] = {"axes": order}
    made = replace(params, **changed)
    time = kernels.time(made)
    return None if time is None else (made, time)
