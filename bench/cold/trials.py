"""Child processes that time first runs, and the table of their times."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from ..processes.child_process import ChildError, output_of
from ..tables.formatting import human_ratio
from ..tables.records import OURS
from .cases import ColdCase

TORCH = "torch"
MAX_RATIO = 0.5
"""The target: time of tritonfuser over time of torch.compile, at most."""
PARTS = ("record", "passes", "front end", "llvm", "ptxas")
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
Seconds = dict[str, float]


@dataclass(frozen=True)
class Trial:
    """The result of one process: the seconds that it printed, or its error."""

    case: str
    peer: str
    round: int
    warm: bool
    seconds: Seconds
    error: str | None = None

    @property
    def line(self) -> str:
        """``round 1, bias_gelu, ours: 412 ms``."""
        state = ", caches warm" if self.warm else ""
        found = self.error or f"{_milliseconds(self.seconds['total'])} ms"
        return f"round {self.round}, {self.case}, {self.peer}{state}: {found}"


@dataclass(frozen=True)
class Limits:
    """Time limits.

    Attributes
    ----------
    child : float
        Seconds that one process may take.
    deadline : float
        ``time.monotonic()`` after which no further process is started.
    """

    child: float = float("inf")
    deadline: float = float("inf")


def trials(
    cases: Sequence[ColdCase],
    peers: Sequence[str],
    device: str,
    rounds: int,
    limits: Limits,
    *,
    warm: bool = False,
) -> Iterator[Trial]:
    """Run every case with every peer, round by round, until the deadline.

    One child runs at a time; it and all processes that it started end before the next begins.
    """
    for number, case, peer in product(range(1, rounds + 1), cases, peers):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for again in (False, True)[: 1 + warm]:
                if time.monotonic() > limits.deadline:
                    return
                found, error = _child(case, peer, device, folder, limits.child)
                yield Trial(case.name, peer, number, again, found, error)


def _child(
    case: ColdCase, peer: str, device: str, folder: str, seconds: float
) -> tuple[Seconds, str | None]:
    path = Path(folder) / "case.json"
    environment = {**os.environ, **{name: f"{folder}/{name.lower()}" for name in CACHES}}
    command = [sys.executable, "-m", "bench.cold.child", peer, str(path), device]
    try:
        path.write_text(json.dumps(case.as_json(device)))
        return json.loads(output_of(command, environment, seconds).splitlines()[-1]), None
    except ChildError as error:
        return {}, str(error)


# --- the table -----------------------------------------------------------------------------------


def rows(found: Sequence[Trial]) -> list[dict[str, str]]:
    """One line for each case that tritonfuser ran: medians of the rounds, in milliseconds.

    Kernels compile concurrently. ``front end``, ``llvm`` and ``ptxas`` are sums over kernels, which
    may exceed the elapsed time ``all kernels``.
    """
    names = dict.fromkeys(trial.case for trial in found)
    lines = (_row(name, [trial for trial in found if trial.case == name]) for name in names)
    return [line for line in lines if line]


def _row(name: str, found: Sequence[Trial]) -> dict[str, str]:
    ours, theirs = _medians(found, OURS), _medians(found, TORCH)
    if not ours:
        return {}
    line = {"case": name, "kernels": f"{ours.get('compiled', 0):.0f}"}
    line["ours ms"] = _milliseconds(ours["total"])
    line.update({part: _milliseconds(ours.get(part, 0.0)) for part in PARTS})
    line["all kernels"] = _milliseconds(ours.get("kernels", 0.0))
    if theirs:
        ratio = ours["total"] / theirs["total"]
        line["compile ms"], line["ours/compile"] = (
            _milliseconds(theirs["total"]),
            human_ratio(ratio),
        )
        line[f"<= {MAX_RATIO}x"] = "met" if ratio <= MAX_RATIO else "MISSED"
    for who, peer in (("ours", OURS), ("compile", TORCH)):
        if again := _medians(found, peer, warm=True):
            line[f"{who} warm ms"] = _milliseconds(again["total"])
    return line


def _medians(found: Sequence[Trial], peer: str, *, warm: bool = False) -> Seconds:
    """Median seconds of each part over the rounds; empty if there was no successful run."""
    runs = [t.seconds for t in found if (t.peer, t.warm) == (peer, warm) and t.error is None]
    parts = dict.fromkeys(part for run in runs for part in run)
    return {part: statistics.median(run.get(part, 0.0) for run in runs) for part in parts}


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}"
