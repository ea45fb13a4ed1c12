"""Segments in, their kernels out: tiled, then written, in 64 bits where 32 do not hold a term."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from ..symbolic.shape_env import sealed
from .emit.emit_context import EmitContext
from .emit.indexing.term_bounds import TermBounds
from .emit.kernel_module import emit
from .kernel_source import KernelSource
from .legality.held_dtypes import refuse_unheld
from .memo import Memo
from .segments.segment import Segment
from .segments.segmented_fusion import SegmentedFusion
from .tile.tiled_segment import TiledSegment, tile_segment, widened


def tile(segmented: SegmentedFusion, segment: Segment) -> TiledSegment | None:
    """A segment on kernel axes.

    None for a segment without a kernel of its own: it has no elements, torch runs it, or the kernel
    of another segment computes it.
    """
    if not segment.params.has_kernel:
        return None
    refuse_unheld(segment)
    return None if segment.launched_by else tile_segment(segmented, segment)


def emit_kernel(
    tiled: TiledSegment | None, context: EmitContext, terms: TermBounds
) -> KernelSource | None:
    """The kernel of a segment on kernel axes, if it has one."""
    return None if tiled is None else emit(tiled, context, terms)


def kernels_of(
    segmented: SegmentedFusion, context: EmitContext, memo: Memo
) -> tuple[KernelSource | None, ...]:
    """The kernel of each segment. Without open sizes none depends on the others."""
    if context.env is not None:
        return _emit_all([tile(segmented, segment) for segment in segmented.segments], context)
    return tuple(_kept(segmented, segment, context, memo) for segment in segmented.segments)


def _kept(
    segmented: SegmentedFusion, segment: Segment, context: EmitContext, memo: Memo
) -> KernelSource | None:
    """The kernel of one segment, kept where it has one."""

    def make() -> KernelSource | None:
        return _emit_all([tile(segmented, segment)], context)[0]

    if not segment.params.has_kernel or segment.launched_by:
        return make()
    key = ("kernel", context, segment, segmented.launched_with(segment))
    kept: KernelSource | None = memo(key, make)
    return kept


def _emit_all(
    tiled: Sequence[TiledSegment | None], context: EmitContext
) -> tuple[KernelSource | None, ...]:
    """All kernels. Each has 64-bit positions where a term of its text may exceed 32 bits.

    That is known when a kernel is written, so drafts are written first. Asking may record guards,
    which texts state as ``tl.assume``: then all kernels are written again.
    """
    env = context.env
    bounds = [TermBounds() for _ in tiled]
    with sealed(env):
        drafts = tuple(map(emit_kernel, tiled, repeat(context), bounds))
    guards = 0 if env is None else len(env.guards)
    wide = [terms.assume_long() for terms in bounds]
    if not any(wide) and (env is None or len(env.guards) == guards):
        return drafts
    with sealed(env):
        return tuple(
            emit_kernel(widened(each) if each and is_wide else each, context, TermBounds())
            for each, is_wide in zip(tiled, wide, strict=True)
        )
