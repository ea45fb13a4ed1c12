"""``SegmentSchedule``: one kernel of a schedule, to plain data and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...errors import ParamsError
from ..params import PARAMS, HeuristicParams, without_retired
from ..plain_data.codec import decode, encode, normalized, refuse_unknown_keys


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


def restored_segment(data: Mapping[str, Any]) -> SegmentSchedule:
    """A segment of a pickle."""
    return segment_of(data, "segment")


def segment_of(data: Any, where: str) -> SegmentSchedule:
    """A segment from plain data.

    Parameters
    ----------
    data : mapping
        As ``to_dict`` writes it.
    where : str
        Its path, for errors.

    Raises
    ------
    ParamsError
        Names the field by its path.
    """
    if isinstance(data, SegmentSchedule):
        return data
    if not isinstance(data, Mapping):
        raise ParamsError(f"{where}: expected a dict, got {data!r}")
    scheduler = data.get("scheduler")
    refuse_unknown_keys(data, keys_of(SegmentSchedule, "scheduler", "params"), where)
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


def keys_of(kind: type[Any], *also: str) -> list[str]:
    """The keys that a dict for a class may have; its fields may be among ``also``."""
    return list(dict.fromkeys((*also, *(row.name for row in fields(kind)))))
