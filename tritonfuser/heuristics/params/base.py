"""Params of any scheduler: checked, to a plain dict and back; and those of any kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from ...device import MAX_BLOCK_ELEMENTS, MAX_REGISTERS_PER_THREAD
from ...errors import ParamsError
from ..plain_data.codec import decode, encode, normalized
from ..plain_data.limits import Within
from .fields import MAX_STAGES, MAX_WARPS

PARAMS: dict[str, type[HeuristicParams]] = {}
"""Scheduler name -> its params class. The package writes it once it has imported all of them."""

_P = TypeVar("_P", bound="HeuristicParams")


class RowTiling(NamedTuple):
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
        Elements of a vector, if tiles begin at whole vectors. 1 if they begin where rows do.
    can_align : bool
        Whether kernels of this scheduler support an ``align`` above 1.
    in_registers : bool
        The whole row is held in registers. False where a program loops over blocks.
    backwards : bool
        Every second loop over a row runs from its end to its start.
    evict_hints : bool
        Loads of a row carry eviction hints for the L2 cache.
    unroll : int
        Factor by which the loop over a row is unrolled.
    staged : bool
        Each thread has whole rows, which are loaded through shared memory.
    """

    rows: int
    block: int
    tails: tuple[int, ...] = ()
    align: int = 1
    can_align: bool = False
    in_registers: bool = False
    backwards: bool = False
    evict_hints: bool = True
    unroll: int = 1
    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class HeuristicParams:
    """What a scheduler decides for one segment."""

    scheduler: ClassVar[str] = ""

    retired: ClassVar[Mapping[str, Any]] = {}
    """Fields that the class had, with the value that they had in all data that was written."""

    has_kernel: ClassVar[bool] = False
    """Whether a generated kernel computes the segment."""

    loops_over_rows: ClassVar[bool] = False
    """Whether a program takes rows one step after the other, and keeps sums over them."""

    def __post_init__(self) -> None:
        self.validate()

    @property
    def row_tiling(self) -> RowTiling | None:
        """How rows are cut into tiles. None where the kernels have no rows."""
        return None

    @property
    def row_parts(self) -> int:
        """Programs that share a row."""
        return 1

    @property
    def prefetches(self) -> bool:
        """Whether the loads of a loop's step are begun a step ahead, into registers."""
        return False

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

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the plain data: fields by name, which are checked where it is read."""
        return restored_params, (self.to_dict(),)

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


def restored_params(data: Mapping[str, Any]) -> HeuristicParams:
    """Params of a pickle; see ``HeuristicParams.from_dict``."""
    return HeuristicParams.from_dict(data)


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
        Limit on the registers of a thread, 16 to 255. 0 for the compiler's choice. It is at most
        what a multiprocessor has for the threads of one program. A limit that makes the kernel
        spill is dropped if the kernel does not spill without it, unless all programs have to be
        resident at a time. A limit that leaves fewer resident programs than the cost model expects
        is lowered if that spills little. ``KernelReport.max_registers`` is the one that was used.
    """

    has_kernel: ClassVar[bool] = True

    tile_sides: ClassVar[int] = 1
    """Sides of a tile, and axes that programs are numbered along."""

    num_warps: Annotated[int, Within(1, MAX_WARPS, powers_of_two=True)] = 4
    num_stages: Annotated[int, Within(1, MAX_STAGES)] = 1
    max_registers: Annotated[int, Within(16, MAX_REGISTERS_PER_THREAD, also=(0,))] = 0

    @property
    def positions(self) -> int:
        """Adjacent positions of a program, if programs are numbered along one axis."""
        return 1

    @property
    def waiting_bytes(self) -> int:
        """Lower bound of the shared memory, in bytes, for what a loop loads ahead."""
        return 0

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
