"""Search spaces: data, and all that they hold can be tried."""

from __future__ import annotations

import json
import random

import pytest
import torch

from bench.schedules.problems import FAMILIES, random_problems
from tritonfuser import DataType, FusionDefinition, ParamsError
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


def test_rows_that_programs_share_have_no_choice_of_nothing():
    """A tuner, ours as well, drew one of no tiles of a row."""
    with FusionDefinition() as fd:
        kind = {"shape": [2048, 73728], "contiguity": True, "dtype": DataType.BFloat16}
        given = (fd.define_tensor(**kind) for _ in "ab")
        grad, x = (fd.ops.cast(each, DataType.Float) for each in given)
        back = fd.ops.sub(grad, fd.ops.sum(fd.ops.mul(grad, x), dims=[1], keepdim=True))
        fd.add_output(fd.ops.cast(back, DataType.BFloat16))
        fd.add_output(fd.ops.sum(fd.ops.mul(grad, x), dims=[0]))
    inputs = [torch.empty(2048, 73728, dtype=torch.bfloat16, device="meta") for _ in "ab"]
    found = fd.segments(inputs, arch="sm_90")
    assert any(getattr(piece.params, "parts", 1) > 1 for piece in found.segments)
    for piece in found.segments:
        for alternative in SPACES[piece.scheduler](piece.problem).alternatives:
            assert all(choice.values for choice in alternative.choices)
    drawn = candidates(found, random.Random(0), splits=False)
    for _ in range(8):
        fd.kernels(inputs, arch="sm_90", schedule=next(drawn))


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
