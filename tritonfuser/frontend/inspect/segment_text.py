"""The text of a report: a row of its table and the lines below it, for each segment."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from ...errors import SourceLoc
from ...heuristics.bounds import Bound
from ...heuristics.cost.model import KernelTime
from ..vocabulary.units import bytes_text, seconds_text
from .segment_report import SegmentReport

BUSY = 0.1
"""Share of the bound from which on a resource is named beside the one that limits."""


def row(segment: SegmentReport) -> dict[str, str]:
    """The row of a segment in the table of all, by column."""
    cells = {
        "segment": segment.name,
        "scheduler": segment.scheduler,
        "ops": str(len(segment.ops)),
        "grid": "" if segment.grid is None else " x ".join(map(str, segment.grid)),
        "read": bytes_text(segment.bytes_read),
        "written": bytes_text(segment.bytes_written),
        "predicted": seconds_text(segment.predicted_seconds),
        "at least": seconds_text(segment.bound.seconds),
        "limited by": segment.bound.limit,
    }
    if segment.model is not None:
        cells["model"] = seconds_text(segment.model.seconds)
    if segment.measured_seconds is not None:
        share = segment.speed_of_light
        cells["measured"] = seconds_text(segment.measured_seconds)
        cells["of speed of light"] = "" if share is None else f"{share:.0%}"
    reached = segment.share_of_bound
    if reached is not None:
        cells["of bound"] = f"{reached:.0%}"
    return cells


def bound_text(found: Bound) -> str:
    """``7.86 us, memory; integer 3.1 us``: the resources that are busy for a tenth of the time."""
    limit, *others = found.resources
    busy = [f"{name} {seconds_text(s)}" for name, s in others if s >= BUSY * limit[1]]
    again = [f"{bytes_text(found.bytes_again)} are read twice, since they do not fit on the chip"]
    more = [*(again if found.bytes_again else ()), *busy]
    return "; ".join([f"{seconds_text(limit[1])}, {limit[0]}", *more])


def _model_text(found: KernelTime) -> str:
    """``9.1 us; memory 7.2 us, instructions 3.0 us; 40 registers``."""
    ranked = sorted(found.resources.items(), key=lambda item: -item[1])
    busy = [f"{n} {seconds_text(s)}" for n, s in ranked if s >= BUSY * ranked[0][1] and s > 0]
    parts = [seconds_text(found.seconds), ", ".join(busy)]
    limit = f"of {found.register_limit:.0f} registers a thread"
    parts += [f"about {found.registers:.0f} {limit}"] if found.registers else []
    return "; ".join(part for part in parts if part)


def details(segment: SegmentReport) -> str:
    """What the table does not say of a segment, a line each."""
    lines = [f"why: {segment.reason}", f"params: {segment.params}"]
    if segment.overruled:
        lines.append(f"why params: {segment.overruled}")
    if segment.bound.limit:
        lines.append(f"at least: {bound_text(segment.bound)}")
    if segment.model is not None:
        lines.append(f"model: {_model_text(segment.model)}")
    lines.append(f"ops: {', '.join(segment.ops)}")
    if segment.lines:
        lines.append(f"recorded at: {_places(segment.lines)}")
    if segment.finishes:
        lines.append(f"launch: none, the last programs of {segment.finishes} compute it")
    if segment.beside:
        lines.append(f"launch: that of {segment.beside}, whose programs are divided among both")
    if segment.cut:
        lines.append(f"cut: {segment.cut}")
    lines += [f"not {refusal}" for refusal in segment.refusals]
    head = segment.name if not segment.kernel else f"{segment.name}: {segment.kernel}"
    return f"{head}\n{indent(chr(10).join(lines), '  ')}"


def _places(lines: Sequence[SourceLoc]) -> str:
    """``model.py:12, 14, 15``, file by file."""
    files: dict[str, list[int]] = {}
    for loc in lines:
        files.setdefault(loc.file, []).append(loc.line)
    return "; ".join(f"{file}:{', '.join(map(str, found))}" for file, found in files.items())
