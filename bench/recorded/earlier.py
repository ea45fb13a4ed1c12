"""Results of earlier runs, so that a run in parts goes on where the last part ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..measure.kernel_times import KernelTimes
from ..tables.records import OURS
from .definition_results import Result, SegmentLine


def earlier(paths: Sequence[Path]) -> list[Result]:
    """The results of files of ``--json`` that have a time of tritonfuser; the last file counts."""
    found: dict[str, Result] = {}
    for path in paths:
        for item in json.loads(path.read_text())["definitions"]:
            result = _result(item)
            if OURS in result.times:
                found[result.name] = result
    return list(found.values())


def _result(item: dict[str, Any]) -> Result:
    times = {who: KernelTimes(**times) for who, times in item["times"].items()}
    segments = tuple(SegmentLine(**segment) for segment in item["segments"])
    return Result(**{**item, "times": times, "segments": segments})
