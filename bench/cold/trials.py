"""Processes that run a function for the first time, and the table of their times."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..processes.child_process import ChildError, output_of
from ..tables.formatting import human_ratio
from ..tables.records import OURS
from .cases import ColdCase

TORCH = "torch"
MOST = 0.5
"""The bar: the share of torch.compile's time that ours may take."""
PARTS = ("record", "passes", "front end", "llvm", "ptxas")
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITONFUSER_CACHE_DIR")
Seconds = dict[str, float]


@dataclass(frozen=True)
class Trial:
    """One process: the seconds that it has printed, or why it has none."""

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
    """Seconds that one process may take, and by ``time.time`` when no further one is started."""

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
    """Each case once by everyone, then all of them again: what there is time for.

    A child is alone on the machine: the one before it, with all that it had started, is gone.
    """
    for number in range(1, rounds + 1):
        for case in cases:
            for peer in peers:
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    for again in (False, True)[: 1 + warm]:
                        if time.time() > limits.deadline:
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
        path.write_text(json.dumps(case.told(device)))
        return json.loads(output_of(command, environment, seconds).splitlines()[-1]), None
    except ChildError as error:
        return {}, str(error)


# --- the table -----------------------------------------------------------------------------------


def rows(found: Sequence[Trial]) -> list[dict[str, str]]:
    """A line for each case that ours has run: medians of the rounds, in milliseconds.

    Kernels are compiled at the same time, so that ``front end``, ``llvm`` and ``ptxas``, which are
    sums over kernels, may be more than ``all kernels``.
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
        line[f"<= {MOST}x"] = "met" if ratio <= MOST else "MISSED"
    for who, peer in (("ours", OURS), ("compile", TORCH)):
        if again := _medians(found, peer, warm=True):
            line[f"{who} warm ms"] = _milliseconds(again["total"])
    return line


def _medians(found: Sequence[Trial], peer: str, *, warm: bool = False) -> Seconds:
    """The parts of one's time over the rounds; nothing where none was run."""
    runs = [t.seconds for t in found if (t.peer, t.warm) == (peer, warm) and t.error is None]
    parts = dict.fromkeys(part for run in runs for part in run)
    return {part: statistics.median(run.get(part, 0.0) for run in runs) for part in parts}


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}"
