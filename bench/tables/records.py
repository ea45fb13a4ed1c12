"""Results of the suite as data: write, read and merge."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritonfuser.disk import replace_text

from ..measure.timing import Times

OURS = "ours"
PEERS = ("eager", "compile", "autotune", "liger")
"""The peers: eager torch, torch.compile, its max-autotune mode, Liger-Kernel."""
TUNED = "tuned"
"""The name of our own tuned schedule among failures."""
SKIPPED = "skipped: out of time"
"""Failure text of a peer that was skipped."""
LARGE = 64 << 20
"""Minimum traffic in bytes from which a kernel should be bound by memory bandwidth."""


@dataclass(frozen=True)
class Tuned:
    """What tuning gave for one row, timed in the same rounds as the heuristics' schedule.

    Attributes
    ----------
    heuristic, tuned : Times
        Of both schedules.
    change : str
        How they differ: ``"s0.num_warps 4 -> 8"``. Empty where they do not.
    trials : int
        Schedules that were tried.
    """

    heuristic: Times
    tuned: Times
    change: str
    trials: int

    @property
    def speedup(self) -> float:
        """Time of the heuristics' schedule over that of the tuned one."""
        return self.heuristic.median / self.tuned.median


@dataclass(frozen=True)
class Record:
    """One case at one size.

    Attributes
    ----------
    case, suite, size, dtype : str
        Such as ``softmax_bwd``, ``softmax``, ``8192x8192``, ``bfloat16``.
    bytes : int
        Minimum traffic in bytes: every input and every output once.
    bandwidth : float
        Bandwidth of a copy in that run, in bytes per second.
    least : float, optional
        Least seconds that any kernel could take on this machine (``heuristics/bounds.py``).
    limit : str
        What ``least`` is the time of: memory, instructions of one kind, the launch.
    launches : int, optional
        Number of tritonfuser's kernels.
    error, eager_error : float, optional
        Largest error against float64 over the largest magnitude, of tritonfuser and of eager.
    deterministic : bool, optional
        Whether two runs of tritonfuser are bitwise equal.
    times : dict
        Times by contender.
    failures : dict
        Error text of each contender without a time.
    tuned : Tuned, optional
        What tuning gave.
    """

    case: str
    suite: str
    size: str
    dtype: str
    bytes: int
    bandwidth: float
    least: float | None = None
    limit: str = ""
    launches: int | None = None
    error: float | None = None
    eager_error: float | None = None
    deterministic: bool | None = None
    times: dict[str, Times] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    tuned: Tuned | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Case, size and dtype, which identify the row."""
        return self.case, self.size, self.dtype

    @property
    def name(self) -> str:
        """``softmax 8192x8192 bfloat16``."""
        return " ".join(self.key)

    @property
    def large(self) -> bool:
        """Whether it is compared with the bandwidth target."""
        return self.bytes >= LARGE

    def seconds(self, who: str = OURS) -> float | None:
        """The median seconds of a contender; None if it was not timed."""
        return self.times[who].median if who in self.times else None

    def speed_of_light(self, who: str = OURS) -> float | None:
        """Time of a copy of as many bytes over the time taken; 1.0 is copy bandwidth."""
        found = self.seconds(who)
        return self.bytes / self.bandwidth / found if found else None

    def share_of_bound(self, who: str = OURS) -> float | None:
        """The least time over the time taken: at 1.0 nothing is left to gain."""
        found = self.seconds(who)
        return self.least / found if found and self.least else None

    def ratio(self, peer: str) -> float | None:
        """Time of the peer over the time of tritonfuser."""
        ours, theirs = self.seconds(), self.seconds(peer)
        return theirs / ours if ours and theirs else None


@dataclass(frozen=True)
class Results:
    """Merged runs of the suite.

    Attributes
    ----------
    runs : tuple of dict
        Provenance of each: commit, date, device, versions, bandwidth, command line.
    records : tuple of Record
        One per case, size and dtype; the last where there are several.
    """

    runs: tuple[dict[str, Any], ...]
    records: tuple[Record, ...]

    def save(self, path: Path) -> None:
        """Write JSON, one line per record."""
        lines = ",\n".join("  " + json.dumps(asdict(record)) for record in self.records)
        runs = json.dumps(list(self.runs), indent=1)
        replace_text(path, f'{{\n"runs": {runs},\n"records": [\n{lines}\n]\n}}\n')


def load(paths: Iterable[Path]) -> Results:
    """Load and merge results; records of later files replace earlier ones.

    Raises
    ------
    SystemExit
        A file does not hold results.
    """
    runs: list[dict[str, Any]] = []
    found: dict[tuple[str, str, str], Record] = {}
    for path in paths:
        try:
            content = json.loads(path.read_text())
            runs.extend(content["runs"])
            records = [_record(item) for item in content["records"]]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SystemExit(
                f"python -m bench: expected results written by --json in {path}, "
                f"got {type(error).__name__}: {error}"
            ) from None
        found.update({record.key: record for record in records})
    return Results(tuple(runs), tuple(found.values()))


def _record(item: dict[str, Any]) -> Record:
    times = {who: Times(**found) for who, found in item["times"].items()}
    tuned = item.get("tuned")
    if tuned is not None:
        both = {name: Times(**tuned[name]) for name in ("heuristic", "tuned")}
        tuned = Tuned(**{**tuned, **both})
    return Record(**{**item, "times": times, "tuned": tuned})


def save_csv(records: Sequence[Record], path: Path) -> None:
    """Write CSV with one line per record, times in microseconds."""
    fields = ["case", "suite", "size", "dtype", "bytes", "bandwidth", "least", "limit"]
    fields += ["launches", "error", "eager_error", "deterministic"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        whos = (OURS, *PEERS)
        columns = [f"{who}_{part}_us" for who in whos for part in ("median", "low", "high")]
        writer.writerow([*fields, "share_of_copy_speed", "share_of_bound", *columns])
        for record in records:
            times = [record.times.get(who) for who in whos]
            cells = [f"{s * 1e6:.3f}" if s else "" for t in times for s in _parts(t)]
            shares = [_rounded(s) for s in (record.speed_of_light(), record.share_of_bound())]
            known = [getattr(record, name) for name in fields]
            writer.writerow([*known, *shares, *cells])


def _rounded(share: float | None) -> str:
    return f"{share:.4f}" if share else ""


def _parts(times: Times | None) -> tuple[float | None, ...]:
    return (times.median, times.low, times.high) if times else (None, None, None)
