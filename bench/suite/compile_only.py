"""Compile the suite without a GPU: registers, spills and memory accesses of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tritonfuser.frontend.vocabulary.units import bytes_text

from ..cases import size_name
from ..processes.jobs import JobContext, Outcome
from ..processes.workers import run_jobs
from ..tables.formatting import machine_code
from .selection import Row


@dataclass
class Compilation:
    """A job for a worker: compile one row for an architecture; the result is a line per segment."""

    row: Row
    arch: str

    def prepare(self, context: JobContext) -> None:
        """Compile the row."""
        self._lines = self._compiled()

    def measure(self) -> list[dict[str, Any]]:
        """The lines of the row."""
        return self._lines

    def _compiled(self) -> list[dict[str, Any]]:
        case, dtype = self.row.of, self.row.torch_dtype
        inputs = case.inputs(self.row.size, dtype, "meta")
        fd = case.record(self.row.size, dtype)
        explained = fd.explain(inputs, measure=False, arch=self.arch)
        found = {r.name: machine_code(r) for r in fd.compile_for(self.arch, inputs)}
        least = case.bytes(fd, self.row.size, dtype)
        return [
            {
                **_named(self.row),
                "kernel": segment.kernel or segment.name,
                "scheduler": segment.scheduler,
                "params": str(segment.params),
                "bytes": segment.bytes_read + segment.bytes_written,
                "of_minimum": (segment.bytes_read + segment.bytes_written) / least,
                **found.get(segment.kernel or "", {}),
            }
            for segment in explained.segments
        ]


def _named(row: Row) -> dict[str, Any]:
    return {"case": row.case, "size": size_name(row.size), "dtype": row.dtype}


def compile_rows(rows: Sequence[Row], arch: str, processes: int) -> list[dict[str, Any]]:
    """Compile the rows; returns one line per kernel, in order."""
    outcomes = run_jobs([Compilation(row, arch) for row in rows], processes)
    return [line for row, found in zip(rows, outcomes, strict=True) for line in _lines(row, found)]


def _lines(row: Row, outcome: Outcome) -> list[dict[str, Any]]:
    if outcome.error is None:
        return list(outcome.result)
    return [{**_named(row), "kernel": f"failed: {outcome.error}"}]


def shown(lines: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Format the lines for a table."""
    return [
        {
            "case": line["case"],
            "size": line["size"],
            "dtype": line["dtype"],
            "kernel": line["kernel"],
            "registers": str(line.get("registers", "")),
            "spilled": str(line.get("spilled", "")),
            "shared": str(line.get("shared", "")),
            "load": str(line.get("load", "")),
            "store": str(line.get("store", "")),
            "moves": bytes_text(line["bytes"]) if "bytes" in line else "",
            "of the least": f"{line['of_minimum']:.2f}" if "of_minimum" in line else "",
        }
        for line in lines
    ]


def static_changes(
    before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> list[dict[str, str]]:
    """Table of the changes between two lists of lines, by row."""
    keys = ("registers", "spilled", "shared", "load", "store", "bytes", "params")
    return [
        {"row": name, "what": key, "before": old, "now": new}
        for name, then in _by_row(before).items()
        for here in [_by_row(now).get(name)]
        if here is not None
        for key in ("kernels", *keys)
        for old, new in [(_all(then, key), _all(here, key))]
        if old != new
    ]


def _by_row(lines: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        found.setdefault(f"{line['case']} {line['size']} {line['dtype']}", []).append(line)
    return found


def _all(lines: Sequence[dict[str, Any]], key: str) -> str:
    if key == "kernels":
        return str(len(lines))
    return ", ".join(str(line.get(key, "")) for line in lines)
