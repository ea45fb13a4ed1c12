"""Figures as text: means, ratios, tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from tabulate import tabulate

from tritonfuser.lowering.backend.kernel_report import KernelReport


def known(values: Iterable[float | None]) -> list[float]:
    """The numbers that are not None."""
    return [value for value in values if value is not None]


def geomean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the numbers that are not None."""
    numbers = known(values)
    return statistics.geometric_mean(numbers) if numbers else None


def human_ratio(ratio: float | None) -> str:
    """``1.52x``; empty for None."""
    return "" if ratio is None else f"{ratio:.2f}x"


def machine_code(report: KernelReport) -> dict[str, int]:
    """Columns of a compiled kernel, for tables without a GPU."""
    return {
        "registers": report.registers,
        "spilled": report.spill_bytes,
        "shared": report.shared_bytes,
        "load": report.max_load_bytes,
        "store": report.max_store_bytes,
    }


def table(rows: Iterable[dict[str, Any]], style: str = "simple") -> str:
    """Format rows as a table; ``style`` is one of tabulate's, ``"github"`` for Markdown."""
    text: str = tabulate(list(rows), headers="keys", disable_numparse=True, tablefmt=style)
    return text
