"""Jobs of random definitions: on a GPU skipped as a whole where time is short; else compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..definitions_run import failed
from ..processes.jobs import JobContext, Outcome
from ..processes.workers import Limits, run_jobs
from ..recorded.definition_job import DefinitionJob
from ..recorded.definition_outline import outline
from ..recorded.definition_results import Result
from ..recorded.definitions import RecordedDefinition, make_inputs, record
from ..tables.formatting import machine_code

LATE = "not done in time"
"""In the error of a definition that has no result yet."""


def _refuse_late(context: JobContext) -> None:
    if context.is_late:
        raise TimeoutError(LATE)


@dataclass
class GraphJob(DefinitionJob):
    """A recorded definition's job that compiles nothing after the deadline, not ours alone."""

    def prepare(self, context: JobContext) -> None:
        """Compile tritonfuser and torch.compile.

        Raises
        ------
        TimeoutError
            The deadline is over.
        """
        _refuse_late(context)
        super().prepare(context)


@dataclass
class Compiled:
    """A job that compiles a definition for an architecture."""

    entry: RecordedDefinition
    arch: str
    reduced: bool = False
    _result: Result | None = field(default=None, repr=False)

    def prepare(self, context: JobContext) -> None:
        """Compile the kernels, from inputs that have no memory.

        Raises
        ------
        TimeoutError
            The deadline is over.
        """
        _refuse_late(context)
        fd = record(self.entry)
        absent = make_inputs(self.entry, fd.fusion.ir, "meta")
        codes = [machine_code(report) for report in fd.compile_for(self.arch, absent)]
        cut = fd.segments(absent, arch=self.arch)
        self._result = Result(
            **outline(self.entry, fd.fusion.ir, cut, reduced=self.reduced),
            kernels=len(codes),
            registers=max((code["registers"] for code in codes), default=0),
            spilled=max((code["spilled"] for code in codes), default=0),
        )

    def measure(self) -> Result | None:
        """What was compiled."""
        return self._result


def run(
    jobs: Sequence[DefinitionJob | Compiled],
    processes: int,
    limits: Limits,
    keep: Callable[[Sequence[Result]], None],
    arch: str,
) -> list[Result]:
    """The results in order; a failure is one, and what was not done in time is none."""

    def results(known: Mapping[int, Outcome]) -> list[Result]:
        found = (_result(jobs[place], known[place], arch) for place in sorted(known))
        return [result for result in found if result is not None]

    outcomes = run_jobs(jobs, processes, limits, keep=lambda known: keep(results(known)))
    return results(dict(enumerate(outcomes)))


def _result(job: DefinitionJob | Compiled, outcome: Outcome, arch: str) -> Result | None:
    if isinstance(outcome.result, Result):
        return outcome.result
    if outcome.error is not None and LATE in outcome.error:
        return None
    return failed(job.entry, outcome.error or "no result", arch, reduced=job.reduced)
