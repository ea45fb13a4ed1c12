"""The suite on a GPU: rows shared out over processes, and what they found put together."""

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
        The peers.
    processes, limits : optional
        As ``run_jobs`` takes them.
    commit : str, optional
        What the results are said to be of; by default what git says.
    check : bool
        Whether ours is compared with eager in float64.
    keep : callable, optional
        Given the results so far every few seconds, for a run that may be killed.
    """
    bandwidth = copy_bandwidth()
    jobs = [Measurement(row, bandwidth, vs, check) for row in rows]
    about = {**described(commit), "bandwidth": bandwidth}

    def results(known: Mapping[int, Outcome]) -> Results:
        return Results((about,), tuple(recorded(jobs[n], known[n]) for n in sorted(known)))

    outcomes = run_jobs(jobs, processes, limits, keep=lambda known: keep(results(known)))
    return results(dict(enumerate(outcomes)))


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
