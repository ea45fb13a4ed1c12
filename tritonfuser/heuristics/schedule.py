"""``Schedule``: every decision between a simplified fusion and its kernels, as plain data.

Values are named as in ``repr(fd)``; those that a rewriting adds have the next free numbers. A
printed definition numbers its values anew where it is recorded: ``values`` says which is which.
The stages read a schedule in the order of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from ..errors import ParamsError
from .params import PARAMS, HeuristicParams, without_retired
from .plain_data.codec import decode, encode, normalized, refuse_unknown_keys
from .plain_data.limits import Within
from .plain_data.schema import DRAFT, object_of

VERSION = 1
"""Of the format of ``to_dict``. It grows when a field changes its meaning."""
_OWN_KEYS = ("version", "values", "segments")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReductionSplit:
    """A reduction, a scan, or the K of a matrix product, that is done in parts.

    Attributes
    ----------
    value : str
        The first result of the op.
    parts : int, tuple of int or str
        An int: about so many parts, as the extents have divisors. It is the same at all sizes.
        Heuristics may choose it anew at each size of a kernel with open sizes; a schedule has what
        they chose at the sizes that it was asked for. A list: for each reduced dim the factor that
        the second step reduces; ``-n`` for the factor that leaves ``n`` elements to the first. A
        name: parts as those of that maximum, below which exponentials are summed. Of a scan, whose
        row is padded: exactly so many parts.
    interleave : int
        0: parts are contiguous. Above: part ``i`` of ``n`` has elements ``i, i + n, ...``, and
        ``n`` is a multiple of this where the extents allow it.
    padded : int
        The reduced dim, by its place among them, that is padded to hold ``parts`` whole parts,
        whatever its extent; ``interleave`` is 1 where they are interleaved. A list of ``parts`` is
        then -1 for the dims of which each position has parts of its own, and 1 for the others.
        -1: none, but for an extent without divisors.
    remainder : bool
        Whether there are exactly ``parts`` equal parts of all reduced dims as one, and the second
        step reduces the elements behind them too, fewer than there are parts. Where there are no
        two elements for each part, the first dim is padded.
    """

    value: str
    parts: int | tuple[int, ...] | str
    interleave: Annotated[int, Within(0)] = 0
    padded: Annotated[int, Within(-1)] = -1
    remainder: bool = False

    def __post_init__(self) -> None:
        normalized(self, "split.")


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentSchedule:
    """One kernel, or one op that torch runs.

    Attributes
    ----------
    computes : tuple of str
        The first result of each reduction, scan and matrix product in the kernel, and of the op
        that torch runs. Pointwise ops and views are computed wherever they are read.
    stores : tuple of str
        The other values that it stores. ``tv3[1]`` is the second box of one stored box by box,
        ``tv3.copy`` the copy that a scatter writes into, ``tv3.put`` what it writes there.
    loads : tuple of str
        Values of other kernels that it loads although it could compute them.
    co_reduced : tuple of str
        Those of ``computes`` that reduce results of the kernel's own rows.
    overlap : bool
        The kernel may start while the one before it ends (programmatic dependent launch), on
        devices that can do that.
    finishes : bool
        It has no launch of its own: the programs that arrive last of the kernel whose results it
        reduces compute it. Warps are those of that kernel.
    beside : bool
        It shares the launch of the segment before it that has one, and needs nothing of it:
        programs are divided among both. Warps are those of that segment.
    params : HeuristicParams
        The scheduler's params; their class says which scheduler.
    """

    computes: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    co_reduced: tuple[str, ...] = ()
    overlap: bool = True
    finishes: bool = False
    beside: bool = False
    params: HeuristicParams

    def __post_init__(self) -> None:
        normalized(self, "segment.")
        if self.scheduler not in PARAMS:
            raise ParamsError(
                f"segment.params: expected those of a scheduler ({', '.join(PARAMS)}), "
                f"got {self.params}"
            )

    @property
    def scheduler(self) -> str:
        """The scheduler of the kernel."""
        return self.params.scheduler

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``scheduler``, and the fields."""
        return {"scheduler": self.scheduler, **encode(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the plain data, as that of params."""
        return restored_segment, (self.to_dict(),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewrites:
    """How a fusion is rewritten before it is cut into kernels.

    Attributes
    ----------
    pieces : tuple of str
        Reductions of concatenated tensors, each of which is reduced by itself.
    materialized : tuple of str
        Values that kernels behind a later op of torch read from memory.
    recomputed : tuple of str
        Values that such kernels compute again from those.
    invariants : tuple of str
        Values that are read from memory by all kernels that use them, as those are that do not run
        along all of their axes; inputs that are copied into the order of their dims. Those of
        ``tv3.permute(0, 2, 1)`` lie there as the result of that op would: dim 1 is innermost.
    products : tuple of str
        The matrix products that generated kernels compute. Torch runs the others.
    tile_splits : tuple of ReductionSplit
        Reductions of whole rows of a product, whose first step is done in the product's tiles.
    splits : tuple of ReductionSplit
        Reductions in two steps, of the fusion after ``tile_splits``.
    """

    pieces: tuple[str, ...] = ()
    materialized: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    tile_splits: tuple[ReductionSplit, ...] = ()
    splits: tuple[ReductionSplit, ...] = ()

    def __post_init__(self) -> None:
        normalized(self, "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """How a definition is cut into kernels, with the params of each.

    ``str`` is its JSON; ``to_dict`` and ``from_dict`` are plain data.

    Attributes
    ----------
    values : str
        The names of all values of the definition that it is of, in the order in which its print
        has them: ``tv0..2 tv5 tv3 c0``. A definition with as many values, as this print recorded
        again, has its values named so in kernels of this schedule. Empty: names are those of the
        definition that it is given to.
    rewrites : Rewrites
        What is materialized and split, which products are fused.
    segments : tuple of SegmentSchedule
        The kernels, and what torch runs, in execution order.
    """

    values: str = ""
    rewrites: Rewrites = Rewrites()
    segments: tuple[SegmentSchedule, ...] = ()

    def __post_init__(self) -> None:
        normalized(self, "")

    @property
    def reduced(self) -> frozenset[str]:
        """What kernels compute as reductions, scans or products: in one step, in two, in pieces."""
        splits = (*self.rewrites.tile_splits, *self.rewrites.splits)
        computed = {name for segment in self.segments for name in segment.computes}
        return frozenset(computed.union(self.rewrites.pieces, (split.value for split in splits)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-able; ``Schedule.from_dict`` turns it back."""
        segments = [segment.to_dict() for segment in self.segments]
        names = {"version": VERSION, "values": self.values}
        return {**names, **encode(self.rewrites), "segments": segments}

    def __str__(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the plain data, as that of params."""
        return restored_schedule, (self.to_dict(),)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of ``to_dict()``, from the dataclasses.

        It has types, limits, defaults and descriptions. Names of values and conditions between
        fields are those of a definition: ``from_dict`` and a run check them.
        """
        return _schema()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schedule:
        """The schedule that ``to_dict`` wrote. A missing field has its default, if it has one.

        Raises
        ------
        ParamsError
            Names the field by its path, ``segments[1].params.block_m``, what was expected and what
            came.
        """
        if not isinstance(data, Mapping):
            raise ParamsError(
                f"schedule: expected a dict as to_dict() makes it, got {type(data).__name__}"
            )
        _check_version(data.get("version"))
        values = data.get("values", "")
        if not isinstance(values, str):
            raise ParamsError(f"values: expected names in one text, got {values!r}")
        rest = {k: v for k, v in data.items() if k not in _OWN_KEYS}
        segments = data.get("segments")
        if not isinstance(segments, list | tuple):
            raise ParamsError(f"segments: expected a list of dicts, got {segments!r}")
        refuse_unknown_keys(data, _keys(Rewrites, *_OWN_KEYS), "")
        rewrites = decode(Rewrites, rest, "")
        found = (_segment(item, f"segments[{i}]") for i, item in enumerate(segments))
        return cls(values=values, rewrites=rewrites, segments=tuple(found))


def restored_schedule(data: Mapping[str, Any]) -> Schedule:
    """A schedule of a pickle; see ``Schedule.from_dict``."""
    return Schedule.from_dict(data)


def restored_segment(data: Mapping[str, Any]) -> SegmentSchedule:
    """A segment of a pickle."""
    return _segment(data, "segment")


def _schema() -> dict[str, Any]:
    """See ``Schedule.json_schema``."""
    each = [
        {"properties": {"scheduler": {"const": n}, "params": {"$ref": f"#/$defs/{n}"}}}
        for n in PARAMS
    ]
    scheduler = {"enum": list(PARAMS), "description": "The scheduler of the kernel."}
    also = {"scheduler": scheduler, "params": {"description": "The scheduler's params."}}
    segment = object_of(SegmentSchedule, also, left_out=("params",))
    version = {"enum": list(range(1, VERSION + 1)), "description": "Of the format."}
    values = {"type": "string", "description": "The names of all values, in order.", "default": ""}
    rest = object_of(Rewrites, {"version": version, "values": values})
    segments = {
        "type": "array",
        "description": "The kernels, and what torch runs, in execution order.",
        "items": {**segment, "required": ["scheduler", "params"], "oneOf": each},
    }
    return {
        "$schema": DRAFT,
        "title": "tritonfuser schedule",
        **rest,
        "description": "How a definition is cut into kernels, with the params of each.",
        "properties": {**rest["properties"], "segments": segments},
        "required": ["version", "segments"],
        "$defs": {name: _params_schema(kind) for name, kind in PARAMS.items()},
    }


def _params_schema(kind: type[HeuristicParams]) -> dict[str, Any]:
    """Fields that did nothing and are gone may have the value that they were written with."""
    retired = {n: {"const": value, "deprecated": True} for n, value in kind.retired.items()}
    return object_of(kind, retired)


def _check_version(version: object) -> None:
    if type(version) is not int or version not in range(1, VERSION + 1):
        raise ParamsError(f"version: expected 1 to {VERSION}, got {version!r}")


def _keys(kind: type[Any], *also: str) -> list[str]:
    """The keys that a dict for a class may have; its fields may be among ``also``."""
    return list(dict.fromkeys((*also, *(row.name for row in fields(kind)))))


def _segment(data: Any, where: str) -> SegmentSchedule:
    if isinstance(data, SegmentSchedule):
        return data
    if not isinstance(data, Mapping):
        raise ParamsError(f"{where}: expected a dict, got {data!r}")
    scheduler = data.get("scheduler")
    refuse_unknown_keys(data, _keys(SegmentSchedule, "scheduler", "params"), where)
    for key in ("scheduler", "params"):
        if key not in data:
            raise ParamsError(f"{where}: missing key {key!r}")
    if not isinstance(scheduler, str) or scheduler not in PARAMS:
        raise ParamsError(
            f"{where}.scheduler: expected one of {', '.join(PARAMS)}, got {scheduler!r}"
        )
    params = _params(PARAMS[scheduler], data.get("params"), f"{where}.params")
    names = {k: v for k, v in data.items() if k not in ("scheduler", "params")}
    made = decode(SegmentSchedule, {**names, "params": params}, where)
    assert isinstance(made, SegmentSchedule)
    return made


def _params(found: type[HeuristicParams], data: Any, where: str) -> HeuristicParams:
    """Params of a class. What their constructor refuses is named by its path too."""
    try:
        made = decode(found, without_retired(found, data, where), where)
    except ParamsError as error:
        named = f"{found.scheduler} params"
        if not error.message.startswith(named):
            raise
        raise ParamsError(where + error.message.removeprefix(named), hint=error.hint) from None
    assert isinstance(made, HeuristicParams)
    return made
