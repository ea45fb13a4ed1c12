"""The compiler on one page: every pass from a recorded Fusion to kernel sources, in order.

A name in quotes is what ``TRITONFUSER_DUMP`` takes to print what comes out of that pass.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

from ..device import DeviceProperties
from ..errors import ParamsError
from ..ir import Fusion, Value
from ..ir_graph import check
from ..options import current, dump, log
from ..symbolic.shape_env import ShapeEnv, sealed
from .access.index_dims import assume_index_dims
from .emit.emit_context import EmitContext
from .emit.indexing.term_bounds import TermBounds
from .emit.kernel_module import emit
from .fuse.segmentation import HEURISTIC, Segmenter, segment_as
from .keeping import Keep, anew
from .kernel_source import KernelSource
from .legality.given_params import are_of, with_params
from .legality.held_dtypes import refuse_unheld
from .passes.concretize import InputSignature, TensorSpec, concretize
from .passes.device_requirements import check_device
from .passes.empty_values import fill_empty, has_empty
from .passes.index_choices import concatenate_choices
from .passes.mark_softmax import mark_softmax
from .passes.memory_orders import keep_memory_orders, reduce_in_memory_order
from .passes.merged_slices import merge_slices
from .passes.numbering import names_in_order, with_names
from .passes.padded_sums import concatenate_padded
from .passes.random_seeds import Seeds, add_seeds
from .passes.reduced_precision import reduce_precision
from .passes.simplify import simplify
from .passes.split_complex import Part, Split, split_complex
from .passes.strength_reduction import reduce_strength
from .passes.unrolled_reductions import unroll_reductions
from .refine.search import refined
from .run_options import DEFAULT, RunOptions
from .segments.segment import Segment
from .segments.segmented_fusion import SegmentedFusion
from .tile.tiled_segment import TiledSegment, tile_segment, widened


@dataclass(frozen=True)
class Lowered:
    """A fusion at given sizes, as kernels.

    Attributes
    ----------
    segmented : SegmentedFusion
        The fusion cut into segments.
    sources : tuple of KernelSource or None
        The kernel of each segment. None where there is nothing to launch.
    seeds : Seeds
        Hidden inputs after the recorded ones: seeds that a run draws from torch's generator.
    parts : tuple of Part
        Hidden inputs that a run makes of complex inputs: their real and imaginary parts.
    env : ShapeEnv or None
        The sizes that vary and the guards on them. None where no size varies.
    origin : str
        Where the schedule comes from, in words. Empty where heuristics or the caller chose it.
    """

    segmented: SegmentedFusion
    sources: tuple[KernelSource | None, ...]
    seeds: Seeds = ()
    parts: tuple[Part, ...] = ()
    env: ShapeEnv | None = None
    origin: str = ""


def lower(
    fusion: Fusion,
    signature: InputSignature,
    device: DeviceProperties,
    options: RunOptions = DEFAULT,
    env: ShapeEnv | None = None,
    keep: Keep = anew,
) -> Lowered:
    """Lower a recorded fusion to kernels: all passes in order.

    Parameters
    ----------
    fusion : Fusion
        The fusion as recorded.
    signature : InputSignature
        The inputs' dtypes, sizes, strides and alignment.
    device : DeviceProperties
        The device to compile for.
    options : RunOptions
        ``schedule``, ``params``, ``products`` and ``two_steps`` are read. The device is ``device``,
        whatever the options say.
    env : ShapeEnv, optional
        The env of the sizes in the signature. None where all are ints.
    keep : Keep
        Keeps what lowerings under other schedules have in common, for one setting of the
        environment variables.

    Raises
    ------
    InputShapeError
        An op does not fit these sizes.
    SchedulingError
        A matrix product cannot be a kernel, and ``options.products`` excludes torch.
    ParamsError
        ``options.params`` has not one entry for each segment, or an illegal one; or
        ``options.schedule`` has an illegal field. A fusion with tensors of no elements ignores a
        schedule that does not fit it.
    """
    if options.schedule is not None:
        fusion = with_names(fusion, options.schedule.values)
    keep = keep if env is None else anew  # passes record guards in an env
    concrete = keep(("concretize", fusion, signature), lambda: _concrete(fusion, signature))
    misaligned = _misaligned(concrete, signature)
    try:
        simplified, segmented = _cut(concrete, device, options, misaligned, env, keep)
    except ParamsError as error:
        if options.schedule is None or not has_empty(concrete):
            raise
        options = _without_schedule(options, error)
        simplified, segmented = _cut(concrete, device, options, misaligned, env, keep)
    if env is not None and (options.params is not None or device.is_cpu):
        # Params that a caller gives, and kernels of the interpreter, are for all sizes.
        env.keep_schedule()
    segmented = replace(segmented, values=names_in_order(fusion))
    seeds, parts = simplified.seeds, simplified.split.parts
    checks = _checks_bounds(device)
    context = EmitContext(segmented.fusion, misaligned, seeds, env, checks)
    sources = _sources(segmented, context, keep)
    for source in sources:
        if source is not None:
            dump("kernel", source.text)
    return Lowered(segmented, sources, seeds, parts, env, options.origin)


def _concrete(fusion: Fusion, signature: InputSignature) -> Fusion:
    found = check(concretize(fusion, signature))
    dump("concretize", found)
    return found


def _cut(
    fusion: Fusion,
    device: DeviceProperties,
    options: RunOptions,
    misaligned: frozenset[Value],
    env: ShapeEnv | None,
    keep: Keep,
) -> tuple[_Simplified, SegmentedFusion]:
    """A concrete fusion, simplified and cut into segments."""
    rolled = frozenset() if options.schedule is None else options.schedule.reduced
    key = ("simplify", fusion, device, rolled)
    simplified = keep(key, lambda: _simplified(fusion, device, rolled))
    return simplified, _segmented(simplified, device, options, misaligned, env, keep)


def _without_schedule(options: RunOptions, error: ParamsError) -> RunOptions:
    """The options without the given schedule, so that heuristics choose one.

    Tensors without elements are not computed. A schedule made at other sizes may name values that
    the fusion does not have at these.
    """
    why = f"chosen here, since tensors have no elements: {error.message}"
    return replace(options, schedule=None, origin=why)


@dataclass(frozen=True)
class _Simplified:
    """A concrete fusion after the passes up to ``simplify``.

    Attributes
    ----------
    fusion : Fusion
        The fusion to cut into segments.
    rolled : Fusion
        The fusion before reductions of a few elements were unrolled into pointwise ops.
    split : Split
        The pairs of reals that complex values became.
    seeds : Seeds
        The hidden inputs of random ops.
    """

    fusion: Fusion
    rolled: Fusion
    split: Split
    seeds: Seeds


def _simplified(fusion: Fusion, device: DeviceProperties, kept: Container[str]) -> _Simplified:
    """The passes between concretize and segment. Reductions named in ``kept`` are not unrolled."""
    fusion = reduce_in_memory_order(keep_memory_orders(simplify(fusion)))
    split = split_complex(fusion)
    fusion = fusion if split.fusion is fusion else simplify(split.fusion)
    fusion, seeds = add_seeds(mark_softmax(fill_empty(fusion)))
    rolled = merge_slices(concatenate_padded(concatenate_choices(fusion)))
    fusion = _unrolled(rolled, kept)
    check_device(fusion, device)
    dump("simplify", fusion)
    if _checks_bounds(device):
        assume_index_dims(fusion)
    return _Simplified(fusion, rolled, split, seeds)


def _checks_bounds(device: DeviceProperties) -> bool:
    """Whether kernels assert indices read at run time. On a CPU the interpreter checks them."""
    return "bounds" in current().check and not device.is_cpu


def _unrolled(fusion: Fusion, kept: Container[str]) -> Fusion:
    """Unroll reductions of a few elements, except those named in ``kept``; then cheapen ops."""
    return check(reduce_precision(reduce_strength(unroll_reductions(fusion, kept))))


def _segmented(
    simplified: _Simplified,
    device: DeviceProperties,
    options: RunOptions,
    misaligned: frozenset[Value],
    env: ShapeEnv | None,
    keep: Keep,
) -> SegmentedFusion:
    """The segments with params: of the given schedule, with the given params, or as chosen."""
    if options.schedule is not None:
        segmented = segment_as(simplified.fusion, device, options.schedule, misaligned, keep)
    else:
        segmented = choose(simplified.fusion, device, options, misaligned, env)
        if options.params is not None and not are_of(options.params, segmented):
            # The params may be of a kernel with open sizes, in which reductions are not unrolled.
            rolled = simplified.rolled
            plain = _unrolled(rolled, {out.name for node in rolled.nodes for out in node.outs})
            other = choose(plain, device, options, misaligned, env)
            segmented = other if are_of(options.params, other) else segmented
    segmented = replace(segmented, results=simplified.split.rejoined(segmented.results))
    if options.params is not None:
        segmented = with_params(segmented, options.params)
    check(segmented.fusion)
    dump("segment", segmented)
    log("segment", segmented.summary())
    dump("params", "\n".join(str(s.params) for s in segmented.segments))
    return segmented


def choose(
    fusion: Fusion,
    device: DeviceProperties,
    options: RunOptions,
    misaligned: frozenset[Value],
    env: ShapeEnv | None,
) -> SegmentedFusion:
    """The segments of a simplified fusion, as heuristics choose.

    With open sizes the search of ``refine`` is skipped: its result may not suit other sizes.
    """
    make = Segmenter(fusion, device, options.two_steps, options.products, misaligned)
    return refined(fusion, device, make) if env is None else make(HEURISTIC)


def _misaligned(fusion: Fusion, signature: InputSignature) -> frozenset[Value]:
    """The inputs that do not start at a multiple of 16 bytes."""
    pairs = zip(fusion.inputs, signature, strict=True)
    return frozenset(v for v, spec in pairs if isinstance(spec, TensorSpec) and not spec.aligned)


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


def _sources(
    segmented: SegmentedFusion, context: EmitContext, keep: Keep
) -> tuple[KernelSource | None, ...]:
    """The kernel of each segment. Without open sizes none depends on the others."""
    if context.env is not None:
        return _emit_all([tile(segmented, segment) for segment in segmented.segments], context)

    def source(segment: Segment) -> KernelSource | None:
        made: KernelSource | None = _emit_all([tile(segmented, segment)], context)[0]
        return made

    return tuple(
        keep(("kernel", context, each, segmented.launched_with(each)), partial(source, each))
        if each.params.has_kernel and not each.launched_by
        else source(each)
        for each in segmented.segments
    )


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
