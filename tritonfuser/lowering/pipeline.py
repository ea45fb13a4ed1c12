"""The compiler on one page: every pass from a recorded Fusion to kernel sources, in order.

A name in quotes is what ``TRITONFUSER_DUMP`` takes to print what comes out of that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..device import DeviceProperties
from ..errors import ParamsError
from ..heuristics.params import HeuristicParams
from ..ir import Fusion, Value
from ..ir_graph import check
from ..options import current, dump, log
from ..symbolic.shape_env import ShapeEnv
from .access.index_dims import assume_index_dims
from .emission import kernels_of
from .emit.emit_context import EmitContext
from .fuse.given.groups import NothingReduced
from .fuse.segmentation import HEURISTIC, Choice, Segmenter, segment_as
from .legality.given_params import are_of, with_params
from .lowered import Lowered
from .memo import Memo, no_memo
from .passes.arithmetic.common_sums import join_common_sums
from .passes.arithmetic.guarded_maxima import sum_before_guards
from .passes.arithmetic.reduced_precision import reduce_precision
from .passes.arithmetic.rounded_products import round_products
from .passes.arithmetic.strength_reduction import reduce_strength
from .passes.complex_split import ComplexSplit
from .passes.concatenations.index_choices import concatenate_choices
from .passes.concatenations.merged_slices import merge_slices
from .passes.concatenations.narrow_sums import narrow_padded_sums
from .passes.concatenations.padded_sums import concatenate_padded
from .passes.concatenations.slice_functions import merge_functions_of_slices
from .passes.concretize import InputSignature, TensorSpec, concretize
from .passes.constant_operands import expand_constants
from .passes.device_requirements import check_device
from .passes.empty_values import fill_empty, has_empty
from .passes.mark_softmax import mark_softmax
from .passes.memory_orders import keep_memory_orders, reduce_in_memory_order
from .passes.numbering import names_in_order, with_names
from .passes.positional_values import shrink_positional
from .passes.random_seeds import Seeds, add_seeds
from .passes.simplify import simplify
from .passes.split_complex import split_complex
from .passes.unrolled_reductions import Unrolled, is_short, unroll_reductions
from .refine.alternatives import alternatives
from .refine.search import refined
from .refine.short_reductions import with_short_unrolled
from .run_options import DEFAULT, RunOptions
from .segments.segmented_fusion import SegmentedFusion


@dataclass(frozen=True, slots=True)
class Target:
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


def lower(
    fusion: Fusion,
    signature: InputSignature,
    device: DeviceProperties,
    options: RunOptions = DEFAULT,
    env: ShapeEnv | None = None,
    memo: Memo = no_memo,
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
    memo : Memo
        Memoizes what lowerings under other schedules have in common, for one setting of the
        environment variables.

    Raises
    ------
    InputShapeError
        An op does not fit these sizes.
    SchedulingError
        A matrix product cannot be a kernel, and ``options.products`` excludes torch.
    ParamsError
        ``options.params`` has not one entry for each segment, or an illegal one; or
        ``options.schedule`` has an illegal field. A fusion with tensors of no elements, or with
        reductions of one, ignores a schedule that does not fit it.
    """
    if options.schedule is not None:
        fusion = with_names(fusion, options.schedule.values)
    memo = memo if env is None else no_memo  # passes record guards in an env
    concrete = memo(("concretize", fusion, signature), lambda: _concrete(fusion, signature))
    misaligned = _misaligned(concrete, signature)
    cut = _cut(concrete, Target(device, options, misaligned, env), memo)
    if env is not None and (options.params is not None or device.is_cpu):
        # Params that a caller gives, and kernels of the interpreter, are for all sizes.
        env.keep_schedule()
    segmented = replace(cut.segmented, values=names_in_order(fusion))
    seeds, parts = cut.simplified.seeds, cut.simplified.split.parts
    made = Lowered(segmented, (), seeds, parts, env, cut.origin, misaligned)
    made = with_kernels(made, device, memo)
    for source in made.sources:
        if source is not None:
            dump("kernel", source.text)
    return made


def with_kernels(lowered: Lowered, device: DeviceProperties, memo: Memo = no_memo) -> Lowered:
    """A lowered fusion with the kernels of its segments."""
    segmented, checks = lowered.segmented, _checks_bounds(device)
    context = EmitContext(segmented.fusion, lowered.misaligned, lowered.seeds, lowered.env, checks)
    return replace(lowered, sources=kernels_of(segmented, context, memo))


def _concrete(fusion: Fusion, signature: InputSignature) -> Fusion:
    found = check(concretize(fusion, signature))
    dump("concretize", found)
    return found


def _misaligned(fusion: Fusion, signature: InputSignature) -> frozenset[Value]:
    """The inputs that do not start at a multiple of 16 bytes."""
    pairs = zip(fusion.inputs, signature, strict=True)
    return frozenset(v for v, spec in pairs if isinstance(spec, TensorSpec) and not spec.aligned)


# --- concrete fusion to segments -----------------------------------------------------------------


class _Cut(NamedTuple):
    """A concrete fusion, simplified and cut into segments.

    Attributes
    ----------
    simplified : _Simplified
        The fusion before it is cut.
    segmented : SegmentedFusion
        Its segments, with their params.
    origin : str
        Where the schedule comes from, if it is neither the heuristics' nor the given one.
    """

    simplified: _Simplified
    segmented: SegmentedFusion
    origin: str


def _cut(fusion: Fusion, target: Target, memo: Memo) -> _Cut:
    """Simplify and cut a concrete fusion.

    A schedule made at other sizes may name values that the fusion does not compute at these. It is
    ignored then, and heuristics choose one.
    """
    try:
        return _cut_for(fusion, target, memo)
    except NothingReduced as error:
        reason = str(error)
    except ParamsError as error:
        if target.options.schedule is None or not has_empty(fusion):
            raise
        reason = f"tensors have no elements: {error.message}"
    options = replace(target.options, schedule=None, origin=f"chosen here, since {reason}")
    return _cut_for(fusion, replace(target, options=options), memo)


def _cut_for(fusion: Fusion, target: Target, memo: Memo) -> _Cut:
    schedule, device = target.options.schedule, target.device
    rolled = None if schedule is None else schedule.reduced
    key = ("simplify", fusion, device, rolled)
    simplified = memo(key, lambda: _simplified(fusion, device, rolled))
    return _Cut(simplified, _segmented(simplified, target, memo), target.options.origin)


# --- simplify ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Simplified:
    """A concrete fusion after the passes up to ``simplify``.

    Attributes
    ----------
    fusion : Fusion
        The fusion to cut into segments.
    rolled : Fusion
        The fusion before reductions of a few elements were unrolled into pointwise ops.
    split : ComplexSplit
        The pairs of reals that complex values became.
    seeds : Seeds
        The hidden inputs of random ops.
    """

    fusion: Fusion
    rolled: Fusion
    split: ComplexSplit
    seeds: Seeds


def _simplified(
    fusion: Fusion, device: DeviceProperties, kept: frozenset[str] | None
) -> _Simplified:
    """The passes between concretize and segment.

    Parameters
    ----------
    kept : frozenset of str or None
        The reductions that kernels of a given schedule compute: others are unrolled. None where
        rules decide.
    """
    fusion, split = before_seeds(fusion)
    fusion, seeds = add_seeds(fusion)
    fusion = expand_constants(fusion)
    rolled = merge_slices(concatenate_padded(concatenate_choices(fusion)))
    rolled = merge_functions_of_slices(rolled)
    rolled = shrink_positional(narrow_padded_sums(rolled))
    which = Unrolled.CHEAP if kept is None else Unrolled.SHORT
    fusion = _unrolled(rolled, which, kept or frozenset())
    check_device(fusion, device)
    dump("simplify", fusion)
    if _checks_bounds(device):
        assume_index_dims(fusion)
    return _Simplified(fusion, rolled, split, seeds)


def before_seeds(fusion: Fusion) -> tuple[Fusion, ComplexSplit]:
    """The passes up to the one that numbers random ops: of those that are left, in their order."""
    fusion = join_common_sums(simplify(fusion))
    fusion = reduce_in_memory_order(keep_memory_orders(fusion))
    split = split_complex(fusion)
    fusion = fusion if split.fusion is fusion else simplify(split.fusion)
    return mark_softmax(sum_before_guards(fill_empty(fusion))), split


def _checks_bounds(device: DeviceProperties) -> bool:
    """Whether kernels assert indices read at run time. On a CPU the interpreter checks them."""
    return "bounds" in current().check and not device.is_cpu


def _unrolled(fusion: Fusion, which: Unrolled, kept: Container[str] = ()) -> Fusion:
    """Unroll reductions of a few elements, except those named in ``kept``; then cheapen ops."""
    cheaper = reduce_precision(reduce_strength(unroll_reductions(fusion, which, kept)))
    return check(round_products(cheaper))


# --- segment -------------------------------------------------------------------------------------


def _segmented(simplified: _Simplified, target: Target, memo: Memo) -> SegmentedFusion:
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


def _chosen(simplified: _Simplified, target: Target) -> SegmentedFusion:
    """The segments as chosen. With open sizes no reduction is unrolled for its predicted time."""
    segmented = choose(simplified.fusion, target)
    if target.env is not None:
        return segmented
    return _with_short_unrolled(segmented, simplified.rolled, target)


def _chosen_for_params(
    simplified: _Simplified, target: Target, params: Sequence[HeuristicParams]
) -> SegmentedFusion:
    """The segments as chosen, among those with and without unrolled reductions.

    The params may be of a kernel with open sizes, in which reductions are not unrolled.
    """
    segmented = _chosen(simplified, target)
    if are_of(params, segmented):
        return segmented
    rolled = simplified.rolled
    every = {out.name for node in rolled.nodes for out in node.outs}
    plain = choose(_unrolled(rolled, Unrolled.CHEAP, every), target)
    return plain if are_of(params, plain) else segmented


def _with_short_unrolled(
    segmented: SegmentedFusion, rolled: Fusion, target: Target
) -> SegmentedFusion:
    """The segments; with all short reductions unrolled where that is faster."""
    short = {node.out.name for node in rolled.nodes if is_short(node)}

    def ways() -> tuple[SegmentedFusion, ...]:
        make = _segmenter(_unrolled(rolled, Unrolled.SHORT), target)
        return make(HEURISTIC), make(Choice(materialized=()))

    return with_short_unrolled(segmented, short, target.device, ways)


def choose(fusion: Fusion, target: Target) -> SegmentedFusion:
    """The segments of a simplified fusion, as heuristics choose.

    With open sizes the search of ``refine`` is skipped: its result may not suit other sizes.
    """
    make = _segmenter(fusion, target)
    return refined(fusion, target.device, make) if target.env is None else make(HEURISTIC)


def alternatives_of(
    fusion: Fusion,
    signature: InputSignature,
    device: DeviceProperties,
    options: RunOptions,
    goes_on: Callable[[], bool],
) -> list[SegmentedFusion]:
    """Segmentations of a recorded fusion, those that are predicted to be fastest first.

    Parameters
    ----------
    fusion, signature, device, options
        As for ``lower``.
    goes_on : callable
        Whether there is time for another segmentation.
    """
    concrete = _concrete(fusion, signature)
    simplified = _simplified(concrete, device, None)
    target = Target(device, options, _misaligned(concrete, signature), None)
    make, values = _segmenter(simplified.fusion, target), names_in_order(fusion)
    return [
        replace(found, results=simplified.split.rejoined(found.results), values=values)
        for found in alternatives(simplified.fusion, device, make, goes_on)
    ]


def _segmenter(fusion: Fusion, target: Target) -> Segmenter:
    options = target.options
    return Segmenter(fusion, target.device, options.two_steps, options.products, target.misaligned)
