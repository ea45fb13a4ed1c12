"""Writes the module of a kernel: imports, functions, kernel, ``launch`` (-> ``KernelSource``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...device import NVIDIA_WARP_SIZE
from ...dtypes import DataType
from ...ir import Fusion, Value
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atoms_in, bounds_text
from ...symbolic.sizes import size_of_atom
from ..device_lib import functions
from ..kernel_source import (
    Argument,
    ArrivalCounters,
    CooperativeWorkspace,
    InPlace,
    InverseArg,
    KernelArg,
    KernelSource,
    SizeArg,
)
from ..passes.random_seeds import Seeds
from ..segments import Segment
from ..tile.tiled_segment import TiledSegment
from ..tile.unvectorized import unvectorized
from .bodies import body_of
from .divisions import inverses_in
from .expressions import triton_name
from .in_place import in_place, launched_in_place
from .kernel_writers import KernelFacts
from .launch_text import INVERSE, grid_of, launch_lines, register_room, uses_torch
from .line_passes import comments, without_unused
from .lines import Line
from .segment_function import (
    SegmentFunction,
    argument_name,
    assertable,
    numbers,
    segment_function,
    telling_ops,
)
from .shared_launch import Finish, counters_of, finish_lines, shared_launch_lines
from .term_bounds import TermBounds

# With TRITON_INTERPRET set, Triton makes the second kind of all that it decorates.
_JITTED = ("JITFunction", "InterpretedFunction")
_LIBRARY = frozenset(n for n, f in vars(functions).items() if type(f).__name__ in _JITTED)


def emit(
    fusion: Fusion,
    tiled: TiledSegment,
    misaligned: frozenset[Value] = frozenset(),
    seeds: Seeds = (),
    env: ShapeEnv | None = None,
    check_bounds: bool = False,
    terms: TermBounds | None = None,
) -> KernelSource:
    """The kernel of a segment.

    Parameters
    ----------
    misaligned : frozenset of Value
        Buffers that do not start at a multiple of 16 bytes.
    seeds : tuple of (Value, Value)
        Seeds and offsets that a run draws; in a captured graph the kernel fetches them.
    env : ShapeEnv, optional
        Of sizes that vary: those in the text become arguments.
    check_bounds : bool
        Whether it asserts that indices read at run time are of their dims.
    terms : TermBounds, optional
        Is told of all integer terms that are computed in 32 bits.
    """
    segment = assertable(tiled.segment, check_bounds)
    if tiled.nest.row_split is not None:
        # Its workspace is filled right before it, and all its programs start together.
        segment = replace(segment, follows=False)
    facts = KernelFacts(
        fusion=fusion,
        segment=segment,
        stored=tiled.inputs,
        outputs=tiled.outputs,
        wide_index=tiled.wide_index,
        misaligned=misaligned,
        check_bounds=check_bounds,
        terms=terms or TermBounds(),
    )
    content = (_several_segments if tiled.beside else _single_segment)(facts, tiled, seeds, env)
    arguments = _arguments(facts, tiled, content, env)
    begin = [*_bounds(arguments.sizes, env), *_multiples(arguments.sizes)]
    content = replace(content, body=[*begin, *content.body])
    text, placed = _module(content, segment, arguments.all, env)
    return _source(segment, content, arguments, text, placed)


@dataclass(frozen=True, kw_only=True)
class _Arguments:
    """The arguments of a kernel, in the order of its parameters."""

    tensors: tuple[KernelArg, ...]
    sizes: tuple[SizeArg, ...]
    inverses: tuple[InverseArg, ...]
    memory: tuple[CooperativeWorkspace | ArrivalCounters, ...]

    @property
    def all(self) -> tuple[Argument, ...]:
        return (*self.tensors, *self.sizes, *self.inverses, *self.memory)


def _arguments(
    facts: KernelFacts, tiled: TiledSegment, content: _Content, env: ShapeEnv | None
) -> _Arguments:
    """What the lines of a kernel and of its functions use: tensors, sizes, inverses, memory."""
    pieces = (*tiled.beside, *(last for last, _ in tiled.finishing))
    wide = tiled.wide_index or any(piece.wide_index for piece in pieces)
    lines = [*content.body, *(line for helper in content.helpers for line in helper.body)]
    return _Arguments(
        tensors=_args(facts.segment, content.helpers),
        sizes=_sizes(lines, wide, env, facts.terms),
        inverses=inverses_in("\n".join(line.code for line in lines)),
        memory=tuple(m for m in (content.workspace, content.arrivals) if m is not None),
    )


def _source(
    segment: Segment,
    content: _Content,
    arguments: _Arguments,
    text: str,
    placed: Sequence[tuple[int, Line]],
) -> KernelSource:
    """The module's text with what its compilation and its launch need to know."""
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
        max_registers=params.max_registers,
        room=register_room(segment, content.grid),
        unaligned=frozenset(f"{value.name}_ptr" for value in narrow),
        asserts=any(line.asserts for _, line in placed),
        in_place=content.in_place,
    )


@dataclass(frozen=True, kw_only=True)
class _Content:
    """What a module's text is made of: the kernel, and the functions that it calls."""

    name: str
    body: list[Line]
    constants: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    helpers: tuple[SegmentFunction, ...] = ()
    narrow: frozenset[Value] = frozenset()
    workspace: CooperativeWorkspace | None = None
    arrivals: ArrivalCounters | None = None
    in_place: tuple[InPlace, ...] = ()


def _single_segment(
    facts: KernelFacts, tiled: TiledSegment, seeds: Seeds, env: ShapeEnv | None
) -> _Content:
    """The kernel of one segment, and of those that its last programs finish."""
    segment, nest = facts.segment, tiled.nest
    writer = body_of(facts, nest)
    body = without_unused([*_overlap(segment), *numbers(segment, seeds), *writer.write()])
    replacing, body = in_place(facts.fusion, tiled, writer, body)
    fresh = frozenset(tiled.outputs)
    lasts = [
        Finish(segment_function(facts, last, seeds, env, fresh), meeting)
        for last, meeting in tiled.finishing
    ]
    helpers = tuple(last.function for last in lasts)
    return _Content(
        name=kernel_name(segment, [f"then_{function.segment.name}" for function in helpers]),
        body=[*(body or [Line("pass")]), *finish_lines(lasts)],
        constants=(*nest.constants, *_constants(helpers)),
        grid=grid_of(nest),
        helpers=helpers,
        narrow=unvectorized(writer.loaded, tiled.inputs, nest.tiles),
        workspace=writer.workspace,
        arrivals=counters_of(lasts),
        in_place=launched_in_place([(segment, replacing), *_in_place_of(helpers)]),
    )


def _several_segments(
    facts: KernelFacts, tiled: TiledSegment, seeds: Seeds, env: ShapeEnv | None
) -> _Content:
    """The kernel of several segments, among which its programs are divided."""
    pieces = (tiled, *tiled.beside)
    helpers = tuple(segment_function(facts, piece, seeds, env) for piece in pieces)
    counts = [grid_of(piece.nest)[0] for piece in pieces]
    total = counts[0]
    for count in counts[1:]:
        total = total + count
    return _Content(
        name=kernel_name(facts.segment, [f"and_{piece.segment.name}" for piece in tiled.beside]),
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
    """Calls for programmatic dependent launch: the kernel overlaps with the one before and behind.

    ``wait_for_previous`` waits for the whole kernel before, and so for all that this waited for.
    """
    lines = [Line("launch_dependents()")] if segment.followed else []
    return [*lines, *([Line("wait_for_previous()")] if segment.follows else [])]


def _sizes(
    body: list[Line], wide: bool, env: ShapeEnv | None, terms: TermBounds
) -> tuple[SizeArg, ...]:
    dtype = DataType.Int if wide else DataType.Int32
    text = "\n".join(line.code for line in body)
    found = () if env is None else atoms_in(env, text)
    for atom in found if not wide else ():
        assert env is not None
        terms.add(size_of_atom(env, atom))
    return tuple(SizeArg(atom.name, dtype, atom.multiple) for atom in found)


ARGUMENT_MULTIPLE = 16
"""Triton specializes integer arguments by whether this divides them, and by nothing else."""

LEAST_STATED = NVIDIA_WARP_SIZE
"""Lower bounds of sizes below this are not stated: they make no register of a warp full."""

MOST_STATED = 1 << 16
"""Upper bounds above this are not stated: no tile is as long, so no register is known empty."""


def _multiples(sizes: Iterable[SizeArg]) -> list[Line]:
    """``size0 = size0 // 8 * 8`` for sizes known to be multiples of less than 16.

    Triton's axis analysis reads divisibility off that: rows of a multiple of 8 elements of 2 bytes
    begin at vectors.
    """
    known = [(s.name, s.multiple) for s in sizes if s.multiple % ARGUMENT_MULTIPLE]
    return [Line(f"{name} = {name} // {by} * {by}") for name, by in known if by > 1]


def _bounds(sizes: Iterable[SizeArg], env: ShapeEnv | None) -> list[Line]:
    """``tl.assume`` of bounds of sizes, by which Triton drops masks and dead parts of tiles."""
    names = [size.name for size in sizes]
    known = () if env is None else bounds_text(env, names, LEAST_STATED, MOST_STATED)
    return [Line(f"tl.assume({condition})") for condition in known]


def _args(segment: Segment, helpers: Iterable[SegmentFunction]) -> tuple[KernelArg, ...]:
    """The values of the segment, then those that only functions of other segments need."""
    own = (*segment.inputs, *segment.outputs)
    values = dict.fromkeys((*own, *(value for function in helpers for value in function.values)))
    return tuple(KernelArg(argument_name(v), v, v.is_tensor) for v in values)


def kernel_name(segment: Segment, others: Iterable[str] = ()) -> str:
    """``s0_inner_persistent_max_sub_exp_sum``: scheduler and the first few telling ops.

    ``s0_reduction_sum_then_s1``: it finishes ``s1`` too; ``..._and_s1``: it computes both.
    """
    return "_".join([segment.name, segment.scheduler, *telling_ops(segment), *others]).lower()


def _module(
    made: _Content, segment: Segment, args: tuple[Argument, ...], env: ShapeEnv | None
) -> tuple[str, list[tuple[int, Line]]]:
    """The text, and the number of each line of all bodies in it."""
    body = [*made.body, *(line for last in made.helpers for line in last.body)]
    used = set(re.findall(r"[a-z_]\w*", "\n".join(line.code for line in body)))
    text = [f'"""{segment.scheduler}: {segment.reason}."""', ""]
    if uses_torch(args, body):
        text.append("import torch")
    text += ["import triton", "import triton.language as tl"]
    # Triton's libdevice by way of the library, which has another under the interpreter.
    divides = any(isinstance(arg, InverseArg) for arg in args)
    helpers = sorted(used & {*_LIBRARY, "libdevice"} | ({INVERSE} if divides else set()))
    if helpers:
        text += ["", *_imported("tritonfuser.lowering.device_lib.functions", helpers)]
    elif _has_bfloat16(args, body):
        # Triton's own interpreter cuts off where it should round, and multiplies bits.
        text += ["", "import tritonfuser  # noqa: F401  bfloat16 under TRITON_INTERPRET=1"]
    placed: list[tuple[int, Line]] = []
    for last in made.helpers:
        parameters = [*last.parameters, *(f"{c}: tl.constexpr" for c in last.blocks)]
        _write(text, placed, _signature(last.name, parameters), last.body)
    parameters = [*map(_parameter, args), *(f"{c}: tl.constexpr" for c, _ in made.constants)]
    _write(text, placed, _signature(made.name, parameters), made.body)
    text += ["", "", *launch_lines(made.name, made.grid, made.constants, args, segment, body, env)]
    return "\n".join(text) + "\n", placed


def _write(
    text: list[str], placed: list[tuple[int, Line]], signature: list[str], body: Iterable[Line]
) -> None:
    """Append a jitted function to a text; ``placed`` takes the number of each line."""
    text += ["", "", "@triton.jit", *signature]
    lines = list(body)
    places = comments(lines)
    for number, line in enumerate(lines):
        indent = "    " * (line.depth + 1)
        if number in places:
            text.append(indent + places[number])
        text.append(indent + line.text)
        placed.append((len(text), line))


def _has_bfloat16(args: tuple[Argument, ...], body: list[Line]) -> bool:
    stored = any(arg.dtype is DataType.BFloat16 for arg in args)
    return stored or any("tl.bfloat16" in line.code for line in body)


def _parameter(arg: Argument) -> str:
    """A parameter; of a number with its type, or Triton would choose one by the value."""
    return arg.name if arg.is_tensor else f"{arg.name}: {triton_name(arg.dtype)}"


def _imported(module: str, names: list[str]) -> list[str]:
    """``from module import ...`` on one line, or one name a line where that is too long."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _signature(name: str, parameters: list[str]) -> list[str]:
    """``def name(...):`` on one line, or one parameter a line where that is too long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= 100:
        return [line]
    return [f"def {name}(", *(f"    {p}," for p in parameters), "):"]
