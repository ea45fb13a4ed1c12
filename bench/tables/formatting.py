"""Figures as text: bytes, seconds, ratios, tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from tabulate import tabulate

from tritonfuser.lowering.backend.kernel_report import KernelReport


def human_bytes(count: float) -> str:
    """``12.3 MB``."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def human_seconds(seconds: float) -> str:
    """``12.3 us``."""
    for unit in ("s", "ms", "us"):
        if seconds >= 1 or unit == "us":
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    raise AssertionError("unreachable")


def geomean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of positive numbers, of those that are known."""
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def human_ratio(ratio: float | None) -> str:
    """``1.52x``; nothing where there is none."""
    return "" if ratio is None else f"{ratio:.2f}x"


def machine_code(report: KernelReport) -> dict[str, int]:
    """What a kernel is like as compiled: columns of every table without a GPU."""
    return {
        "registers": report.registers,
        "spilled": report.spill_bytes,
        "shared": report.shared_bytes,
        "load": report.max_load_bytes,
        "store": report.max_store_bytes,
    }


def table(rows: Iterable[dict[str, Any]], style: str = "simple") -> str:
    """Rows as a table; ``style`` is one of tabulate's, ``"github"`` for Markdown."""
    text: str = tabulate(list(rows), headers="keys", disable_numparse=True, tablefmt=style)
    return text
