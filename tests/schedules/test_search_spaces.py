"""Search spaces: data, and all that they hold can be tried."""

from __future__ import annotations

import json
import random

import pytest
import torch

from bench.schedules.problems import FAMILIES, random_problems
from tritonfuser import ParamsError
from tritonfuser.frontend.tune.candidates import candidates
from tritonfuser.heuristics.params import PARAMS
from tritonfuser.heuristics.search.spaces import SPACES

PROBLEMS = random_problems(2 * len(FAMILIES), seed=5)


def meta(problem):
    fd, specs = problem.definition()
    return fd, [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in specs]


def test_each_scheduler_has_one():
    assert SPACES.keys() == PARAMS.keys()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_what_is_drawn_can_be_tried(problem):
    """Legality knows more than conditions between fields, so some of it is refused."""
    fd, inputs = meta(problem)
    found = fd.segments(inputs, arch="sm_90")
    drawn = candidates(found, random.Random(problem.name))
    legal = 0
    for _ in range(12):
        try:
            fd.kernels(inputs, arch="sm_90", schedule=next(drawn))
        except ParamsError:
            continue
        legal += 1
    assert legal >= 2


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_conditions_hold_and_all_of_it_is_plain_data(problem):
    fd, inputs = meta(problem)
    rng = random.Random(problem.name)
    for piece in fd.segments(inputs, arch="sm_90").segments:
        assert piece.problem is not None
        space = SPACES[piece.scheduler](piece.problem)
        assert json.loads(json.dumps(space.to_dict()))["scheduler"] == piece.scheduler
        for params in filter(None, (space.draw(rng) for _ in range(20))):
            assert params.scheduler == piece.scheduler
            threads = 32 * params.num_warps
            sides = [v for k, v in vars(params).items() if k.startswith("block_")]
            size = sides[0] * (sides[1] if len(sides) > 1 else 1)
            assert size <= 128 * threads
            assert 8 * params.num_warps <= size
