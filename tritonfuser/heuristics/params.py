"""What a scheduler decides for one kernel: a frozen dataclass for each, to a plain dict and back.

Block sizes are in elements and powers of two, as Triton requires. Axis x runs over the positions of
the output, axis r over the elements that are reduced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from ..device import MAX_BLOCK_ELEMENTS, MAX_REGISTERS_PER_THREAD
from ..errors import ParamsError
from .plain_data.codec import decode, encode, normalized
from .plain_data.limits import AtMostItems, Distinct, Within

MAX_TAILS = 3
"""Most tail tiles of a row."""

MAX_PARTS = 4096
"""Most programs that share a row: more than any device runs at a time."""

MAX_WARPS = 32
"""Most warps of one program: 1024 threads on NVIDIA."""

MAX_STAGES = 16
"""Most steps of a loop in flight. Beyond some five, shared memory runs out before it pays."""

LEAST_SIDE = 16
"""Least elements of a side of a tile of a matrix product: what tensor cores take."""

Power = Within(1, MAX_BLOCK_ELEMENTS, powers_of_two=True)
"""Elements of a side of a tile."""

MAX_AXES = 128
"""Numbers of axes at most. A tensor of torch has 64 dims, and those of two positions or more, which
are 63 at most, may be split."""

Side = Annotated[int, Power]
Tails = Annotated[tuple[Side, ...], AtMostItems(MAX_TAILS)]
Axes = Annotated[tuple[Annotated[int, Within(0, MAX_AXES - 1)], ...], Distinct()]
"""Numbers of axes of a kernel, outermost first."""

ProductSide = Annotated[int, Within(LEAST_SIDE, MAX_BLOCK_ELEMENTS, powers_of_two=True)]

_P = TypeVar("_P", bound="HeuristicParams")


@dataclass(frozen=True, kw_only=True)
class RowTiling:
    """How params cut the rows of a kernel into tiles: the same facts for every scheduler with rows.

    Attributes
    ----------
    rows : int
        Rows of a tile.
    block : int
        Elements of a row in a whole block.
    tails : tuple of int
        Elements of the tail tiles behind the whole blocks.
    align : int
        Elements of a vector that tiles begin at. 1 where they begin wherever rows do.
    can_align : bool
        Whether kernels of this scheduler support an ``align`` above 1.
    in_registers : bool
        The whole row is held in registers. False where a program loops over blocks.
    backwards : bool
        Every second loop over a row runs from its end to its start.
    evict_hints : bool
        Loads of a row carry eviction hints for the L2 cache.
    """

    rows: int
    block: int
    tails: tuple[int, ...] = ()
    align: int = 1
    can_align: bool = False
    in_registers: bool = False
    backwards: bool = False
    evict_hints: bool = True


@dataclass(frozen=True, kw_only=True)
class HeuristicParams:
    """What a scheduler decides for one segment."""

    scheduler: ClassVar[str] = ""

    retired: ClassVar[Mapping[str, Any]] = {}
    """Fields that the class had, with the value that they had in all data that was written."""

    def __post_init__(self) -> None:
        self.validate()

    @property
    def row_tiling(self) -> RowTiling | None:
        """How rows are cut into tiles. None where the kernels have no rows."""
        return None

    def validate(self) -> None:
        """Check types and limits; lists become tuples.

        Raises
        ------
        ParamsError
            Says which field is wrong and what it may be.
        """
        normalized(self, f"{self.scheduler} params.")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-able; ``HeuristicParams.from_dict`` turns it back."""
        return {"scheduler": self.scheduler, **encode(self)}

    @classmethod
    def from_dict(cls: type[_P], data: Mapping[str, Any]) -> _P:
        """The params that ``to_dict`` wrote: a field that is missing has its default.

        So files written before a field was added can be read. A field without a default must be
        there, and no other keys may be. One that the class once had and that did nothing
        (``retired``) is dropped where it has its value of then, and refused with another.

        Raises
        ------
        ParamsError
            Names the key that is unknown, missing or of the wrong type, and what was expected.
        """
        if not isinstance(data, Mapping):
            raise ParamsError(
                f"params: expected a dict as to_dict() makes it, got {type(data).__name__}"
            )
        found = _class_of(data, cls)
        rest = {key: value for key, value in data.items() if key != "scheduler"}
        where = f"{found.scheduler} params"
        made = decode(found, without_retired(found, rest, where), where)
        assert isinstance(made, cls)
        return made


def without_retired(kind: type[HeuristicParams], data: Any, where: str) -> Any:
    """The fields of params that were read, without those that did nothing and are gone.

    Raises
    ------
    ParamsError
        Such a field was changed: that would change nothing.
    """
    if not isinstance(data, Mapping):
        return data
    for name, value in kind.retired.items():
        if name in data and (type(data[name]) is not type(value) or data[name] != value):
            raise ParamsError(
                f"{where}.{name}: expected no such field, or {value}: it has no effect, "
                f"got {data[name]!r}"
            )
    return {key: value for key, value in data.items() if key not in kind.retired}


def _class_of(data: Mapping[str, Any], wanted: type[HeuristicParams]) -> type[HeuristicParams]:
    choices = {n: c for n, c in PARAMS.items() if issubclass(c, wanted)}
    if "scheduler" not in data:
        raise ParamsError(f"params: missing key 'scheduler', expected one of {', '.join(choices)}")
    name = data["scheduler"]
    if not isinstance(name, str) or name not in choices:
        raise ParamsError(f"params.scheduler: expected one of {', '.join(choices)}, got {name!r}")
    return choices[name]


_NO_EFFECT = {"num_warps": 4, "num_stages": 1, "max_registers": 0}
"""What params of segments without a kernel were written with."""


@dataclass(frozen=True, kw_only=True)
class KernelParams(HeuristicParams):
    """What is decided for every kernel. Fields named ``block_*`` are the sides of its tile.

    Attributes
    ----------
    num_warps : int
        Warps of a program. A power of two, 1 to 32.
    num_stages : int
        Depth of the loop's software pipeline: steps whose loads are in flight at once. 1 to 16;
        1 for no pipeline.
    max_registers : int
        Limit on the registers of a thread, 16 to 255. 0 for the compiler's choice.
    """

    num_warps: Annotated[int, Within(1, MAX_WARPS, powers_of_two=True)] = 4
    num_stages: Annotated[int, Within(1, MAX_STAGES)] = 1
    max_registers: Annotated[int, Within(16, MAX_REGISTERS_PER_THREAD, also=(0,))] = 0

    def validate(self) -> None:
        super().validate()
        for sides in self._blocks():
            total = math.prod(sides.values())
            if total > MAX_BLOCK_ELEMENTS:
                raise ParamsError(
                    f"{self.scheduler} params: {' * '.join(sides)} is {total}, "
                    f"a block of Triton holds at most {MAX_BLOCK_ELEMENTS} elements"
                )

    def _blocks(self) -> list[dict[str, int]]:
        """The sides of each tile that a kernel has."""
        return [{k: v for k, v in vars(self).items() if k.startswith("block_")}]


@dataclass(frozen=True, kw_only=True)
class NoOpParams(HeuristicParams):
    """No kernel runs: every output is a view of an input, or empty."""

    scheduler: ClassVar[str] = "no_op"
    retired: ClassVar[Mapping[str, Any]] = _NO_EFFECT


@dataclass(frozen=True, kw_only=True)
class PointwiseParams(KernelParams):
    """A program computes ``block_x`` elements of the flattened output.

    Attributes
    ----------
    block_x : int
        Elements a program.
    vectorization_factor : int
        Most neighbouring elements of a thread, a power of two. 0 for the width of its widest
        vectorized load.
    axes : tuple of int
        The order of the kernel's axes, outermost first. Neighbours in a program, and then programs,
        lie along the last one. An axis' number is that of the dim of the stored value; dims that
        are split count once for each piece. Axes that are left out come first, in the order of the
        rules.
    loads_first : bool or None
        All loads come before what is computed. A thread then waits for memory once, and holds all
        that it loads. None: where the device runs all programs at once and threads have few
        elements, at each size anew.
    """

    scheduler: ClassVar[str] = "pointwise"

    block_x: Side
    vectorization_factor: Annotated[int, replace(Power, also=(0,))] = 0
    axes: Axes = ()
    loads_first: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TransposeParams(KernelParams):
    """A program computes a tile over two axes, each of them contiguous in some tensor.

    Attributes
    ----------
    block_x : int
        Elements of the tile along the output's contiguous axis.
    block_y : int
        Elements along the axis that is contiguous in the other tensors.
    axes : tuple of int
        The axes along x, outermost first, by their numbers as in ``PointwiseParams``. Axes that are
        in neither list come first, in the order of the rules.
    across : tuple of int
        The axes along y, outermost first. Empty for those of the rules.
    first : str
        The side that programs run along first: ``x`` or ``y``. The tiles of the other side are
        65535 at most. Empty for x where they are that few.
    loads_first : bool or None
        All loads come before what is computed. A thread then waits for memory once, and holds all
        that it loads. None: where the device runs all programs at once and threads have few
        elements, at each size anew.
    """

    scheduler: ClassVar[str] = "transpose"

    block_x: Side
    block_y: Side
    axes: Axes = ()
    across: Axes = ()
    first: Literal["", "x", "y"] = ""
    loads_first: bool | None = None

    def validate(self) -> None:
        super().validate()
        both = sorted({*self.axes} & {*self.across})
        if both:
            raise ParamsError(
                f"{self.scheduler} params: axes and across both have {both[0]}, "
                "an axis lies along one side"
            )


@dataclass(frozen=True, kw_only=True)
class _RowParams(KernelParams):
    """A program has ``block_x`` rows and ``block_r`` reduced elements of each at a time.

    Attributes
    ----------
    block_x : int
        Rows a program.
    block_r : int
        Reduced elements of a step of the loop. Where ``persistent``, the length of a row rounded
        up to a power of two, or down where ``tails`` hold the rest.
    persistent : bool
        True: the whole row is in registers and read once. False: a program loops over the row,
        and every further pass reads it again.
    tails : tuple of int
        Elements of up to three smaller tiles behind the whole blocks, in their order. They hold the
        end of a row. Where a program loops over blocks, they stay in registers between passes.
        Empty where the last block is masked instead.
    align : int
        Elements of a vector where rows begin inside of vectors, else 1. Above 1, tiles begin at the
        first whole vector of a row. The last tail has the elements before it and those behind the
        last whole vector.
    axes : tuple of int
        The order of the axes of rows, outermost first. Neighbouring rows of a program, and then
        programs, lie along the last one. An axis' number is that of the dim of what is reduced
        among those that are kept; dims that are split count once for each piece. Axes that are left
        out come first, in the order of the rules.
    loads_first : bool or None
        As in ``PointwiseParams``. Programs that loop over a row cannot.
    evict_hints : bool
        Loads in a loop over rows ask the L2 cache to drop what is read for the last time, and to
        keep what is read again.
    """

    can_align: ClassVar[bool] = True
    """Whether kernels of this scheduler support an ``align`` above 1."""

    block_x: Side
    block_r: Side
    persistent: bool
    tails: Tails = ()
    align: Side = 1
    axes: Axes = ()
    loads_first: bool | None = None
    evict_hints: bool = True

    @property
    def row_tiling(self) -> RowTiling:
        return RowTiling(
            rows=self.block_x,
            block=self.block_r,
            tails=self.tails,
            align=self.align,
            can_align=self.can_align,
            in_registers=self.persistent,
            evict_hints=self.evict_hints,
        )

    def _blocks(self) -> list[dict[str, int]]:
        behind = [{"block_x": self.block_x, "tails": size} for size in self.tails]
        return [*super()._blocks(), *behind]


@dataclass(frozen=True, kw_only=True)
class ReductionParams(_RowParams):
    """A reduction whose outputs are all reduced. Nothing is read twice."""

    scheduler: ClassVar[str] = "reduction"


@dataclass(frozen=True, kw_only=True)
class _RereadParams(_RowParams):
    """Rows are reduced and used again: from registers where ``persistent``, else in more passes.

    Attributes
    ----------
    backwards : bool
        Every second pass runs from the end of a row to its start: the end was read last and is
        still in the L2 cache. A pass that computes mean and variance with a masked last step runs
        forwards all the same.
    """

    backwards: bool = False

    @property
    def row_tiling(self) -> RowTiling:
        tiling = super().row_tiling
        return replace(tiling, backwards=self.backwards)


@dataclass(frozen=True, kw_only=True)
class InnerPersistentParams(_RereadParams):
    """Normalization along contiguous rows: results are used with the rows they came from."""

    scheduler: ClassVar[str] = "inner_persistent"


@dataclass(frozen=True, kw_only=True)
class OuterPersistentParams(_RereadParams):
    """Normalization along columns: as ``inner_persistent``, with axis x contiguous in memory."""

    scheduler: ClassVar[str] = "outer_persistent"
    can_align: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class InnerOuterPersistentParams(KernelParams):
    """Reductions along rows and over rows in one pass, as in the backward of a layer norm.

    A program loops over rows. It normalizes each, and keeps one partial sum per column in
    registers.

    Attributes
    ----------
    block_m : int
        Rows of a step of the loop.
    block_r : int
        Length of a row in elements, rounded up to a power of two, or down where ``tails`` hold the
        rest. Where ``parts`` is above 1, the same of a program's part of a row.
    tails : tuple of int
        Elements of up to three smaller tiles for the rest of a row.
    parts : int
        Programs that share a row. 1 where a program has whole rows. Above 1, each program reduces
        its part, publishes its sums to the others, and reads its part again to finish the row. The
        block and the tails are a part; the last part may be shorter.
    delay : int
        Steps of the loop between the sums of a shared row and its results, 1 or more. The sums of
        the other programs arrive in that time. All programs must be resident at a time.
    align : int
        Elements of a vector, as in ``InnerPersistentParams``. All rows of a program must begin at
        the same place of a vector.
    axes : tuple of int
        The order of the axes of rows, as in ``InnerPersistentParams``. Those that sums over the
        rows keep, along which programs lie, come before those that a program loops over.
    """

    scheduler: ClassVar[str] = "inner_outer_persistent"

    block_m: Side
    block_r: Side
    tails: Tails = ()
    parts: Annotated[int, Within(1, MAX_PARTS)] = 1
    delay: Annotated[int, Within(1)] = 1
    align: Side = 1
    axes: Axes = ()

    @property
    def row_tiling(self) -> RowTiling:
        return RowTiling(
            rows=self.block_m,
            block=self.block_r,
            tails=self.tails,
            align=self.align,
            can_align=True,
            in_registers=True,
        )


@dataclass(frozen=True, kw_only=True)
class ScanParams(KernelParams):
    """Scans along r. The state is carried from one step of the loop to the next.

    Attributes
    ----------
    block_x : int
        Rows a program.
    block_r : int
        Elements of a step of the loop.
    axes : tuple of int
        The order of the axes of rows, as in ``InnerPersistentParams``.
    evict_hints, loads_first : bool
        As in ``InnerPersistentParams``; ``loads_first`` may be None.
    """

    scheduler: ClassVar[str] = "scan"

    block_x: Side
    block_r: Side
    axes: Axes = ()
    loads_first: bool | None = None
    evict_hints: bool = True

    @property
    def row_tiling(self) -> RowTiling:
        return RowTiling(rows=self.block_x, block=self.block_r, evict_hints=self.evict_hints)


@dataclass(frozen=True, kw_only=True)
class MatmulParams(KernelParams):
    """A matrix product: a program loops over K and accumulates a tile of the result in registers.

    Attributes
    ----------
    block_m, block_n : int
        Sides of a tile of the result, 16 or more.
    block_k : int
        Elements of K a step, 16 or more.
    group_m : int
        Rows of tiles in a group, 1 or more. Programs finish a group before the next one, so that
        its tiles share columns of the right operand in the L2 cache.
    programs : int
        Persistent programs that loop over the tiles. 0 for one program a tile.
    parts : int
        Parts, 1 or 2, that the columns of a tile are cut into for the epilogue.
    descriptors : bool
        Loads and stores go through the copy engine (TMA) where layouts allow it.
    """

    scheduler: ClassVar[str] = "matmul"

    block_m: ProductSide
    block_n: ProductSide
    block_k: ProductSide
    group_m: Annotated[int, Within(1)] = 8
    programs: Annotated[int, Within(0)] = 0
    parts: Annotated[int, Within(1, 2)] = 1
    descriptors: bool = False

    def _blocks(self) -> list[dict[str, int]]:
        sides = {"block_m": self.block_m, "block_n": self.block_n, "block_k": self.block_k}
        return [{k: v for k, v in sides.items() if k != left} for left in sides]


@dataclass(frozen=True, kw_only=True)
class ExprEvalParams(HeuristicParams):
    """torch runs the segment: nothing to decide."""

    scheduler: ClassVar[str] = "expr_eval"
    retired: ClassVar[Mapping[str, Any]] = _NO_EFFECT


PARAMS: dict[str, type[HeuristicParams]] = {
    cls.scheduler: cls
    for cls in (
        NoOpParams,
        PointwiseParams,
        TransposeParams,
        ReductionParams,
        InnerPersistentParams,
        OuterPersistentParams,
        InnerOuterPersistentParams,
        ScanParams,
        MatmulParams,
        ExprEvalParams,
    )
}
"""Scheduler name -> its params class."""
