"""The params of a search by numbers: the same as those of its space, and bounds of their times."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from tests.heuristics.test_choice import COLUMNS, WORK, copies
from tests.heuristics.test_schedulers import H200, KINDS
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.problem import Problem
from tritonfuser.heuristics.search.candidates import Candidates
from tritonfuser.heuristics.search.model_space import (
    VARIED_FIELDS,
    limited_to_rules,
    with_sizes_varied,
    within_registers,
)
from tritonfuser.heuristics.search.near import params_near
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.heuristics.search.warps import Kernels
from tritonfuser.heuristics.streams import Stream

PROBLEMS = {
    "columns": COLUMNS,
    "norm": copies(4096, 1000),
    "vectors": copies(4096, 1004, vector_elements=8),
    "looped vectors": copies(283, 100_003, vector_elements=8),
    "sums of looped vectors": copies(
        283, 100_003, vector_elements=8, reduction_depth=1, dependent_outputs=False
    ),
    **{name: problem for name, problem in KINDS.items() if problem.core is None},
}


def searched(problem):
    """The kernels, the space of a search, and its candidates."""
    rules, kernels = schedulers.propose(problem), Kernels(problem, WORK)
    space = limited_to_rules(SPACES[rules.scheduler](problem), problem, rules)
    space = with_sizes_varied(
        within_registers(space, problem.device, kernels.registers_per_element), rules
    )
    return kernels, space, Candidates(kernels, space)


def kinds():
    """Names of problems with params to search."""
    found = ((name, schedulers.propose(problem)) for name, problem in PROBLEMS.items())
    return [name for name, rules in found if rules.has_kernel]


@pytest.mark.parametrize("name", kinds())
def test_numbers_are_in_the_order_of_the_space(name):
    _, space, candidates = searched(PROBLEMS[name])
    numbers = candidates.numbers()
    assert [*filter(None, map(candidates.params, numbers))] == [*space]
    coarse = candidates.coarse()
    assert coarse == [number for number in numbers if number in {*coarse}]


@pytest.mark.parametrize("name", kinds())
def test_neighbours_differ_by_one_step(name):
    _, space, candidates = searched(PROBLEMS[name])
    is_in = {*candidates.numbers()}
    for number in candidates.numbers()[::7]:
        params = candidates.params(number)
        if params is not None:
            beside = [candidates.params(n) for n in candidates.neighbours(number) if n in is_in]
            near = [*params_near(space, params, VARIED_FIELDS)]
            assert [*filter(None, beside)] == near


@pytest.mark.parametrize("name", kinds())
def test_no_time_is_below_its_bound(name):
    kernels, _, candidates = searched(PROBLEMS[name])
    for number in candidates.numbers():
        params, bound = candidates.params(number), candidates.bound(number)
        time = None if params is None else kernels.time(params)
        if time is None:
            continue
        if bound == inf:
            stages = params.num_stages > 1
            assert stages or kernels.may_spill_registers(params, time)
        else:
            assert bound <= time.seconds


def test_loads_of_concatenated_tensors_are_those_of_one():
    """Each has a share of the positions: a load of all of them for each was 1.14 times the time."""
    whole = Stream(item_bytes=1, x_stride=4096, total_bytes=1 << 28)
    part = replace(whole, x_stride=256, total_bytes=1 << 24, accessed=(1, 16))
    problem = Problem(
        parallel=1 << 16, reduced=4096, reduction_depth=1, streams=(part,) * 16, device=H200
    )
    kernels, _, candidates = searched(problem)
    times = filter(None, map(candidates.time, candidates.numbers()))
    fastest = min(timed.time.seconds for timed in times)
    assert kernels.least_s <= fastest + kernels.launch_s


@pytest.mark.parametrize("name", kinds())
def test_the_fastest_is_that_of_all_times(name):
    _, _, candidates = searched(PROBLEMS[name])
    numbers = candidates.coarse()
    times = [timed for timed in map(candidates.time, numbers) if timed is not None]
    fastest = min(times, key=lambda timed: timed.time.seconds, default=None)
    assert searched(PROBLEMS[name])[2].fastest(numbers) == fastest


@pytest.mark.parametrize("problem", [copies(4096, 1300), PROBLEMS["vectors"]])
def test_rows_with_tails_are_one_in_a_program(problem):
    """Two rows without tails are no step beside one with them: the coarse sample has some."""
    _, space, candidates = searched(problem)
    assert {bool(each.tails) for each in space if each.block_x == 1} == {False, True}
    assert not any(each.tails for each in space if each.block_x > 1)
    coarse = [*filter(None, map(candidates.params, candidates.coarse()))]
    assert {1, 2, 4} < {each.block_x for each in coarse}
