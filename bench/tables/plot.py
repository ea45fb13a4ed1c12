"""Plot of the share of copy bandwidth by size: one panel per suite, one line per case."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from .records import LARGE, OURS, Record
from .summary import MEDIAN, WORST

drawing: Any
try:
    from matplotlib import figure as drawing
except ImportError:
    drawing = None

COLUMNS = 2
COLOURS = (
    "#1f5fa8", "#d1650a", "#2a8a4a", "#b3262e", "#7a4fa3", "#8a5a3c", "#c94f9b", "#5f6b73",
    "#9a9a1f", "#1796a6",
)  # fmt: skip
MARKERS = "osD^vP"
NEAR = 8
"""Points per doubling: sizes that round to the same eighth of an octave are averaged."""


def check_plot() -> None:
    """Check before a run that plots can be drawn.

    Raises
    ------
    SystemExit
        matplotlib is not installed.
    """
    if drawing is None:
        raise SystemExit('--plot needs matplotlib: pip install "tritonfuser[bench]"')


def save_plot(records: Sequence[Record], path: Path, dtype: str = "bfloat16") -> None:
    """Plot the measured rows of one dtype.

    Raises
    ------
    SystemExit
        No row of the dtype was measured.
    """
    shown = [r for r in records if OURS in r.times and r.dtype == dtype]
    if not shown:
        raise SystemExit(f"python -m bench: nothing was measured in {dtype}, so there is no plot")
    suites = list(dict.fromkeys(record.suite for record in shown))
    of_suite = {suite: [r for r in shown if r.suite == suite] for suite in suites}
    span = _span(shown)
    rows = -(-len(suites) // COLUMNS)
    columns = min(COLUMNS, len(suites))
    figure = drawing.Figure(figsize=(7.5 * columns, 4.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for place, panel in enumerate(axes.flat):
        if place < len(suites):
            _panel(panel, suites[place], of_suite[suites[place]], span)
        else:
            panel.set_axis_off()
    figure.suptitle(f"Speed of the generated kernels, {dtype}: share of a copy's bandwidth")
    figure.savefig(path, dpi=110)


def _panel(panel: Any, suite: str, records: Sequence[Record], span: tuple[float, float]) -> None:
    for number, case in enumerate(dict.fromkeys(record.case for record in records)):
        _line(panel, number, case, [r for r in records if r.case == case])
    panel.axhline(100 * MEDIAN, color="#444444", linewidth=0.8, linestyle="--")
    panel.axhline(100 * WORST, color="#444444", linewidth=0.8, linestyle=":")
    panel.axvspan(span[0], LARGE / 2**20, color="#000000", alpha=0.05, linewidth=0)
    panel.set_xscale("log")
    panel.set_xlim(*span)
    panel.set_xticks([1, 4, 16, 64, 256, 1024, 4096], [str(4**n) for n in range(7)], minor=False)
    panel.set_xticks([], minor=True)
    panel.set_ylim(0, 115)
    panel.set_title(suite, loc="left", fontweight="bold")
    panel.set_xlabel("MiB to move")
    panel.set_ylabel("% of copy bandwidth")
    panel.grid(visible=True, color="#dddddd", linewidth=0.6)
    panel.legend(fontsize=7, ncols=2, loc="lower right", framealpha=0.85)


def _line(panel: Any, number: int, case: str, records: Sequence[Record]) -> None:
    """One marker per size; the line connects the means of nearly equal sizes."""
    points = sorted((r.bytes / 2**20, 100 * (r.speed_of_light() or 0)) for r in records)
    colour = COLOURS[number % len(COLOURS)]
    marker = MARKERS[number % len(MARKERS)]
    near = groupby(points, key=lambda point: round(NEAR * math.log2(point[0])))
    means = [[statistics.mean(values) for values in zip(*group, strict=True)] for _, group in near]
    panel.plot(*zip(*points, strict=True), marker, color=colour, markersize=4)
    panel.plot(
        *zip(*means, strict=True),
        "-" if number < len(COLOURS) else "--",
        color=colour,
        marker=marker,
        markersize=0,
        linewidth=1.1,
        alpha=0.7,
    )
    # One legend entry for both.
    panel.plot([], [], marker + ("-" if number < len(COLOURS) else "--"), color=colour, label=case)


def _span(records: Sequence[Record]) -> tuple[float, float]:
    sizes = [record.bytes / 2**20 for record in records]
    return min(sizes) / 1.5, max(sizes) * 1.5
