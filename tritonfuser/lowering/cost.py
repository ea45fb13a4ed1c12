"""The predicted time of segments, by the cost model of ``heuristics/cost``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ..heuristics.cost.constants import constants_of
from ..heuristics.cost.model import KernelTime
from ..heuristics.cost.work import element_work
from ..heuristics.params import HeuristicParams
from ..heuristics.problem import ElementWork
from ..heuristics.schedulers import kernel_seconds
from ..symbolic.choices import with_hints
from ..symbolic.sizes import hint
from .legality.finishing import kernel_before
from .problem_sizes import env_of, env_with_work
from .segments.segment import Segment
from .segments.segmented_fusion import SegmentedFusion
from .tile.arrivals import arrivals, why_no_tiles

ERROR = 0.25
"""Relative error of the model for kernels with strided tensors, about: a segmentation has to save
this share of the time for the model to prefer it to another. Of 125 random definitions half are
within 40%."""

LEAST_S = 2e-6
"""If the bytes of all kernels take less time than this, bytes and launches alone decide."""


def segment_time(piece: Segment, params: HeuristicParams | None = None) -> KernelTime | None:
    """The time of a segment's kernel by the model, at the sizes of this run.

    None where torch runs the segment, where nothing runs, and in the interpreter.

    Parameters
    ----------
    params : HeuristicParams, optional
        Other ones than the segment's.
    """
    return _time_by_params(piece)(params or piece.params)


def _time_by_params(piece: Segment) -> Callable[[HeuristicParams], KernelTime | None]:
    """The time of a segment's kernel as a function of its params."""
    if piece.problem is None:
        return lambda params: None
    problem, work = with_hints(env_of(piece.problem), piece.problem), segment_element_work(piece)
    return lambda params: kernel_seconds(problem, params, work)


def kernel_predictors(segmented: SegmentedFusion) -> list[Callable[[HeuristicParams], float]]:
    """For each segment its seconds as a function of its params; 0 for what torch runs."""

    def seconds(piece: Segment) -> Callable[[HeuristicParams], float]:
        time = _time_by_params(piece)
        if piece.problem is not None and piece.problem.on_cpu:
            return lambda params: inf

        def of(params: HeuristicParams) -> float:
            found = time(params)
            return 0.0 if found is None else float(found.seconds)

        return of

    return [seconds(piece) for piece in segmented.segments]


def slowdown_in_last_programs(segments: Sequence[Segment], place: int) -> float:
    """Factor on the time of a segment if the last programs of the kernel before it compute it.

    There is one such program for each counter, with all tiles of the counter. If there are fewer of
    them than multiprocessors, the others are idle. Infinite if the kernel has no counters, as that
    of a library op.
    """
    first, last = kernel_before(segments, place), segments[place]
    if first is None or last.problem is None:
        return 1.0
    if why_no_tiles(segments[first]) or why_no_tiles(last):
        return inf
    meeting, sms = arrivals(segments[first], last), last.problem.device.sm_count
    programs = hint(meeting.counters)
    return min(programs * hint(meeting.tiles), sms) / min(programs, sms)


def moved_bytes(segmented: SegmentedFusion) -> int:
    """Bytes that all segments together read and write in this run."""
    return hint(sum(piece.bytes_read + piece.bytes_written for piece in segmented.segments))


def launch_seconds(segmented: SegmentedFusion) -> float:
    """Seconds before the first kernel begins and after the last one ends; 0 without kernels."""
    devices = [piece.problem.device for piece in segmented.segments if piece.problem is not None]
    return constants_of(devices[0]).launch_s if devices else 0.0


def fusion_seconds(segmented: SegmentedFusion) -> float | None:
    """Seconds of all kernels and one launch, without library ops. None on a CPU."""
    total, segments = launch_seconds(segmented), segmented.segments
    for place, piece in enumerate(segments):
        found = segment_time(piece)
        if found is not None:
            slowdown = slowdown_in_last_programs(segments, place) if piece.finishes else 1.0
            total += slowdown * float(found.seconds)
        elif piece.problem is not None and piece.problem.on_cpu:
            return None
    return total


def segment_element_work(piece: Segment) -> ElementWork:
    """The instructions that a segment's kernel needs for each element of its loop nest, at the
    sizes of this run. None of what torch runs."""
    if piece.problem is None:
        return ElementWork()
    env = env_with_work(piece.problem, piece.work)
    return element_work(*with_hints(env, (piece.work, piece.problem)))
