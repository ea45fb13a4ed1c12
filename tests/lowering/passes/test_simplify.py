"""What simplify takes away: composites, copies, cast pairs, twins, constants, dead nodes."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import check, record
from tritonfuser import DataType
from tritonfuser.cache.keys.signature import signature
from tritonfuser.ir import Const, Value
from tritonfuser.ir_graph import check as checked
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.redundant_nodes import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
)
from tritonfuser.lowering.passes.simplify import simplify


def concrete(body, *inputs):
    ir = record(body, inputs).fusion.ir
    return concretize(ir, signature(ir, inputs, torch.device("cpu")))


def simple(body, *inputs):
    return checked(simplify(concrete(body, *inputs)))


def ops(fusion):
    return [node.op for node in fusion.nodes]


# --- composites --------------------------------------------------------------------------


def test_composites_become_what_they_are_written_in():
    fusion = simple(lambda fd, x: fd.ops.var_mean(x, [0])[0], noise(4, 5))
    assert ops(fusion) == ["welford", "div"]


def test_results_of_composites_keep_their_numbers():
    before = concrete(lambda fd, x: fd.ops.var(x, [0]), noise(4, 5))
    after = simplify(before)
    assert [o.value.name for o in after.outputs] == [o.value.name for o in before.outputs]


# --- copies ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "there", "kept"),
    [
        (torch.half, DataType.Float, 0),
        (torch.bfloat16, DataType.Float, 0),
        (torch.float32, DataType.Double, 0),
        (torch.int32, DataType.Int, 0),
        (torch.bool, DataType.Int32, 0),
        (torch.float32, DataType.Half, 2),
        (torch.float64, DataType.Float, 2),
        (torch.int64, DataType.Double, 2),
        (torch.int64, DataType.Float, 2),
        (torch.float32, DataType.Int, 2),
        (torch.half, DataType.BFloat16, 2),
        (torch.int32, DataType.Float, 2),
    ],
)
def test_casts_there_and_back_go_where_nothing_is_lost(dtype, there, kept):
    back = {
        torch.half: DataType.Half,
        torch.bfloat16: DataType.BFloat16,
        torch.float32: DataType.Float,
        torch.float64: DataType.Double,
        torch.int32: DataType.Int32,
        torch.int64: DataType.Int,
        torch.bool: DataType.Bool,
    }[dtype]

    def body(fd, x):
        return fd.ops.logical_not(fd.ops.cast(fd.ops.cast(x, there), back))

    numbers = torch.tensor([0, 1, -1, 3, 2**24 + 1, 100], dtype=torch.float64)
    assert ops(simple(body, numbers.to(dtype))).count("cast") == kept
    check(body, numbers.to(dtype))


def test_a_copy_inside_goes():
    fusion = simple(lambda fd, x: fd.ops.exp(fd.ops.set(fd.ops.set(x))), noise(4))
    assert ops(fusion) == ["exp"]


@pytest.mark.parametrize(
    "body",
    [
        lambda fd, x: fd.ops.set(x),
        lambda fd, x: fd.ops.permute(fd.ops.set(x), [1, 0]),
        lambda fd, x: fd.ops.set(fd.ops.permute(x, [1, 0])),
        lambda fd, x: fd.ops.cast(fd.ops.cast(x, DataType.Double), DataType.Float),
        lambda fd, x: fd.ops.set(fd.ops.set(x)),
    ],
)
def test_a_copy_between_input_and_output_stays(body):
    x = noise(3, 4)
    fusion = simple(body, x)
    assert sum(op in ("set", "cast") for op in ops(fusion)) >= 1
    found = check(body, x)
    assert len(found.segmented.segments) == 1


def test_a_copy_of_a_result_goes():
    fusion = simple(lambda fd, x: fd.ops.set(fd.ops.exp(x)), noise(4))
    assert ops(fusion) == ["exp"]
    assert fusion.outputs[0].value == fusion.nodes[0].out


# --- twins -------------------------------------------------------------------------------


def test_equal_nodes_become_one():
    def body(fd, x):
        return fd.ops.add(softmax(fd, x), softmax(fd, x))

    names = ops(simple(body, noise(4, 5)))
    assert names.count("exp") == names.count("max") == names.count("sum") == 1


def test_twins_of_several_results():
    def body(fd, x):
        (a, b), (c, d) = fd.ops.var_mean(x, [0]), fd.ops.var_mean(x, [0])
        return fd.ops.add(a, c), fd.ops.add(b, d)

    assert ops(simple(body, noise(4, 5))).count("welford") == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [(0.0, -0.0), (1, 1.0), (1, True), (1.0, 2.0)],
)
def test_constants_that_differ_in_type_or_bits_keep_nodes_apart(first, second):
    def body(fd, x):
        return fd.ops.mul(x, first), fd.ops.mul(x, second)

    assert len(simple(body, noise(4)).nodes) == 2


def test_constants_that_are_nan_are_one():
    def body(fd, x):
        return fd.ops.add(fd.ops.mul(x, float("nan")), fd.ops.mul(x, float("nan")))

    assert ops(simple(body, noise(4))) == ["mul", "add"]


def test_attributes_keep_nodes_apart():
    def body(fd, x):
        return fd.ops.sum(x, [0]), fd.ops.sum(x, [1]), fd.ops.cast(x, DataType.Double)

    assert len(simple(body, noise(4, 4)).nodes) == 3


def test_random_numbers_are_drawn_each_time():
    def body(fd):
        draw = lambda: fd.ops.uniform(0.0, 1.0, [4], dtype=DataType.Float)  # noqa: E731
        return fd.ops.sub(draw(), draw())

    assert ops(simple(body)) == ["uniform", "uniform", "sub"]


def test_random_numbers_of_one_seed_are_drawn_once():
    def body(fd, seed, offset):
        draw = lambda: fd.ops.uniform(  # noqa: E731
            0.0, 1.0, [4], rng_seed=seed, rng_offset=offset, dtype=DataType.Float
        )
        return fd.ops.sub(draw(), draw())

    assert ops(simple(body, 1, 2)) == ["uniform", "sub"]


def test_merging_is_one_walk():
    fusion = concrete(lambda fd, x: fd.ops.add(fd.ops.exp(x), fd.ops.exp(x)), noise(4))
    once = eliminate_common_subexpressions(fusion)
    assert eliminate_common_subexpressions(once) == once


# --- constants and dead nodes ------------------------------------------------------------


def test_scalars_known_now_are_computed_now():
    def body(fd, x, n):
        length = fd.ops.cast(fd.ops.size(x, 0), DataType.Double)
        return fd.ops.mul(fd.ops.reshape(x, [n, -1]), fd.ops.reciprocal(fd.ops.add(length, n)))

    fusion = simple(body, noise(12), 4)
    assert ops(fusion) == ["reshape", "mul"]
    factor = fusion.nodes[-1].args[1]
    assert isinstance(factor, Const)
    assert factor.value == 1 / 16


def test_scalars_of_a_run_stay():
    fusion = simple(lambda fd, x, s: fd.ops.mul(x, fd.ops.exp(s)), noise(4), 2.0)
    assert ops(fusion) == ["exp", "mul"]
    assert isinstance(fusion.nodes[-1].args[1], Value)


def test_constants_are_folded_wherever_torch_makes_tensors():
    """A program may have set another default device."""
    with torch.device("meta"):
        fusion = simple(lambda fd, s: fd.ops.full([fd.ops.add(s, 1)], 1.0, DataType.Float), 3)
    assert fusion.outputs[0].value.tensor.sizes == (4,)


def test_what_no_output_needs_goes():
    def body(fd, x):
        fd.ops.exp(fd.ops.sum(x, [0]))
        return fd.ops.sin(x)

    assert ops(simple(body, noise(4, 5))) == ["sin"]
    assert ops(concrete(body, noise(4, 5))) == ["sin"]
    fusion = record(body, [noise(4, 5)]).fusion.ir
    assert len(fusion.nodes) == 3
    assert ops(eliminate_dead_code(fusion)) == ["sin"]
