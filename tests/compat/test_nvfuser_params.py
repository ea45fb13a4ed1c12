"""Params whose fields are set, under our names and nvFuser's."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch

from tritonfuser import (
    FusionDefinition,
    InnerPersistentParams,
    OuterPersistentParams,
    ParamsError,
    PointwiseParams,
    ReductionParams,
)
from tritonfuser.frontend.vocabulary.nvfuser_params import ALIASES, INSTEAD, editable, plain
from tritonfuser.heuristics.params import PARAMS, InnerOuterPersistentParams, MatmulParams
from tritonfuser.heuristics.schedule import Schedule, SegmentSchedule

ROWS = InnerPersistentParams(block_x=1, block_r=1024, persistent=True)
ALL = (
    ROWS,
    PointwiseParams(block_x=512),
    ReductionParams(block_x=4, block_r=64, persistent=False),
    OuterPersistentParams(block_x=4, block_r=64, persistent=True),
    InnerOuterPersistentParams(block_m=1, block_r=256),
    MatmulParams(block_m=64, block_n=64, block_k=32),
)


@pytest.mark.parametrize("params", ALL, ids=lambda p: p.scheduler)
def test_they_are_what_they_stand_for(params):
    made = editable(params)
    assert isinstance(made, type(params)) and made is not params
    assert made == params and params == made
    assert plain(made) == params and type(plain(made)) is type(params)
    assert plain(params) is params
    assert repr(made) == repr(params) and made.to_dict() == params.to_dict()
    assert replace(made, num_warps=2) == replace(params, num_warps=2)
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made and again is not made
        again.num_warps = 16
        assert again != made and made == params


def test_fields_are_set_and_checked():
    made = editable(ROWS)
    made.num_warps = 8
    made.tails = [128]
    assert plain(made) == replace(ROWS, num_warps=8, tails=(128,))
    with pytest.raises(ParamsError, match="num_warps: expected a power of two, 1 to 32, got 3"):
        made.num_warps = 3
    with pytest.raises(ParamsError, match="block_x"):
        made.block_x = 1 << 20
    assert plain(made) == replace(ROWS, num_warps=8, tails=(128,)), "a refusal changes nothing"
    with pytest.raises(FrozenInstanceError):
        ROWS.num_warps = 8


@pytest.mark.parametrize(
    ("params", "facts"),
    [
        (ROWS, {"persistent_kernel": True, "multiple_reds_per_blk": False, "fastest_dim": True}),
        (ALL[2], {"persistent_kernel": False, "multiple_reds_per_blk": True}),
        (ALL[3], {"persistent_kernel": True, "fastest_dim": False, "combined_inner_outer": False}),
        (ALL[4], {"persistent_kernel": True, "combined_inner_outer": True}),
    ],
    ids=lambda p: getattr(p, "scheduler", ""),
)
def test_names_of_nvfusers_that_have_a_counterpart(params, facts):
    assert {name: getattr(editable(params), name) for name in facts} == facts


def test_such_a_name_is_set_where_the_field_can_be():
    made = editable(ROWS)
    made.persistent_kernel = False
    assert made.persistent is False and made.persistent_kernel is False
    with pytest.raises(AttributeError, match=r"fastest_dim cannot be set\. The scheduler says so"):
        made.fastest_dim = False
    with pytest.raises(AttributeError, match=r"cannot be set\. Set block_x"):
        made.multiple_reds_per_blk = True


@pytest.mark.parametrize("params", ALL, ids=lambda p: p.scheduler)
def test_names_that_have_none_say_what_to_use(params):
    made = editable(params)
    names = [*INSTEAD[type(params)], "lparams", "cparams"]
    for name in set(names) - set(ALIASES.get(type(params), {})):
        for use in (lambda n: getattr(made, n), lambda n: setattr(made, n, 1)):
            with pytest.raises(AttributeError, match=f"{type(params).__name__} has no {name}\\. "):
                use(name)
    assert not hasattr(made, "lparams")
    with pytest.raises(AttributeError, match=r"has no field 'num_warp'; did you mean num_warps\?"):
        made.num_warp = 4
    with pytest.raises(AttributeError, match="has no field 'zzz'; it has num_warps, "):
        made.zzz  # noqa: B018


def test_no_name_stands_for_two_things():
    for kind, aliases in ALIASES.items():
        assert not set(aliases) & {row.name for row in fields(kind)}
    for kind, texts in INSTEAD.items():
        assert not set(texts) & {row.name for row in fields(kind)}
    assert set(INSTEAD) | set(ALIASES) <= set(PARAMS.values())


def test_a_run_takes_what_they_are_then():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.exp(fd.define_tensor([-1], contiguity=True)))
    x = torch.randn(1000)
    params = editable(fd.heuristics([x])[0])
    params.num_warps, params.vectorization_factor = 8, 2
    before = plain(params)
    plan = fd.plan([x], params=params)
    params.num_warps = 1
    assert plan.params == [before]
    (segment,) = fd.schedule([x]).segments
    given = Schedule(segments=(replace(segment, params=params),))
    assert isinstance(given.segments[0], SegmentSchedule)
    torch.testing.assert_close(fd.run([x], schedule=given), [x.exp()])
    assert fd.explain([x], schedule=given).segments[0].params == params
