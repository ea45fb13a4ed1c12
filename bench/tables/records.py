"""What a run of the suite found, as data: written, read and put together."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..measure.timing import Times
from .files import write_whole

OURS = "ours"
PEERS = ("eager", "compile", "autotune", "liger")
"""Who ours is compared with: eager torch, torch.compile and its max-autotune mode, Liger-Kernel."""
SKIPPED = "skipped: out of time"
"""What stands where a peer was not compiled."""
LARGE = 64 << 20
"""Bytes from which on a kernel should be as fast as memory."""


@dataclass(frozen=True)
class Record:
    """One case at one size.

    Attributes
    ----------
    case, suite, size, dtype : str
        ``softmax_bwd``, ``softmax``, ``8192x8192``, ``bfloat16``.
    bytes : int
        What has to be moved: every input once, every output once.
    bandwidth : float
        Bytes a second of a copy on that machine in that run.
    launches : int, optional
        Kernels of ours.
    error, eager_error : float, optional
        The largest error relative to the largest magnitude of an output, against float64.
    deterministic : bool, optional
        Whether a second run of ours gave the same bits.
    times : dict
        Of ours and of its peers.
    failures : dict
        Why one is missing.
    """

    case: str
    suite: str
    size: str
    dtype: str
    bytes: int
    bandwidth: float
    launches: int | None = None
    error: float | None = None
    eager_error: float | None = None
    deterministic: bool | None = None
    times: dict[str, Times] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """Which row it is of."""
        return self.case, self.size, self.dtype

    @property
    def name(self) -> str:
        """``softmax 8192x8192 bfloat16``."""
        return " ".join(self.key)

    @property
    def large(self) -> bool:
        """Whether it is held to the speed of memory."""
        return self.bytes >= LARGE

    def seconds(self, who: str = OURS) -> float | None:
        """The median time of one of them."""
        return self.times[who].median if who in self.times else None

    def speed_of_light(self, who: str = OURS) -> float | None:
        """The time of a copy of as many bytes by the time taken: 1.0 is as fast as memory."""
        found = self.seconds(who)
        return self.bytes / self.bandwidth / found if found else None

    def ratio(self, peer: str) -> float | None:
        """How many times as long the peer takes."""
        ours, theirs = self.seconds(), self.seconds(peer)
        return theirs / ours if ours and theirs else None


@dataclass(frozen=True)
class Results:
    """Runs of the suite, put together.

    Attributes
    ----------
    runs : tuple of dict
        For each: commit, date, device, versions, bandwidth, command line.
    records : tuple of Record
        One for each case, size and dtype: the last where there are more.
    """

    runs: tuple[dict[str, Any], ...]
    records: tuple[Record, ...]

    def save(self, path: Path) -> None:
        """Write it as JSON, a record a line."""
        lines = ",\n".join("  " + json.dumps(asdict(record)) for record in self.records)
        runs = json.dumps(list(self.runs), indent=1)
        write_whole(path, f'{{\n"runs": {runs},\n"records": [\n{lines}\n]\n}}\n')


def load(paths: Iterable[Path]) -> Results:
    """Results from files, a later one over an earlier.

    Raises
    ------
    SystemExit
        A file holds something else.
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
    return Record(**{**item, "times": times})


def save_csv(records: Sequence[Record], path: Path) -> None:
    """One line a record, times in microseconds."""
    fields = ["case", "suite", "size", "dtype", "bytes", "bandwidth", "launches"]
    fields += ["error", "eager_error", "deterministic"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        whos = (OURS, *PEERS)
        columns = [f"{who}_{part}_us" for who in whos for part in ("median", "low", "high")]
        writer.writerow([*fields, "share_of_copy_speed", *columns])
        for record in records:
            times = [record.times.get(who) for who in whos]
            cells = [f"{s * 1e6:.3f}" if s else "" for t in times for s in _parts(t)]
            share = record.speed_of_light()
            known = [getattr(record, name) for name in fields]
            writer.writerow([*known, f"{share:.4f}" if share else "", *cells])


def _parts(times: Times | None) -> tuple[float | None, ...]:
    return (times.median, times.low, times.high) if times else (None, None, None)
