"""Heuristic params: limits, and the way to a plain dict and back."""

from __future__ import annotations

import json
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields, replace
from typing import Literal, NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonfuser.device import MAX_BLOCK_ELEMENTS
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics.params import (
    MAX_TAILS,
    PARAMS,
    ExprEvalParams,
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    KernelParams,
    MatmulParams,
    NoOpParams,
    PointwiseParams,
    TransposeParams,
)
from tritonfuser.heuristics.plain_data.codec import decode, encode
from tritonfuser.heuristics.product import Product

SCHEDULERS = {
    "no_op",
    "pointwise",
    "transpose",
    "reduction",
    "inner_persistent",
    "outer_persistent",
    "inner_outer_persistent",
    "matmul",
    "scan",
    "expr_eval",
}


@st.composite
def any_params(draw):
    cls = draw(st.sampled_from(list(PARAMS.values())))
    values = {}
    for row in fields(cls):
        if row.name.startswith("block_"):
            least = 4 if cls is MatmulParams else 0
            values[row.name] = 2 ** draw(st.integers(least, 10))
        elif row.name == "num_warps":
            values[row.name] = 2 ** draw(st.integers(0, 5))
        elif row.name == "num_stages":
            values[row.name] = draw(st.integers(1, 8))
        elif row.name == "tails":
            powers = st.lists(st.integers(0, 6), max_size=MAX_TAILS)
            values[row.name] = tuple(2**power for power in draw(powers))
        elif row.name in ("align", "vectorization_factor", "unroll"):
            values[row.name] = 2 ** draw(st.integers(0, 4))
        elif row.name in ("axes", "across"):
            least = 4 * (row.name == "across")
            numbers = st.lists(st.integers(least, least + 3), max_size=4, unique=True)
            values[row.name] = tuple(draw(numbers))
        elif row.name == "first":
            values[row.name] = draw(st.sampled_from(["", "x", "y"]))
        elif row.name == "max_registers":
            values[row.name] = draw(st.sampled_from([0, 16, 128, 255]))
        elif row.name in ("group_m", "programs", "parts", "delay"):
            values[row.name] = draw(st.integers(1, 2))
        else:
            assert row.name in (
                "loads_first",
                "prefetch",
                "persistent",
                "descriptors",
                "backwards",
                "staged",
                "evict_hints",
            )
            values[row.name] = draw(st.booleans())
    return cls(**values)


def test_one_class_a_scheduler():
    assert set(PARAMS) == SCHEDULERS
    assert all(cls.scheduler == name for name, cls in PARAMS.items())


@given(any_params())
def test_round_trip_through_json(params):
    data = json.loads(json.dumps(params.to_dict()))
    again = HeuristicParams.from_dict(data)
    assert again == params and type(again) is type(params) and hash(again) == hash(params)
    assert type(params).from_dict(data) == params


@given(any_params(), st.data())
def test_a_key_is_needed_unless_its_field_has_a_default(params, data):
    plain = params.to_dict()
    key = data.draw(st.sampled_from(sorted(plain)))
    del plain[key]
    defaults = {f.name: f.default for f in fields(params) if f.default is not MISSING}
    if key in defaults and _holds(params, key, defaults[key]):
        assert HeuristicParams.from_dict(plain) == replace(params, **{key: defaults[key]})
    elif key not in defaults:
        with pytest.raises(ParamsError, match=f"missing key '{key}'"):
            HeuristicParams.from_dict(plain)


def _holds(params, key, value):
    try:
        replace(params, **{key: value})
    except ParamsError:
        return False
    return True


def test_stages_have_a_limit():
    PointwiseParams(block_x=16, num_stages=16)
    with pytest.raises(ParamsError, match=r"num_stages: expected 1 to 16, got 17"):
        PointwiseParams(block_x=16, num_stages=17)


@given(any_params(), st.data())
def test_every_value_has_its_type(params, data):
    plain = params.to_dict()
    key = data.draw(st.sampled_from(sorted(plain)))
    wrong = [None, "4", 4.0, ["4"] if key in ("tails", "axes", "across") else [4], {}]
    wrong.append(1 if isinstance(plain[key], bool) else True)
    if key == "loads_first":
        wrong = [0, "4", 4.0, [4], {}]
    plain[key] = data.draw(st.sampled_from(wrong))
    with pytest.raises(ParamsError, match=key):
        HeuristicParams.from_dict(plain)


@given(any_params())
def test_no_other_key_is_taken(params):
    with pytest.raises(ParamsError, match="unknown key 'block_q'"):
        HeuristicParams.from_dict({**params.to_dict(), "block_q": 1})


def test_error_tells_key_and_expectation():
    plain = PointwiseParams(block_x=64).to_dict()
    with pytest.raises(ParamsError) as caught:
        HeuristicParams.from_dict({**plain, "block_x": True})
    assert caught.value.message == "pointwise params.block_x: expected int, got True of type bool"


def test_a_tail_is_a_block_too():
    changes = {"block_r": 1024, "persistent": False}
    with pytest.raises(ParamsError, match="a block of Triton holds at most"):
        InnerPersistentParams(block_x=64, tails=(MAX_BLOCK_ELEMENTS,), **changes)
    with pytest.raises(ParamsError, match=r"tails\[0\]: expected a power of two, 1 to 1048576"):
        InnerPersistentParams(block_x=1, tails=(2 * MAX_BLOCK_ELEMENTS,), **changes)
    with pytest.raises(ParamsError, match=r"tails: expected 3 items at most, got 4"):
        InnerPersistentParams(block_x=1, tails=(1, 1, 1, 1), **changes)
    assert hash(InnerPersistentParams(block_x=1, tails=[64], **changes))


@pytest.mark.parametrize("cls", [NoOpParams, ExprEvalParams])
def test_what_did_nothing_is_read_where_it_was_not_changed(cls):
    """Segments without a kernel had the fields of kernels: stored data has their defaults."""
    stored = {"scheduler": cls.scheduler, "num_warps": 4, "num_stages": 1, "max_registers": 0}
    assert HeuristicParams.from_dict(stored) == cls()
    assert cls().to_dict() == {"scheduler": cls.scheduler}
    for wrong in (8, 4.0, None):
        with pytest.raises(ParamsError, match="num_warps: expected no such field, or 4"):
            HeuristicParams.from_dict({**stored, "num_warps": wrong})
    with pytest.raises(TypeError):
        cls(num_warps=4)


def test_dict_is_as_written():
    assert PointwiseParams(block_x=1024, num_warps=8).to_dict() == {
        "scheduler": "pointwise",
        "num_warps": 8,
        "num_stages": 1,
        "max_registers": 0,
        "block_x": 1024,
        "vectorization_factor": 0,
        "axes": [],
        "loads_first": None,
    }


@pytest.mark.parametrize("name", ["matmul2", None, 3, ["pointwise"], ""])
def test_unknown_scheduler(name):
    with pytest.raises(ParamsError, match=r"params.scheduler: expected one of no_op, pointwise"):
        HeuristicParams.from_dict({"scheduler": name})


@pytest.mark.parametrize("data", [None, 3, [], "pointwise"])
def test_what_is_no_dict(data):
    with pytest.raises(ParamsError, match="expected a dict"):
        HeuristicParams.from_dict(data)


def test_a_subclass_takes_its_own_alone():
    with pytest.raises(ParamsError, match="expected one of pointwise, got 'no_op'"):
        PointwiseParams.from_dict(NoOpParams().to_dict())


@pytest.mark.parametrize("size", [0, -4, 3, 1000])
def test_blocks_are_powers_of_two(size):
    with pytest.raises(ParamsError, match=r"pointwise params.block_x: expected a power of two"):
        PointwiseParams(block_x=size)


@pytest.mark.parametrize("warps", [0, 3, 64, -1])
def test_warps_are_powers_of_two(warps):
    with pytest.raises(ParamsError, match="num_warps: expected a power of two, 1 to 32"):
        PointwiseParams(block_x=16, num_warps=warps)


def test_stages_are_limited():
    with pytest.raises(ParamsError, match="num_stages: expected 1 to 16, got 0"):
        PointwiseParams(block_x=16, num_stages=0)


@pytest.mark.parametrize("bad", [True, 64.0, "64", None])
def test_types_hold_in_the_constructor_too(bad):
    with pytest.raises(ParamsError, match=r"block_x: expected int"):
        PointwiseParams(block_x=bad)
    with pytest.raises(ParamsError, match=r"persistent: expected bool"):
        InnerPersistentParams(block_x=1, block_r=64, persistent=1)


def test_tile_has_a_largest_size():
    assert PointwiseParams(block_x=MAX_BLOCK_ELEMENTS).block_x == MAX_BLOCK_ELEMENTS
    with pytest.raises(ParamsError, match="block_x \\* block_y is 2097152"):
        TransposeParams(block_x=2048, block_y=1024)
    with pytest.raises(ParamsError, match="holds at most 1048576"):
        InnerOuterPersistentParams(block_m=2, block_r=MAX_BLOCK_ELEMENTS)


def test_params_are_frozen_and_take_keywords_only():
    params = PointwiseParams(block_x=64)
    with pytest.raises(FrozenInstanceError):
        params.block_x = 128
    with pytest.raises(TypeError):
        PointwiseParams(64)


# --- the codec, beyond what today's params need ------------------------------------------------


@dataclass(frozen=True)
class Inner:
    name: str
    sizes: tuple[int, ...]
    pair: tuple[int, float]


@dataclass(frozen=True)
class Outer:
    inner: Inner
    more: tuple[Inner, ...]
    mode: Literal["a", "b"]
    maybe: Optional[int] = None  # noqa: UP045
    other: Inner | None = None


inners = st.builds(
    Inner,
    st.text(),
    st.lists(st.integers()).map(tuple),
    st.tuples(st.integers(), st.floats(allow_nan=False)),
)
outers = st.builds(
    Outer,
    inners,
    st.lists(inners, max_size=3).map(tuple),
    st.sampled_from(["a", "b"]),
    st.none() | st.integers(),
    st.none() | inners,
)


class Named(NamedTuple):
    step: int
    other: Inner | None = None


@given(st.builds(Named, st.integers(), st.none() | inners))
def test_named_tuples_have_their_fields(value):
    plain = json.loads(json.dumps(encode((value,))))
    assert plain[0]["step"] == value.step
    assert decode(tuple[Named, ...], plain, "terms") == (value,)
    plain[0].pop("other")
    assert decode(tuple[Named, ...], plain, "terms")[0].other is None
    with pytest.raises(ParamsError, match=r"terms\[0\]: missing key 'step', expected int"):
        decode(tuple[Named, ...], [{}], "terms")


@given(outers)
def test_nested_round_trip(value):
    assert decode(Outer, json.loads(json.dumps(encode(value))), "outer") == value


@pytest.mark.parametrize(
    ("path", "bad", "message"),
    [
        (("inner", "sizes"), [1, 2.0], r"outer.inner.sizes\[1\]: expected int, got 2.0"),
        (("inner", "sizes"), 3, "outer.inner.sizes: expected a list"),
        (("inner", "pair"), [1], "outer.inner.pair: expected a list of 2 items"),
        (("inner", "name"), 1, "outer.inner.name: expected str"),
        (("inner",), [], "outer.inner: expected a dict with the fields of Inner"),
        (("mode",), "c", "outer.mode: expected one of 'a', 'b', got 'c'"),
        (("maybe",), False, "outer.maybe: expected int or None"),
        (("inner", "extra"), 1, "outer.inner: unknown key 'extra', expected name, sizes, pair"),
    ],
)
def test_nested_errors_name_the_place(path, bad, message):
    plain = encode(Outer(Inner("n", (1, 2), (3, 4.0)), (), "a"))
    where = plain
    for key in path[:-1]:
        where = where[key]
    where[path[-1]] = bad
    with pytest.raises(ParamsError, match=message):
        decode(Outer, plain, "outer")


def test_what_is_no_plain_data():
    with pytest.raises(ParamsError, match="cannot be written as plain data"):
        encode((1, object()))


@given(any_params())
def test_params_answer_what_other_rooms_ask(params):
    assert params.has_kernel is isinstance(params, KernelParams)
    assert params.row_parts == (params.parts if params.loops_over_rows else 1)
    if params.has_kernel:
        assert params.tile_sides == 1 + isinstance(params, TransposeParams | MatmulParams)
        lone = params.tile_sides > 1 or params.loops_over_rows
        assert params.positions == (1 if lone else params.block_x)


def test_a_product_says_how_its_epilogue_cuts_columns():
    params = MatmulParams(block_m=64, block_n=128, block_k=32)
    product = Product(batch=1, m=512, n=1024, k=256)
    assert product.why_not_params(params) is None
    reduced = replace(product, reduced_columns=64)
    reason, hint = reduced.why_not_params(params)
    assert "reduces 64 columns at a time of 1024" in reason
    assert hint == "block_n=64 with parts=1, or block_n=128 with parts=2."
    assert reduced.why_not_params(replace(params, parts=2)) is None
    assert replace(params, num_stages=3).waiting_bytes == 2 * (64 + 128) * 32 * 2
