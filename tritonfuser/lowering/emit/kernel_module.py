"""``emit``: a tiled segment in, its kernel out, as text with all that a launch needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..kernel_source import (
    InPlace,
    KernelSource,
)
from ..register_room import max_registers, register_limits, register_room
from ..segments.segment import Segment
from ..tile.tiled_segment import TiledSegment
from ..tile.unvectorized import unvectorized
from .bodies import body_of
from .common_subexpressions import without_redundancy
from .emit_context import EmitContext
from .in_place import in_place, launched_in_place
from .indexing.term_bounds import TermBounds
from .kernel_arguments import KernelArguments, kernel_arguments, size_assumptions
from .kernel_writers import KernelFacts
from .launch_text import grid_of
from .line_passes import used_names
from .lines import Line
from .module_text import KernelContent, module_text
from .segment_function import (
    SegmentFunction,
    characteristic_ops,
    scalar_lines,
    segment_function,
    without_pipeline_if_checked,
)
from .shared_launch import FinishedSegment, counters_of, finish_lines, shared_launch_lines


def emit(tiled: TiledSegment, context: EmitContext, terms: TermBounds) -> KernelSource:
    """The kernel of a segment, as the text of a module and how to launch it.

    Parameters
    ----------
    tiled : TiledSegment
        The segment on kernel axes, with the segments that its kernel computes too.
    context : EmitContext
        What the kernel has in common with the definition's other kernels.
    terms : TermBounds
        Collects the bounds of all integer terms that are computed in 32 bits.
    """
    segment = without_pipeline_if_checked(tiled.segment, context.check_bounds)
    if tiled.nest.row_split is not None:
        # A cooperative launch starts all programs together, after its workspace was filled.
        segment = replace(segment, follows=False)
    facts = KernelFacts(
        context=context,
        segment=segment,
        stored=tiled.inputs,
        outputs=tiled.outputs,
        wide_index=tiled.wide_index,
        terms=terms,
    )
    content = _several_segments(facts, tiled) if tiled.beside else _single_segment(facts, tiled)
    arguments = kernel_arguments(facts, tiled, content)
    stated = size_assumptions(arguments.sizes, context.env)
    content = replace(content, body=[*stated, *content.body])
    text, placed = module_text(content, segment, arguments.all, context.env)
    return _source(segment, content, arguments, text, placed)


def _source(
    segment: Segment,
    content: KernelContent,
    arguments: KernelArguments,
    text: str,
    placed: Sequence[tuple[int, Line]],
) -> KernelSource:
    """The module's text, with what compilation and launch need beside it.

    Parameters
    ----------
    placed : sequence of (int, Line)
        The lines of all bodies, each with its number in the text.
    """
    params = segment.kernel_params
    narrow = content.narrow.union(*(function.narrow for function in content.helpers))
    return KernelSource(
        name=content.name,
        text=text,
        args=arguments.tensors,
        constants=content.constants,
        grid=content.grid,
        num_warps=params.num_warps,
        num_stages=params.num_stages,
        lines=tuple((number, line.loc) for number, line in placed if line.loc is not None),
        index_ops=tuple((number, line.op) for number, line in placed if line.op),
        sizes=arguments.sizes,
        inverses=arguments.inverses,
        follows=segment.follows,
        workspace=content.workspace,
        arrivals=content.arrivals,
        max_registers=max_registers(segment),
        room=register_room(segment, content.grid),
        register_limits=register_limits(segment, content.grid),
        unaligned=frozenset(f"{value.name}_ptr" for value in narrow),
        asserts=any(line.asserts for _, line in placed),
        in_place=content.in_place,
    )


def _single_segment(facts: KernelFacts, tiled: TiledSegment) -> KernelContent:
    """The kernel of one segment, whose last programs may compute further segments."""
    segment, nest = facts.segment, tiled.nest
    writer = body_of(facts, nest)
    scalars = scalar_lines(segment, facts.context.seeds)
    body = without_redundancy([*_overlap(segment), *scalars, *writer.write()])
    replacing, body = in_place(facts.fusion, tiled, writer, body)
    fresh = frozenset(tiled.outputs)
    lasts = [
        FinishedSegment(segment_function(facts, last, fresh), arrivals)
        for last, arrivals in tiled.finishing
    ]
    helpers = tuple(last.function for last in lasts)
    body = [*(body or [Line("pass")]), *finish_lines(lasts)]
    used = used_names(body)
    return KernelContent(
        name=kernel_name(segment, [f"then_{function.segment.name}" for function in helpers]),
        body=body,
        constants=tuple(c for c in (*nest.constants, *_constants(helpers)) if c[0] in used),
        grid=grid_of(nest),
        helpers=helpers,
        narrow=unvectorized(writer.loaded, tiled.inputs, nest.tiles),
        workspace=writer.workspace,
        arrivals=counters_of(lasts),
        in_place=launched_in_place([(segment, replacing), *_in_place_of(helpers)]),
    )


def _several_segments(facts: KernelFacts, tiled: TiledSegment) -> KernelContent:
    """The kernel of several segments, among which its programs are divided."""
    segments = (tiled, *tiled.beside)
    helpers = tuple(segment_function(facts, each) for each in segments)
    counts = [grid_of(each.nest)[0] for each in segments]
    total = counts[0]
    for count in counts[1:]:
        total = total + count
    return KernelContent(
        name=kernel_name(facts.segment, [f"and_{other.segment.name}" for other in tiled.beside]),
        body=[
            *_overlap(facts.segment),
            *shared_launch_lines(list(zip(helpers, counts, strict=True))),
        ],
        constants=_constants(helpers),
        grid=(total, 1, 1),
        helpers=helpers,
        in_place=launched_in_place(_in_place_of(helpers)),
    )


def _constants(functions: Iterable[SegmentFunction]) -> tuple[tuple[str, int], ...]:
    return tuple(item for function in functions for item in function.constants)


def _in_place_of(
    functions: Iterable[SegmentFunction],
) -> list[tuple[Segment, tuple[InPlace, ...]]]:
    return [(function.segment, function.in_place) for function in functions]


def _overlap(segment: Segment) -> list[Line]:
    """Calls for programmatic dependent launch: the kernel overlaps with its neighbours in order.

    ``wait_for_previous`` waits for the end of the previous kernel, and so for all kernels that the
    previous one waited for.
    """
    lines = [Line("launch_dependents()")] if segment.followed else []
    return [*lines, *([Line("wait_for_previous()")] if segment.follows else [])]


def kernel_name(segment: Segment, others: Iterable[str] = ()) -> str:
    """``s0_inner_persistent_max_sub_exp_sum``: scheduler and the first few characteristic ops.

    ``s0_reduction_sum_then_s1``: it finishes ``s1`` too; ``..._and_s1``: it computes both.
    """
    return "_".join(
        [segment.name, segment.scheduler, *characteristic_ops(segment), *others]
    ).lower()
