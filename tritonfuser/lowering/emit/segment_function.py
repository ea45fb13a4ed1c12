"""A segment as a jitted function of its tile number, for kernels that compute several segments.

The names of kernels and of their arguments are here too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ir import Value
from ...ops.builder import op_of
from ...ops.table import View
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atoms_in
from ..access.index_dims import indexes
from ..kernel_source import InPlace, passed_dtype
from ..passes.random_seeds import Seeds
from ..segments.segment import Segment
from ..tile.tiled_segment import TiledSegment
from ..tile.unvectorized import unvectorized
from .common_subexpressions import without_redundancy
from .expressions import triton_name
from .in_place import in_place
from .indexing.divisions import inverses_in
from .kernel_body import KernelBody
from .kernel_writers import KernelFacts
from .line_passes import used_names
from .lines import Line

PROGRAM = "program"
"""The parameter that is the number of the tile to compute."""


def argument_name(value: Value) -> str:
    """A value as an argument of a kernel: ``tv0_ptr``, or the name of a number."""
    return f"{value.name}_ptr" if value.is_tensor else value.name


def scalar_lines(segment: Segment, seeds: Seeds) -> list[Line]:
    """The lines that convert scalar arguments to their dtypes, and load seeds from memory."""
    drawn = [f"{s.name}, {o.name}" for s, o in seeds if s in segment.inputs]
    fetched = {value for pair in seeds for value in pair}
    given = [v for v in segment.inputs if not v.is_tensor and v not in fetched]
    typed = ((v.name, triton_name(passed_dtype(v))) for v in given)
    return [
        *(Line(f"{pair} = drawn({pair})") for pair in drawn),
        *(Line(f"{name} = scalar({name}, {dtype})") for name, dtype in typed),
    ]


def without_pipeline_if_checked(segment: Segment, check_bounds: bool) -> Segment:
    """The segment with ``num_stages=1`` where its loops assert indices.

    Triton's pipeliner for AMD fails on loops with assertions.
    """
    if not check_bounds or not any(map(indexes, segment.nodes)):
        return segment
    return replace(segment, params=replace(segment.kernel_params, num_stages=1))


def characteristic_ops(segment: Segment) -> list[str]:
    """The first few characteristic ops of a segment, for the kernel's name."""
    ops = [n.op for n in segment.nodes if not isinstance(op_of(n).form, View)]
    return list(dict.fromkeys(op for op in ops if op != "cast"))[:4]


@dataclass(frozen=True, kw_only=True)
class SegmentFunction:
    """A segment as a function that a kernel of several segments calls.

    Attributes
    ----------
    segment : Segment
        What it computes.
    values : tuple of Value
        The tensors that it loads and stores, and the scalars that it takes.
    parameters : tuple of str
        The parameters before the block sizes.
    blocks : tuple of str
        The block sizes, by their names in the function.
    constants : tuple of (str, int)
        The block sizes, by their names in the kernel.
    body : tuple of Line
        Its lines.
    narrow : frozenset of Value
        Tensors whose loads must not be vectorized.
    in_place : tuple of (Value, Value)
        Results that may be stored into an input: (result, input).
    """

    segment: Segment
    values: tuple[Value, ...]
    parameters: tuple[str, ...]
    blocks: tuple[str, ...]
    constants: tuple[tuple[str, int], ...]
    body: tuple[Line, ...]
    narrow: frozenset[Value]
    in_place: tuple[InPlace, ...]

    @property
    def name(self) -> str:
        """``s1_reduction_sum``."""
        return "_".join(
            [self.segment.name, self.segment.scheduler, *characteristic_ops(self.segment)]
        )

    def call(self, program: str) -> str:
        """The call that computes one tile."""
        given = [program if name == PROGRAM else name for name in self.parameters]
        return f"{self.name}({', '.join([*given, *(name for name, _ in self.constants)])})"


def segment_function(
    launch: KernelFacts, tiled: TiledSegment, fresh: frozenset[Value] = frozenset()
) -> SegmentFunction:
    """The function of a segment.

    Parameters
    ----------
    launch : KernelFacts
        The facts of the segment whose kernel calls the function.
    tiled : TiledSegment
        The segment to compute.
    fresh : frozenset of Value
        As in ``KernelFacts``.
    """
    context = launch.context
    segment = without_pipeline_if_checked(tiled.segment, context.check_bounds)
    writer = KernelBody(_facts_in(launch, tiled, segment, fresh), tiled.nest)
    body = without_redundancy([*scalar_lines(segment, context.seeds), *writer.write()])
    replacing, body = in_place(context.fusion, tiled, writer, body)
    body = body or [Line("pass")]
    used = used_names(body)
    given = dict.fromkeys((*segment.inputs, *segment.outputs))
    values = [value for value in given if argument_name(value) in used]
    blocks = [(name, size) for name, size in tiled.nest.constants if name in used]
    return SegmentFunction(
        segment=segment,
        values=tuple(values),
        parameters=(
            *([PROGRAM] if PROGRAM in used else []),
            *map(argument_name, values),
            *_numbers_in(body, context.env),
        ),
        blocks=tuple(name for name, _ in blocks),
        constants=tuple((f"{segment.name.upper()}_{name}", size) for name, size in blocks),
        body=tuple(body),
        narrow=frozenset(unvectorized(writer.loaded, tiled.inputs, tiled.nest.tiles)),
        in_place=replacing,
    )


def _facts_in(
    launch: KernelFacts, tiled: TiledSegment, segment: Segment, fresh: frozenset[Value]
) -> KernelFacts:
    """The facts of a segment that the kernel of another one computes."""
    return replace(
        launch,
        segment=segment,
        stored=tiled.inputs,
        outputs=tiled.outputs,
        wide_index=tiled.wide_index,
        fresh=fresh,
        program=PROGRAM,
        launch_stages=launch.segment.kernel_params.num_stages,
    )


def _numbers_in(body: list[Line], env: ShapeEnv | None) -> tuple[str, ...]:
    """The sizes, and the inverses of divisors, that lines use: arguments of the kernel."""
    text = "\n".join(line.code for line in body)
    sizes = () if env is None else tuple(atom.name for atom in atoms_in(env, text))
    return (*sizes, *(arg.name for arg in inverses_in(text)))
