"""A simplified fusion in, its segments with params out: as given by the caller, or as chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..device import DeviceProperties
from ..heuristics.params import HeuristicParams
from ..ir import Fusion, Value
from ..ir_graph import check
from ..options import dump, log
from ..symbolic.shape_env import ShapeEnv
from .fuse.segmentation import HEURISTIC, Choice, Segmenter, segment_as
from .graph_passes import Simplified, unrolled
from .legality.given_params import are_of, with_params
from .memo import Memo
from .passes.unrolled_reductions import Unrolled, is_short
from .refine.search import refined
from .refine.short_reductions import with_short_unrolled
from .run_options import RunOptions
from .segments.segmented_fusion import SegmentedFusion


@dataclass(frozen=True, slots=True)
class LoweringTarget:
    """What the segments of a concrete fusion are chosen for.

    Attributes
    ----------
    device : DeviceProperties
        The device to compile for.
    options : RunOptions
        What the run asks for.
    misaligned : frozenset of Value
        The inputs that do not start at a multiple of 16 bytes.
    env : ShapeEnv or None
        The sizes that vary. None where none does.
    """

    device: DeviceProperties
    options: RunOptions
    misaligned: frozenset[Value]
    env: ShapeEnv | None


def segments_of(simplified: Simplified, target: LoweringTarget, memo: Memo) -> SegmentedFusion:
    """The segments with params: of the given schedule, with the given params, or as chosen."""
    options = target.options
    if options.schedule is not None:
        given, misaligned = options.schedule, target.misaligned
        segmented = segment_as(simplified.fusion, target.device, given, misaligned, memo)
    elif options.params is not None:
        segmented = _chosen_for_params(simplified, target, options.params)
    else:
        segmented = _chosen(simplified, target)
    segmented = replace(segmented, results=simplified.split.rejoined(segmented.results))
    if options.params is not None:
        segmented = with_params(segmented, options.params)
    check(segmented.fusion)
    dump("segment", segmented)
    log("segment", segmented.summary())
    dump("params", "\n".join(str(s.params) for s in segmented.segments))
    return segmented


def _chosen(simplified: Simplified, target: LoweringTarget) -> SegmentedFusion:
    """The segments as chosen. With open sizes no reduction is unrolled for its predicted time."""
    segmented = choose(simplified.fusion, target)
    if target.env is not None:
        return segmented
    return _with_short_unrolled(segmented, simplified.rolled, target)


def _chosen_for_params(
    simplified: Simplified, target: LoweringTarget, params: Sequence[HeuristicParams]
) -> SegmentedFusion:
    """The segments as chosen, among those with and without unrolled reductions.

    The params may be of a kernel with open sizes, in which reductions are not unrolled.
    """
    segmented = _chosen(simplified, target)
    if are_of(params, segmented):
        return segmented
    rolled = simplified.rolled
    every = {out.name for node in rolled.nodes for out in node.outs}
    plain = choose(unrolled(rolled, Unrolled.CHEAP, every), target)
    return plain if are_of(params, plain) else segmented


def _with_short_unrolled(
    segmented: SegmentedFusion, rolled: Fusion, target: LoweringTarget
) -> SegmentedFusion:
    """The segments; with all short reductions unrolled where that is faster."""
    short = {node.out.name for node in rolled.nodes if is_short(node)}

    def ways() -> tuple[SegmentedFusion, ...]:
        make = segmenter(unrolled(rolled, Unrolled.SHORT), target)
        return make(HEURISTIC), make(Choice(materialized=()))

    return with_short_unrolled(segmented, short, target.device, ways)


def choose(fusion: Fusion, target: LoweringTarget) -> SegmentedFusion:
    """The segments of a simplified fusion, as heuristics choose.

    With open sizes the search of ``refine`` is skipped: its result may not suit other sizes.
    """
    make = segmenter(fusion, target)
    return refined(fusion, target.device, make) if target.env is None else make(HEURISTIC)


def segmenter(fusion: Fusion, target: LoweringTarget) -> Segmenter:
    """Makes the segments of a simplified fusion by any ``Choice``."""
    options = target.options
    return Segmenter(fusion, target.device, options.two_steps, options.products, target.misaligned)
