"""Segments that the last programs of another kernel compute: a function for each, and its calls.

``s0_reduction_sum_then_s1`` ends with::

    counter = tl.program_id(0) % 16
    if is_last(arrivals_ptr + counter, 32):
        s1_reduction_sum(counter, tv5_ptr, tv3_ptr, S1_XBLOCK, S1_RBLOCK)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...ir import Value
from ...symbolic.queries import is_known_equal
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atoms_in
from ..access.index_dims import indexes
from ..kernel_source import ARRIVALS, ArrivalCounters
from ..passes.random_seeds import Seeds
from ..segments import Segment
from ..tile.arrivals import Arrivals
from ..tile.tiled_segment import TiledSegment
from ..tile.vector_width import unvectorized
from .kernel_arguments import argument_name, numbers, telling_ops
from .kernel_body import KernelBody
from .kernel_writers import KernelFacts
from .lines import Line
from .unused_lines import without_unused

PROGRAM = "program"
"""The parameter of such a function that is the number of the tile to compute."""


@dataclass(frozen=True, kw_only=True)
class Finish:
    """A segment as a function that the kernel of another one calls.

    Attributes
    ----------
    segment : Segment
        What it computes.
    values : tuple of Value
        What it loads, takes and stores.
    parameters : tuple of str
        Those without the block sizes.
    blocks : tuple of str
        The block sizes in the function.
    constants : tuple of (str, int)
        The block sizes as constants of the kernel.
    body : tuple of Line
        Its lines.
    arrivals : Arrivals
        Which programs call it.
    narrow : frozenset of Value
        Tensors whose loads must not be vectorized.
    """

    segment: Segment
    values: tuple[Value, ...]
    parameters: tuple[str, ...]
    blocks: tuple[str, ...]
    constants: tuple[tuple[str, int], ...]
    body: tuple[Line, ...]
    arrivals: Arrivals
    narrow: frozenset[Value]

    @property
    def name(self) -> str:
        """``s1_reduction_sum``."""
        return "_".join([self.segment.name, self.segment.scheduler, *telling_ops(self.segment)])

    def call(self, program: str) -> str:
        """The call that computes one tile."""
        given = (*self.parameters[1:], *(name for name, _ in self.constants))
        return f"{self.name}({', '.join([program, *given])})"


def finishes(
    facts: KernelFacts,
    finishing: Sequence[tuple[TiledSegment, Arrivals]],
    seeds: Seeds,
    env: ShapeEnv | None,
) -> tuple[Finish, ...]:
    """The functions of all segments that a kernel finishes.

    Parameters
    ----------
    facts : KernelFacts
        Of the kernel.
    """
    return tuple(_finish(facts, tiled, meeting, seeds, env) for tiled, meeting in finishing)


def _finish(
    first: KernelFacts,
    tiled: TiledSegment,
    meeting: Arrivals,
    seeds: Seeds,
    env: ShapeEnv | None,
) -> Finish:
    segment = tiled.segment
    if first.check_bounds and any(map(indexes, segment.nodes)):
        segment = replace(segment, params=replace(segment.kernel_params, num_stages=1))
    facts = replace(
        first,
        segment=segment,
        stored=tiled.inputs,
        outputs=tiled.outputs,
        wide_index=tiled.wide_index,
        fresh=frozenset(first.outputs),
        program=PROGRAM,
        launch_stages=first.segment.kernel_params.num_stages,
    )
    writer = KernelBody(facts, tiled.nest)
    body = without_unused([*numbers(segment, seeds), *writer.write()]) or [Line("pass")]
    values = tuple(dict.fromkeys((*segment.inputs, *segment.outputs)))
    text = "\n".join(line.code for line in body)
    sizes = () if env is None else tuple(atom.name for atom in atoms_in(env, text))
    return Finish(
        segment=segment,
        values=values,
        parameters=(PROGRAM, *map(argument_name, values), *sizes),
        blocks=tuple(name for name, _ in tiled.nest.constants),
        constants=tuple((f"{segment.name.upper()}_{n}", size) for n, size in tiled.nest.constants),
        body=tuple(body),
        arrivals=meeting,
        narrow=frozenset(unvectorized(writer.loaded, tiled.inputs, tiled.nest.tiles)),
    )


def finish_lines(lasts: Iterable[Finish]) -> list[Line]:
    """What a kernel ends with: its programs arrive at counters, and the last ones finish more."""
    lines: list[Line] = []
    start = 0
    for last in lasts:
        meeting = last.arrivals
        found = _counter(meeting)
        counter = "0" if found is None else f"{last.segment.name}_counter"
        if found is not None:
            lines.append(Line(f"{counter} = {found}"))
        places = [str(n) for n in (counter, start) if str(n) != "0"]
        where = " + ".join([ARRIVALS, *places])
        lines.append(Line(f"if is_last({where}, {meeting.programs}):"))
        lines += _tiles(last, counter)
        start = start + meeting.counters
    return lines


def _counter(meeting: Arrivals) -> str | None:
    """Where a program arrives: ``tl.program_id(0) // 512 * 16 + tl.program_id(0) % 16``."""
    if is_known_equal(meeting.counters, 1):
        return None
    program = "tl.program_id(0)"
    if is_known_equal(meeting.step, 1):
        return f"{program} // {meeting.programs}"
    if is_known_equal(meeting.counters, meeting.step):
        return f"{program} % {meeting.step}"
    apart = f"{program} // {meeting.programs * meeting.step} * {meeting.step}"
    return f"{apart} + {program} % {meeting.step}"


def _tiles(last: Finish, counter: str) -> list[Line]:
    """The tiles of a counter, one after another."""
    count = last.arrivals.tiles
    if is_known_equal(count, 1):
        return [Line(last.call(counter), depth=1)]
    start, stop = ("0", count) if counter == "0" else (f"{counter} * {count}", None)
    ends = f"{start}, {stop}" if stop is not None else f"{start}, {counter} * {count} + {count}"
    return [
        Line(f"for {PROGRAM} in range({ends}):", depth=1),
        Line(last.call(PROGRAM), depth=2),
    ]


def counters_of(lasts: Sequence[Finish]) -> ArrivalCounters | None:
    """The counters of a kernel; None where it finishes nothing."""
    if not lasts:
        return None
    total = lasts[0].arrivals.counters
    for last in lasts[1:]:
        total = total + last.arrivals.counters
    return ArrivalCounters(total)
