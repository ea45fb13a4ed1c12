"""The arguments of a kernel, and the lines that state what is known of its size arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...device import NVIDIA_WARP_SIZE
from ...dtypes import DataType
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atoms_in, bounds_text
from ...symbolic.sizes import size_of_atom
from ..kernel_source import (
    Argument,
    ArrivalCounters,
    CooperativeWorkspace,
    InverseArg,
    KernelArg,
    SizeArg,
)
from ..segments.segment import Segment
from ..tile.tiled_segment import TiledSegment
from .indexing.divisions import inverses_in
from .indexing.term_bounds import TermBounds
from .kernel_writers import KernelFacts
from .line_passes import used_names
from .lines import Line
from .module_text import KernelContent
from .segment_function import argument_name

ARGUMENT_MULTIPLE = 16
"""Triton specializes integer arguments by whether this divides them, and by nothing else."""

LEAST_STATED = NVIDIA_WARP_SIZE
"""Lower bounds of sizes below this are not stated: they prove no mask of a whole warp."""

MOST_STATED = 1 << 16
"""Upper bounds of sizes above this are not stated: no tile is as long."""


@dataclass(frozen=True, kw_only=True)
class KernelArguments:
    """The arguments of a kernel, in the order of its parameters."""

    tensors: tuple[KernelArg, ...]
    sizes: tuple[SizeArg, ...]
    inverses: tuple[InverseArg, ...]
    memory: tuple[CooperativeWorkspace | ArrivalCounters, ...]

    @property
    def all(self) -> tuple[Argument, ...]:
        """All arguments, in the order of the signature."""
        return (*self.tensors, *self.sizes, *self.inverses, *self.memory)


def kernel_arguments(
    facts: KernelFacts, tiled: TiledSegment, content: KernelContent
) -> KernelArguments:
    """The arguments that the lines of a kernel and of its functions use."""
    others = (*tiled.beside, *(last for last, _ in tiled.finishing))
    wide = tiled.wide_index or any(other.wide_index for other in others)
    lines = [*content.body, *(line for helper in content.helpers for line in helper.body)]
    return KernelArguments(
        tensors=_args(facts.segment, content),
        sizes=_sizes(lines, wide, facts.context.env, facts.terms),
        inverses=inverses_in("\n".join(line.code for line in lines)),
        memory=tuple(m for m in (content.workspace, content.arrivals) if m is not None),
    )


def _args(segment: Segment, content: KernelContent) -> tuple[KernelArg, ...]:
    """The values of the segment, then those that only the functions of other segments use."""
    own, used = (*segment.inputs, *segment.outputs), used_names(content.body)
    values = dict.fromkeys((*own, *(value for each in content.helpers for value in each.values)))
    named = ((argument_name(value), value) for value in values)
    return tuple(KernelArg(name, value, value.is_tensor) for name, value in named if name in used)


def _sizes(
    body: list[Line], wide: bool, env: ShapeEnv | None, terms: TermBounds
) -> tuple[SizeArg, ...]:
    """The sizes that lines mention; ``wide`` where they are passed as 64-bit integers."""
    dtype = DataType.Int if wide else DataType.Int32
    text = "\n".join(line.code for line in body)
    found = () if env is None else atoms_in(env, text)
    for atom in found if not wide else ():
        assert env is not None
        terms.add(size_of_atom(env, atom))
    return tuple(SizeArg(atom.name, dtype, atom.multiple) for atom in found)


def size_assumptions(sizes: Iterable[SizeArg], env: ShapeEnv | None) -> list[Line]:
    """Lines that tell Triton what is known of sizes: bounds, and what divides them."""
    sizes = tuple(sizes)
    return [*_bounds(sizes, env), *_multiples(sizes)]


def _multiples(sizes: Iterable[SizeArg]) -> list[Line]:
    """``size0 = size0 // 8 * 8`` for sizes known to be multiples of 8, 4 or 2, and not of 16.

    Triton's axis analysis infers divisibility from it, so that loads of rows are vectorized.
    """
    known = [(s.name, s.multiple) for s in sizes if s.multiple % ARGUMENT_MULTIPLE]
    return [Line(f"{name} = {name} // {by} * {by}") for name, by in known if by > 1]


def _bounds(sizes: Iterable[SizeArg], env: ShapeEnv | None) -> list[Line]:
    """``tl.assume`` of bounds of sizes, by which Triton drops masks and empty parts of tiles."""
    names = [size.name for size in sizes]
    known = () if env is None else bounds_text(env, names, LEAST_STATED, MOST_STATED)
    return [Line(f"tl.assume({condition})") for condition in known]
