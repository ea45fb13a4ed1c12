"""The JSON Schema of schedules."""

from __future__ import annotations

from typing import Any

from ..params import PARAMS, HeuristicParams
from ..plain_data.schema import DRAFT, object_of
from .rewrites import Rewrites
from .segment_schedule import SegmentSchedule


def schedule_schema(version: int) -> dict[str, Any]:
    """The JSON Schema of schedules, of this version and the ones before it."""
    each = [
        {"properties": {"scheduler": {"const": n}, "params": {"$ref": f"#/$defs/{n}"}}}
        for n in PARAMS
    ]
    scheduler = {"enum": list(PARAMS), "description": "The scheduler of the kernel."}
    also = {"scheduler": scheduler, "params": {"description": "The scheduler's params."}}
    segment = object_of(SegmentSchedule, also, left_out=("params",))
    versions = {"enum": list(range(1, version + 1)), "description": "Of the format."}
    values = {"type": "string", "description": "The names of all values, in order.", "default": ""}
    rest = object_of(Rewrites, {"version": versions, "values": values})
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
