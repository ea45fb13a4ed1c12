"""The compiler on one page: a recorded Fusion in, the sources of its kernels out, stage by stage.

The stages are ``concretize``, the passes on the graph (``graph_passes.py``), the cut into segments
with params (``segment_choice.py``) and the kernels (``emission.py``). ``TRITONFUSER_DUMP`` takes
the names of stages, and prints what comes out of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ..device import DeviceProperties
from ..errors import ParamsError
from ..ir import Fusion, Value
from ..ir_graph import check
from ..options import dump
from ..symbolic.shape_env import ShapeEnv
from .emission import kernels_of
from .emit.emit_context import EmitContext
from .fuse.given.groups import NothingReduced
from .graph_passes import Simplified, checks_bounds, run_graph_passes
from .lowered import Lowered
from .memo import Memo, no_memo
from .passes.concretize import InputSignature, TensorSpec, concretize
from .passes.empty_values import has_empty
from .passes.numbering import names_in_order, with_names
from .refine.alternatives import alternatives
from .run_options import DEFAULT, RunOptions
from .segment_choice import LoweringTarget, segmenter, segments_of
from .segments.segmented_fusion import SegmentedFusion


def lower(
    fusion: Fusion,
    signature: InputSignature,
    device: DeviceProperties,
    options: RunOptions = DEFAULT,
    env: ShapeEnv | None = None,
    memo: Memo = no_memo,
) -> Lowered:
    """Lower a recorded fusion to kernels: all stages in order.

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
    cut = _cut(concrete, LoweringTarget(device, options, misaligned, env), memo)
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
    segmented, checks = lowered.segmented, checks_bounds(device)
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


class _Cut(NamedTuple):
    """A concrete fusion, simplified and cut into segments.

    Attributes
    ----------
    simplified : Simplified
        The fusion before it is cut.
    segmented : SegmentedFusion
        Its segments, with their params.
    origin : str
        Where the schedule comes from, if it is neither the heuristics' nor the given one.
    """

    simplified: Simplified
    segmented: SegmentedFusion
    origin: str


def _cut(fusion: Fusion, target: LoweringTarget, memo: Memo) -> _Cut:
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


def _cut_for(fusion: Fusion, target: LoweringTarget, memo: Memo) -> _Cut:
    schedule, device = target.options.schedule, target.device
    rolled = None if schedule is None else schedule.reduced
    key = ("simplify", fusion, device, rolled)
    simplified = memo(key, lambda: run_graph_passes(fusion, device, rolled))
    return _Cut(simplified, segments_of(simplified, target, memo), target.options.origin)


def alternatives_of(
    fusion: Fusion,
    signature: InputSignature,
    device: DeviceProperties,
    options: RunOptions,
    should_continue: Callable[[], bool],
) -> list[SegmentedFusion]:
    """Segmentations of a recorded fusion, those that are predicted to be fastest first.

    Parameters
    ----------
    fusion, signature, device, options
        As for ``lower``.
    should_continue : callable
        Whether there is time for another segmentation.
    """
    concrete = _concrete(fusion, signature)
    simplified = run_graph_passes(concrete, device, None)
    target = LoweringTarget(device, options, _misaligned(concrete, signature), None)
    make, values = segmenter(simplified.fusion, target), names_in_order(fusion)
    return [
        replace(found, results=simplified.split.rejoined(found.results), values=values)
        for found in alternatives(simplified.fusion, device, make, should_continue)
    ]
