"""``FlatTensor``: the facts of a tensor of a flat kernel that are the same under any params."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from ....device import SECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..memory.footprint import TensorStrides, strides_of
from ..memory.gathered import Gathered
from ..memory.refetched import overfetch_ratio

_axis = attrgetter("axis")


class FlatTensor(NamedTuple):
    """The facts of a tensor that no params change.

    Attributes
    ----------
    stream : Stream
        The tensor.
    times : float
        Number of tensors with the same facts, which are counted together.
    stride_terms : TensorStrides
        Its stride terms.
    repeats : float
        Adjacent positions that have the same element, and share one load of it.
    axes : frozenset of int
        The axes that it runs along.
    fresh : float
        Share of its bytes that no earlier load of the kernel has brought into the L1 cache.
    distance_bound : float
        Upper bound of the reuse distance of its sectors: see ``PartialSector``.
    overfetch : float
        Bytes that are fetched and never used, for each byte that is used.
    gathered : Gathered or None
        Its windows, if it is read at indices of another tensor.
    shared : bool
        Whether several positions load the same element.
    """

    stream: Stream
    times: float
    stride_terms: TensorStrides
    repeats: float
    axes: frozenset[int]
    fresh: float
    distance_bound: float
    overfetch: float
    gathered: Gathered | None
    shared: bool


def flat_tensor(problem: Problem, stream: Stream, times: int) -> FlatTensor:
    """The facts of a tensor, of which the problem has so many."""
    strides, is_gathered = strides_of(stream), bool(stream.held_bytes)
    whole_bytes = problem.parallel * stream.item_bytes
    return FlatTensor(
        stream,
        times * stream.accessed_share,
        strides,
        _repeats(problem, stream),
        strides.axes,
        stream.fresh_share,
        stream.total_bytes * SECTOR_BYTES / stream.item_bytes,
        overfetch_ratio(problem, stream, strides) if is_gathered else 0.0,
        Gathered(problem, stream, times) if is_gathered else None,
        not (stream.is_store or is_gathered) and stream.total_bytes < whole_bytes,
    )


def _repeats(problem: Problem, stream: Stream) -> float:
    """Adjacent positions of a one-sided tile that have the same element: a power of two."""
    if problem.across or not stream.stride_terms:
        return 1.0
    inner = max(stream.stride_terms, key=_axis)
    same = inner.div
    for extent in problem.axes[inner.axis + 1 :]:
        same *= extent
    return float(same & -same) if same > 1 else 1.0
