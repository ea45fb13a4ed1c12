"""The suite on a GPU: rows shared out over processes, and what they found put together."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import triton

from .cases import size_name
from .records import OURS, Record, Results
from .run import Measurement
from .select import Row
from .timing import copy_bandwidth
from .workers import PROCESSES, Limits, Outcome, run_jobs


def run_suite(
    rows: Sequence[Row],
    vs: tuple[str, ...],
    processes: int = PROCESSES,
    limits: Limits | None = None,
    commit: str | None = None,
    *,
    check: bool = True,
) -> Results:
    """Measure the rows on the CUDA device of this machine.

    Parameters
    ----------
    vs : tuple of str
        The peers.
    processes, limits : optional
        As ``run_jobs`` takes them.
    commit : str, optional
        What the results are said to be of; by default what git says.
    check : bool
        Whether ours is compared with eager in float64.
    """
    bandwidth = copy_bandwidth()
    torch.cuda.empty_cache()
    jobs = [Measurement(row, bandwidth, vs, check) for row in rows]
    outcomes = run_jobs(jobs, processes, limits)
    records = [recorded(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]
    return Results((described(bandwidth, commit),), tuple(records))


def recorded(job: Measurement, outcome: Outcome) -> Record:
    """The record of a job; of one that failed, with its error in the place of ours."""
    if isinstance(outcome.result, Record):
        return outcome.result
    case = job.row.of
    return Record(
        case=case.name,
        suite=case.suite,
        size=size_name(job.row.size),
        dtype=job.row.dtype,
        bytes=case.bytes(
            case.record(job.row.size, job.row.torch_dtype), job.row.size, job.row.torch_dtype
        ),
        bandwidth=job.bandwidth,
        failures={OURS: outcome.error or "no result"},
    )


def described(bandwidth: float, commit: str | None) -> dict[str, Any]:
    """The run: which code, when, on what."""
    return {
        "commit": commit or commit_here(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "bandwidth": bandwidth,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "command": " ".join(["python", *sys.orig_argv[1:]]),
    }


def commit_here() -> str:
    """The commit of the working tree, with a plus where files differ from it; or "unknown"."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
