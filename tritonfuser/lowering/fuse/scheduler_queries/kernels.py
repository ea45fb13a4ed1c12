"""Which scheduler takes a group, and with which params."""

from __future__ import annotations

from dataclasses import dataclass

from ....heuristics import schedulers
from ....heuristics.cost.tiles import tile_of
from ....heuristics.cost.work import KernelWork, element_work
from ....heuristics.params import HeuristicParams, KernelParams
from ....heuristics.problem import Problem
from ....heuristics.programs import leaves_idle, programs_of
from ....heuristics.search.choice import chosen, difference
from ....heuristics.search.load_registers import register_limit_for_loads
from ....symbolic.choices import choose, with_hints
from ...problem_sizes import env_of, env_with_work


def reject_reason(problem: Problem) -> str | None:
    """None where some scheduler takes the problem, else all their reasons."""
    env = env_of(problem)
    reason = schedulers.reject_reason(with_hints(env, problem))
    if reason is not None:
        choose(env, is_refused, problem)
    return reason


def refusals(problem: Problem) -> list[str]:
    """Why each scheduler before the chosen one does not take the problem."""
    return schedulers.refusals(with_hints(env_of(problem), problem))


def propose(problem: Problem, work: KernelWork) -> HeuristicParams:
    """The params of a kernel; errors as ``schedulers.propose``.

    Parameters
    ----------
    work : KernelWork
        What it computes.
    """
    return choose(env_with_work(problem, work), proposed, ProblemWithWork(problem, work))


def why_overruled(problem: Problem, work: KernelWork, params: HeuristicParams) -> str:
    """The times for which the cost model overruled the rules' params; empty where it did not."""
    problem, work = with_hints(env_with_work(problem, work), (problem, work))
    return difference(problem, element_work(work, problem), params)


def register_limit(problem: Problem, work: KernelWork, params: KernelParams) -> int:
    """The register limit with which the loads of a step can be hoisted. 0 for none."""
    return choose(
        env_with_work(problem, work), register_limit_at, (ProblemWithWork(problem, work), params)
    )


def scatters(problem: Problem) -> bool:
    """Whether a large tensor lies along neither axis of the problem's tiles."""
    return choose(env_of(problem), is_scattered, problem)


def reads_rows_twice(problem: Problem) -> bool:
    """Whether the rules' kernel reduces its rows in one loop and loads them again in another."""
    return choose(env_of(problem), loops_over_rows_twice, problem)


def has_programs(problem: Problem) -> bool:
    """Whether the rows of a kernel are programs enough for the device, without a split."""
    return choose(env_of(problem), fills_device, problem)


@dataclass(frozen=True)
class ProblemWithWork:
    """A problem, and what its kernel computes."""

    problem: Problem
    work: KernelWork


# --- the answers, in plain numbers ----------------------------------------------------------------


def is_refused(problem: Problem) -> bool:
    """Whether no scheduler takes the problem, in plain numbers."""
    return schedulers.reject_reason(problem) is not None


def proposed(kernel: ProblemWithWork) -> HeuristicParams:
    """``propose`` in plain numbers."""
    return chosen(kernel.problem, element_work(kernel.work, kernel.problem))


def is_scattered(problem: Problem) -> bool:
    """``scatters`` in plain numbers."""
    return problem.scatters


def fills_device(problem: Problem) -> bool:
    """``has_programs`` in plain numbers."""
    if problem.may_split and schedulers.split(problem) > 1:
        return False
    return not leaves_idle(problem, programs_of(problem, schedulers.propose(problem)))


def register_limit_at(facts: tuple[ProblemWithWork, KernelParams]) -> int:
    """``register_limit`` in plain numbers."""
    kernel, params = facts
    return register_limit_for_loads(
        kernel.problem, element_work(kernel.work, kernel.problem), params
    )


def loops_over_rows_twice(problem: Problem) -> bool:
    """``reads_rows_twice`` in plain numbers: one program has two loops over a row, or more."""
    params = schedulers.propose(problem)
    return params.row_parts == 1 and tile_of(problem, params).passes > 1
