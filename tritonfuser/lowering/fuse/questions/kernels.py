"""Which scheduler takes a group, and with which params."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....heuristics import schedulers
from ....heuristics.cost.work import KernelWork, element_work
from ....heuristics.params import HeuristicParams
from ....heuristics.problem import Problem
from ....heuristics.search.choice import chosen, difference
from ....symbolic.choices import choose, env_among, hinted
from ....symbolic.shape_env import ConstantSizesWanted, ShapeEnv
from ...problem_sizes import env_of


def reject_reason(problem: Problem) -> str | None:
    """None where some scheduler takes the problem, else all their reasons.

    Raises
    ------
    ConstantSizesWanted
        Of constant sizes one takes it: its programs share each row.
    """
    env = env_of(problem)
    reason = schedulers.reject_reason(hinted(env, problem))
    if reason is None:
        return None
    choose(env, is_refused, problem)
    wanted = env is not None and env.may_want_constants
    if wanted and problem.published_sums and choose(env, wants_constants, problem):
        raise ConstantSizesWanted(f"programs share rows of constant sizes alone: {reason}")
    return reason


def refusals(problem: Problem) -> list[str]:
    """Why each scheduler before the chosen one does not take the problem."""
    return schedulers.refusals(hinted(env_of(problem), problem))


def propose(problem: Problem, work: KernelWork) -> HeuristicParams:
    """The params of a kernel; errors as ``schedulers.propose``.

    Parameters
    ----------
    work : KernelWork
        What it computes.
    """
    return choose(_env_of(problem, work), proposed, Worked(problem, work))


def why_overruled(problem: Problem, work: KernelWork, params: HeuristicParams) -> str:
    """By what the cost model chose other params than the rules propose; empty where it did not."""
    problem, work = hinted(_env_of(problem, work), (problem, work))
    return difference(problem, element_work(work, problem), params)


def scatters(problem: Problem) -> bool:
    """Whether a large tensor lies along neither axis of the problem's tiles."""
    return choose(env_of(problem), is_scattered, problem)


def is_scattered(problem: Problem) -> bool:
    """The same, at the sizes of a run."""
    return problem.scatters


def _env_of(problem: Problem, work: KernelWork) -> ShapeEnv | None:
    return env_of(problem) or env_among(*(node.elements for node in work.nodes))


@dataclass(frozen=True)
class Worked:
    """A problem, and what its kernel computes."""

    problem: Problem
    work: KernelWork


# --- the answers, in plain numbers ----------------------------------------------------------------


def is_refused(problem: Problem) -> bool:
    """Whether no scheduler takes the problem."""
    return schedulers.reject_reason(problem) is not None


def wants_constants(problem: Problem) -> bool:
    """Whether programs would share the rows of a problem if sizes did not vary."""
    fixed = replace(problem, row_varies=False, rows_vary=False)
    if schedulers.reject_reason(fixed) is not None:
        return False
    return schedulers.propose(fixed).row_parts > 1


def proposed(kernel: Worked) -> HeuristicParams:
    """The params of a kernel."""
    return chosen(kernel.problem, element_work(kernel.work, kernel.problem))
