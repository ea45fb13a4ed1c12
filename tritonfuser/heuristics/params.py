"""What a scheduler decides for one kernel: a frozen dataclass for each, to a plain dict and back.

Sizes are in elements and powers of two, as Triton's blocks are. x runs over the positions of the
output (of what stays), r over the elements that are reduced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, get_type_hints

from ..device import MAX_BLOCK_ELEMENTS
from ..errors import ParamsError
from .codec import decode, encode

MAX_TAILS = 3
"""Most tiles for what is left of a row."""

MAX_WARPS = 32
"""Most warps of one program: 1024 threads on NVIDIA."""

_P = TypeVar("_P", bound="HeuristicParams")


@dataclass(frozen=True, kw_only=True)
class HeuristicParams:
    """What all schedulers decide. Fields named ``block_*`` are the sides of a kernel's tile.

    Attributes
    ----------
    num_warps : int
        Warps of a program, a power of two up to 32.
    num_stages : int
        Depth of the software pipeline of the kernel's loop: loads of how many steps are in
        flight at once; 1 means none ahead.
    max_registers : int
        Most registers of a thread, 16 to 255; 0 for as many as the compiler takes.
    """

    scheduler: ClassVar[str] = ""

    num_warps: int = 4
    num_stages: int = 1
    max_registers: int = 0

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Check types and limits.

        Raises
        ------
        ParamsError
            Says which field is wrong and what it may be.
        """
        hints = get_type_hints(type(self))
        for row in fields(self):
            value = getattr(self, row.name)
            decode(hints[row.name], value, f"{self.scheduler} params.{row.name}")
        for size in getattr(self, "tails", ()):
            self._expect(_is_power_of_two(size), "tails", size, "powers of two, 1 or more")
        self._expect(len(getattr(self, "tails", ())) <= MAX_TAILS, "tails", self, "3 at most")
        align = getattr(self, "align", 1)
        self._expect(_is_power_of_two(align), "align", align, "a power of two")
        for sides in self._blocks():
            for name, size in sides.items():
                self._expect(_is_power_of_two(size), name, size, "a power of two, 1 or more")
            total = math.prod(sides.values())
            if total > MAX_BLOCK_ELEMENTS:
                raise ParamsError(
                    f"{self.scheduler} params: {' * '.join(sides)} is {total}, "
                    f"a block of Triton holds at most {MAX_BLOCK_ELEMENTS} elements"
                )
        warps, stages = self.num_warps, self.num_stages
        fits = _is_power_of_two(warps) and warps <= MAX_WARPS
        self._expect(fits, "num_warps", warps, f"a power of two, 1 to {MAX_WARPS}")
        self._expect(stages >= 1, "num_stages", stages, "1 or more")
        limit = self.max_registers
        self._expect(limit == 0 or 16 <= limit <= 255, "max_registers", limit, "0, or 16 to 255")

    def _blocks(self) -> list[dict[str, int]]:
        """The sides of each tile that a kernel has."""
        return [{k: v for k, v in vars(self).items() if k.startswith("block_")}]

    def _expect(self, holds: bool, name: str, value: object, expected: str) -> None:
        if not holds:
            raise ParamsError(f"{self.scheduler} params.{name}: expected {expected}, got {value}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-able; ``HeuristicParams.from_dict`` turns it back."""
        return {"scheduler": self.scheduler, **encode(self)}

    @classmethod
    def from_dict(cls: type[_P], data: Mapping[str, Any]) -> _P:
        """The params that ``to_dict`` wrote; every key must be there, and no other.

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
        made = decode(found, rest, f"{found.scheduler} params")
        assert isinstance(made, cls)
        return made


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _class_of(data: Mapping[str, Any], wanted: type[HeuristicParams]) -> type[HeuristicParams]:
    choices = {n: c for n, c in PARAMS.items() if issubclass(c, wanted)}
    if "scheduler" not in data:
        raise ParamsError(f"params: missing key 'scheduler', expected one of {', '.join(choices)}")
    name = data["scheduler"]
    if not isinstance(name, str) or name not in choices:
        raise ParamsError(f"params.scheduler: expected one of {', '.join(choices)}, got {name!r}")
    return choices[name]


@dataclass(frozen=True, kw_only=True)
class NoOpParams(HeuristicParams):
    """No kernel runs: every output is a view of an input, or empty."""

    scheduler: ClassVar[str] = "no_op"


@dataclass(frozen=True, kw_only=True)
class PointwiseParams(HeuristicParams):
    """Every program computes ``block_x`` elements of the flattened output.

    Attributes
    ----------
    block_x : int
        Elements a program.
    vectorization_factor : int
        Most neighbouring elements of a lane; 0 for as many as its widest load takes.
    """

    scheduler: ClassVar[str] = "pointwise"

    block_x: int
    vectorization_factor: int = 0

    def validate(self) -> None:
        super().validate()
        factor = self.vectorization_factor
        fits = factor == 0 or _is_power_of_two(factor)
        self._expect(fits, "vectorization_factor", factor, "a power of two, or 0")


@dataclass(frozen=True, kw_only=True)
class TransposeParams(HeuristicParams):
    """Every program computes a tile over the two dims that lie fastest in some tensor.

    Attributes
    ----------
    block_x : int
        Side of the tile along the output's fastest dim, in elements.
    block_y : int
        Side along the dim that is fastest in the other tensors, in elements.
    """

    scheduler: ClassVar[str] = "transpose"

    block_x: int
    block_y: int


@dataclass(frozen=True, kw_only=True)
class _XRParams(HeuristicParams):
    """A program has ``block_x`` positions and takes ``block_r`` reduced elements of each at once.

    Attributes
    ----------
    block_x : int
        Positions (rows) a program.
    block_r : int
        Reduced elements a step of the loop; the whole reduced extent, rounded up to a power of
        two, where ``persistent``.
    persistent : bool
        True: all of the reduced elements are in registers at once, read once. False: a loop of
        steps, and what is needed again is read again in each pass.
    tails : tuple of int
        Elements of tiles for what whole blocks of ``block_r`` leave of a row, or more of its end,
        one behind the other; none where a tile that reaches past the row's end wastes little.
        They stay in registers where blocks are walked over.
    align : int
        Elements of a vector where rows begin inside of one: tiles then begin at the first whole
        vector of a row, and the last tail takes what lies before it and behind the last. Else 1.
    """

    block_x: int
    block_r: int
    persistent: bool
    tails: tuple[int, ...] = ()
    align: int = 1

    def _blocks(self) -> list[dict[str, int]]:
        behind = [{"block_x": self.block_x, "tails": size} for size in self.tails]
        return [*super()._blocks(), *behind]


@dataclass(frozen=True, kw_only=True)
class ReductionParams(_XRParams):
    """A reduction whose outputs are all reduced; nothing is read twice."""

    scheduler: ClassVar[str] = "reduction"


@dataclass(frozen=True, kw_only=True)
class _AgainParams(_XRParams):
    """What is reduced is used again: from registers where ``persistent``, else in further walks.

    Attributes
    ----------
    backwards : bool
        Every second walk begins at the end of the row, which was read last and is still in the
        L2 cache where whole rows are not; but for one that finds a mean with its spread by steps of
        which the last is not full.
    evict_hints : bool
        Ask the L2 cache to keep a row until its last walk.
    """

    backwards: bool = False
    evict_hints: bool = True


@dataclass(frozen=True, kw_only=True)
class InnerPersistentParams(_AgainParams):
    """Normalization along rows: reduced results are used with the rows they came from."""

    scheduler: ClassVar[str] = "inner_persistent"


@dataclass(frozen=True, kw_only=True)
class OuterPersistentParams(_AgainParams):
    """Normalization along columns: as inner_persistent, neighbours lie along x."""

    scheduler: ClassVar[str] = "outer_persistent"


@dataclass(frozen=True, kw_only=True)
class InnerOuterPersistentParams(HeuristicParams):
    """Both ways at once, as in the backward of a layer norm: rows are normalized while sums

    over all rows are kept in registers, one partial sum a program.

    Attributes
    ----------
    block_m : int
        Rows a step of a program's loop over its rows.
    block_r : int
        Length of a row in elements, rounded up to a power of two, or down if there are tails.
    tails : tuple of int
        Elements of smaller tiles for what ``block_r`` leaves of a row.
    parts : int
        Programs that share a row, a power of two: each has ``block_r`` elements and the tails
        of it, tells the others what it sums up, and reads its part again to finish it. 1 where a
        row is one program's.
    delay : int
        Steps between a shared row's sums and its results: while they pass, the programs hear
        from one another. All programs must be on the device at a time.
    align : int
        Elements of a vector where rows begin inside of one, as in ``InnerPersistentParams``; a
        program's rows then all begin at the same place of a vector.
    """

    scheduler: ClassVar[str] = "inner_outer_persistent"

    block_m: int
    block_r: int
    tails: tuple[int, ...] = ()
    parts: int = 1
    delay: int = 1
    align: int = 1

    def validate(self) -> None:
        super().validate()
        self._expect(_is_power_of_two(self.parts), "parts", self.parts, "a power of two")
        self._expect(self.delay >= 1, "delay", self.delay, "1 or more")


@dataclass(frozen=True, kw_only=True)
class ScanParams(HeuristicParams):
    """Running results along r, carried from step to step.

    Attributes
    ----------
    block_x : int
        Rows a program.
    block_r : int
        Elements a step.
    """

    scheduler: ClassVar[str] = "scan"

    block_x: int
    block_r: int


@dataclass(frozen=True, kw_only=True)
class MatmulParams(HeuristicParams):
    """A matrix product: every tile of the result is summed along K in a loop, in registers.

    Attributes
    ----------
    block_m, block_n : int
        Sides of a tile of the result, 16 or more.
    block_k : int
        Elements of K a step, 16 or more.
    group_m : int
        Rows of tiles that are taken together, so that they share columns of the right operand.
    programs : int
        Programs that walk over the tiles; 0 for one a tile.
    parts : int
        1 or 2: in how many column parts of a tile what follows the product is computed.
    descriptors : bool
        Let the copy engine (TMA) fetch operands and write results, where their layout allows it.
    """

    scheduler: ClassVar[str] = "matmul"

    block_m: int
    block_n: int
    block_k: int
    group_m: int = 8
    programs: int = 0
    parts: int = 1
    descriptors: bool = False

    def _blocks(self) -> list[dict[str, int]]:
        sides = {"block_m": self.block_m, "block_n": self.block_n, "block_k": self.block_k}
        return [{k: v for k, v in sides.items() if k != left} for left in sides]

    def validate(self) -> None:
        super().validate()
        for sides in self._blocks():
            for name, size in sides.items():
                self._expect(size >= 16, name, size, "16 or more")
        self._expect(self.group_m >= 1, "group_m", self.group_m, "1 or more")
        self._expect(self.programs >= 0, "programs", self.programs, "0 or more")
        self._expect(self.parts in (1, 2), "parts", self.parts, "1 or 2")


@dataclass(frozen=True, kw_only=True)
class ExprEvalParams(HeuristicParams):
    """The segment is run by torch: nothing to decide."""

    scheduler: ClassVar[str] = "expr_eval"


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
