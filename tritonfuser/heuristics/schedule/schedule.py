"""``Schedule``: every decision between a simplified fusion and its kernels, as plain data.

Values are named as in ``repr(fd)``; those that a rewriting adds have the next free numbers. A
printed definition numbers its values anew where it is recorded: ``values`` says which is which.
The stages read a schedule in the order of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ParamsError
from ..plain_data.codec import decode, encode, normalized, refuse_unknown_keys
from .rewrites import AS_RECORDED, Rewrites
from .schema import schedule_schema
from .segment_schedule import SegmentSchedule, keys_of, segment_of

VERSION = 1
"""Of the format of ``to_dict``. It grows when a field changes its meaning."""
_OWN_KEYS = ("version", "values", "segments")


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
    rewrites: Rewrites = AS_RECORDED
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
        return schedule_schema(VERSION)

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
        refuse_unknown_keys(data, keys_of(Rewrites, *_OWN_KEYS), "")
        rewrites = decode(Rewrites, rest, "")
        found = (segment_of(item, f"segments[{i}]") for i, item in enumerate(segments))
        return cls(values=values, rewrites=rewrites, segments=tuple(found))


def restored_schedule(data: Mapping[str, Any]) -> Schedule:
    """A schedule of a pickle; see ``Schedule.from_dict``."""
    return Schedule.from_dict(data)


def _check_version(version: object) -> None:
    if type(version) is not int or version not in range(1, VERSION + 1):
        raise ParamsError(f"version: expected 1 to {VERSION}, got {version!r}")
