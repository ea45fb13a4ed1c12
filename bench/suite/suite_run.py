"""Run the suite on a GPU with worker processes, and collect the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..cases import size_name
from ..measure.timing import copy_bandwidth
from ..processes.jobs import Outcome
from ..processes.workers import PROCESSES, Limits, forget, run_jobs
from ..tables.provenance import described
from ..tables.records import OURS, Record, Results
from .measurement import Measurement
from .selection import Row


def run_suite(
    rows: Sequence[Row],
    vs: tuple[str, ...],
    processes: int = PROCESSES,
    limits: Limits | None = None,
    commit: str | None = None,
    *,
    check: bool = True,
    keep: Callable[[Results], None] = forget,
) -> Results:
    """Measure the rows on the CUDA device of this machine.

    Parameters
    ----------
    vs : tuple of str
        Names of the peers.
    processes, limits : optional
        As ``run_jobs`` takes them.
    commit : str, optional
        Commit stored with the results; by default that of the working tree.
    check : bool
        Whether tritonfuser is compared with eager torch in float64.
    keep : callable, optional
        Called with the results so far every few seconds, so that a killed run loses little.
    """
    bandwidth = copy_bandwidth()
    jobs = [Measurement(row, bandwidth, vs, check) for row in rows]
    about = {**described(commit), "bandwidth": bandwidth}

    def results(known: Mapping[int, Outcome]) -> Results:
        return Results((about,), tuple(recorded(jobs[n], known[n]) for n in sorted(known)))

    outcomes = run_jobs(jobs, processes, limits, keep=lambda known: keep(results(known)))
    return results(dict(enumerate(outcomes)))


def recorded(job: Measurement, outcome: Outcome) -> Record:
    """The record of a job; for a failed job, one with the error as failure of ours."""
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
