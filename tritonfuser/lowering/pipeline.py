"""The compiler on one page: every pass from a recorded Fusion to kernel sources, in order.

A name in quotes is what ``TRITONFUSER_DUMP`` takes to print what comes out of that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace

from ..device import DeviceProperties
from ..errors import ParamsError
from ..ir import Fusion, Value
from ..ir_graph import check
from ..options import current, dump, log
from ..symbolic.shape_env import ShapeEnv, sealed
from .access.index_dims import assume_index_dims
from .emit.kernel_module import emit
from .emit.term_bounds import TermBounds
from .fuse.segmentation import HEURISTIC, Segmenter, segment_as
from .kernel_source import KernelSource
from .legality.given_params import are_of, with_params
from .legality.held_dtypes import refuse_unheld
from .passes.concretize import InputSignature, TensorSpec, concretize
from .passes.device_requirements import check_device
from .passes.empty_values import fill_empty, has_empty
from .passes.index_choices import concatenate_choices
from .passes.mark_softmax import mark_softmax
from .passes.memory_orders import keep_memory_orders
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
from .segments import Segment, SegmentedFusion
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
        The inputs, behind the recorded ones, that a run draws from torch's generator.
    parts : tuple of Part
        The inputs that a run makes of the real and imaginary parts of complex inputs.
    env : ShapeEnv or None
        The guards on sizes that vary. None where no size does.
    origin : str
        Where the schedule comes from, in words; empty for that of the heuristics or of a caller.
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
) -> Lowered:
    """A recorded fusion as kernels, by all passes in order.

    Parameters
    ----------
    fusion : Fusion
        As recorded.
    signature : InputSignature
        The inputs' dtypes, sizes, strides and alignment.
    device : DeviceProperties
        The device to compile for.
    options : RunOptions
        ``schedule``, or ``params``, ``products`` and ``two_steps``. ``device`` is what the rest of
        it asks for.
    env : ShapeEnv, optional
        Of the sizes in the signature that vary.

    Raises
    ------
    InputShapeError
        An op does not fit these sizes.
    SchedulingError
        A matrix product that torch may not run cannot be a kernel.
    ParamsError
        The params are not one a segment, or a segment may not have its params. A field of the
        schedule cannot be, and all tensors have elements.
    """
    if options.schedule is not None:
        fusion = with_names(fusion, options.schedule.values)
    concrete = check(concretize(fusion, signature))
    dump("concretize", concrete)
    misaligned = _misaligned(concrete, signature)
    try:
        simplified = _simplified(concrete, device, options)
        segmented = _segmented(simplified, device, options, misaligned, env)
    except ParamsError as error:
        if options.schedule is None or not has_empty(concrete):
            raise
        options = _without_schedule(options, error)
        simplified = _simplified(concrete, device, options)
        segmented = _segmented(simplified, device, options, misaligned, env)
    if env is not None and (options.params is not None or device.is_cpu):
        # Given params are chosen for all sizes; the interpreter is not there for its speed.
        env.keep_schedule()
    segmented = replace(segmented, values=names_in_order(fusion))
    tiled = tuple(tile(segmented, piece) for piece in segmented.segments)

    def emitted(piece: TiledSegment | None, terms: TermBounds) -> KernelSource | None:
        checks = _checks_bounds(device)
        return emit_kernel(
            segmented.fusion, piece, misaligned, simplified.seeds, env, checks, terms
        )

    sources = _emit_all(tiled, env, emitted)
    for source in sources:
        if source is not None:
            dump("kernel", source.text)
    return Lowered(
        segmented, sources, simplified.seeds, simplified.split.parts, env, options.origin
    )


def _without_schedule(options: RunOptions, error: ParamsError) -> RunOptions:
    """The options of a run that chooses a schedule, since the given one does not fit.

    What has no elements is not computed, so the schedule of other sizes names values that are not
    there. The results are known all the same.
    """
    why = f"chosen here, since tensors have no elements: {error.message}"
    return replace(options, schedule=None, origin=why)


@dataclass(frozen=True)
class _Simplified:
    """A concrete fusion with less to compute, as segments are made of it.

    Attributes
    ----------
    fusion : Fusion
        What is cut into segments.
    rolled : Fusion
        The same before reductions of a few elements were unrolled into pointwise ops.
    split : Split
        The pairs of reals that complex values became.
    seeds : Seeds
        The hidden inputs of random ops.
    """

    fusion: Fusion
    rolled: Fusion
    split: Split
    seeds: Seeds


def _simplified(fusion: Fusion, device: DeviceProperties, options: RunOptions) -> _Simplified:
    """The passes between concretize and segment."""
    fusion = keep_memory_orders(simplify(fusion))
    split = split_complex(fusion)
    fusion = fusion if split.fusion is fusion else simplify(split.fusion)
    fusion, seeds = add_seeds(mark_softmax(fill_empty(fusion)))
    rolled = merge_slices(concatenate_padded(concatenate_choices(fusion)))
    fusion = _unrolled(rolled, () if options.schedule is None else options.schedule.reduced)
    check_device(fusion, device)
    dump("simplify", fusion)
    if _checks_bounds(device):
        assume_index_dims(fusion)
    return _Simplified(fusion, rolled, split, seeds)


def _checks_bounds(device: DeviceProperties) -> bool:
    """Whether kernels assert indices that are read at run time: on a CPU the interpreter does."""
    return "bounds" in current().check and not device.is_cpu


def _unrolled(fusion: Fusion, kept: Container[str]) -> Fusion:
    """Reductions of a few elements unrolled, but those named in ``kept``; then cheaper ops."""
    return check(reduce_precision(reduce_strength(unroll_reductions(fusion, kept))))


def _segmented(
    simplified: _Simplified,
    device: DeviceProperties,
    options: RunOptions,
    misaligned: frozenset[Value],
    env: ShapeEnv | None,
) -> SegmentedFusion:
    """The segments with their params: as heuristics choose, or of the given schedule or params."""
    if options.schedule is not None:
        segmented = segment_as(simplified.fusion, device, options.schedule, misaligned)
    else:
        segmented = choose(simplified.fusion, device, options, misaligned, env)
        if options.params is not None and not are_of(options.params, segmented):
            # Params of a kernel with open sizes, which does not unroll reductions.
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
    """A simplified fusion as kernels. What would hold for one size alone is not tried."""
    make = Segmenter(fusion, device, options.two_steps, options.products, misaligned)
    return refined(fusion, device, make) if env is None else make(HEURISTIC)


def _misaligned(fusion: Fusion, signature: InputSignature) -> frozenset[Value]:
    """The inputs that do not start at a multiple of 16 bytes."""
    pairs = zip(fusion.inputs, signature, strict=True)
    return frozenset(v for v, spec in pairs if isinstance(spec, TensorSpec) and not spec.aligned)


def tile(segmented: SegmentedFusion, piece: Segment) -> TiledSegment | None:
    """A segment on kernel axes. None without a kernel of its own: it has no elements, or torch runs
    it, or the kernel of another segment computes it."""
    if not piece.params.has_kernel:
        return None
    refuse_unheld(piece)
    return None if piece.launched_by else tile_segment(segmented, piece)


def emit_kernel(
    fusion: Fusion,
    tiled: TiledSegment | None,
    misaligned: frozenset[Value],
    seeds: Seeds,
    env: ShapeEnv | None,
    check_bounds: bool = False,
    terms: TermBounds | None = None,
) -> KernelSource | None:
    """The kernel of a segment on kernel axes, if it has one."""
    if tiled is None:
        return None
    return emit(fusion, tiled, misaligned, seeds, env, check_bounds, terms)


def _emit_all(
    tiled: Iterable[TiledSegment | None],
    env: ShapeEnv | None,
    emitted: Callable[[TiledSegment | None, TermBounds], KernelSource | None],
) -> tuple[KernelSource | None, ...]:
    """All kernels, with positions of 64 bits where a term of a text needs them."""
    pieces = [(piece, TermBounds()) for piece in tiled]
    with sealed(env):
        drafts = tuple(emitted(piece, terms) for piece, terms in pieces)
    before = 0 if env is None else len(env.guards)
    wide = [terms.assume_long() for _, terms in pieces]
    if not any(wide) and (env is None or len(env.guards) == before):
        return drafts
    with sealed(env):  # again, since the texts state what all guards say
        return tuple(
            emitted(widened(piece) if piece and needs_64 else piece, TermBounds())
            for (piece, _), needs_64 in zip(pieces, wide, strict=True)
        )
