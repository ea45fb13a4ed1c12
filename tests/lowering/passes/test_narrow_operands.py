"""What sorts and scatters are given is as narrow as before a lossless cast."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, record
from tritonfuser import DataType
from tritonfuser.cache.keys.signature import signature
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.simplify import simplify

D = DataType
PLACES = torch.tensor([[0, 3], [2, 2], [1, 0], [3, 1]])


def nodes(body, *inputs):
    ir = record(body, inputs).fusion.ir
    return simplify(concretize(ir, signature(ir, inputs, torch.device("cpu")))).nodes


def operand_dtype(body, op, *inputs):
    return next(n for n in nodes(body, *inputs) if n.op == op).args[0].dtype


def largest(fd, x):
    values, places = fd.ops.topk(fd.ops.cast(x, D.Float), 2, 1, True, True)
    return fd.ops.mul(values, 2.0), places


def ordered(fd, x):
    return fd.ops.argsort(fd.ops.permute(fd.ops.cast(x, D.Float), [1, 0]), 1, True, True)


def put(number):
    def body(fd, x, places):
        src = fd.define_scalar(number, dtype=D.Float)
        found = fd.ops.scatter(fd.ops.cast(x, D.Float), places, src, 1)
        return fd.ops.mul(found, 0.3)

    return body


def put_rows(fd, x, places, src):
    x, src = fd.ops.cast(x, D.Float), fd.ops.cast(src, D.Float)
    return fd.ops.exp(fd.ops.scatter(x, places, src, 1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half])
def test_what_is_sorted_is_not_cast_before(dtype):
    x = noise(4, 8).to(dtype)
    x[1, 2], x[1, 5] = float("nan"), -0.0
    for body, op in ((largest, "topk"), (ordered, "argsort")):
        assert operand_dtype(body, op, x) in (D.BFloat16, D.Half)
        check(body, x)


@pytest.mark.parametrize("number", [0.0, -0.0, 0.5, float("-inf"), float("nan")])
def test_numbers_of_the_narrow_dtype_are_scattered_into_it(number):
    x = noise(4, 8).bfloat16()
    assert operand_dtype(put(number), "scatter", x, PLACES) is D.BFloat16
    check(put(number), x, PLACES)


def test_other_numbers_are_not():
    x = noise(4, 8).bfloat16()
    assert operand_dtype(put(0.1), "scatter", x, PLACES) is D.Float
    check(put(0.1), x, PLACES)


def test_both_operands_of_a_scatter_are_narrow_or_none():
    x, src = noise(4, 8).bfloat16(), noise(4, 2, seed=1)
    assert operand_dtype(put_rows, "scatter", x, PLACES, src.bfloat16()) is D.BFloat16
    assert operand_dtype(put_rows, "scatter", x, PLACES, src.half()) is D.Float
    assert operand_dtype(put_rows, "scatter", x, PLACES, src) is D.Float
    for given in (src.bfloat16(), src.half(), src):
        check(put_rows, x, PLACES, given)


def test_scatters_in_a_row_are_narrow():
    def body(fd, x, places):
        zero, one = fd.define_scalar(0.0), fd.define_scalar(1.0)
        once = fd.ops.scatter(fd.ops.cast(x, D.Float), places, zero, 1)
        return fd.ops.neg(fd.ops.scatter(once, places, one, 1))

    x = noise(4, 8).bfloat16()
    kinds = [n.out.dtype for n in nodes(body, x, PLACES) if n.op == "scatter"]
    assert kinds == [D.BFloat16, D.BFloat16]
    check(body, x, PLACES)


@pytest.mark.parametrize("view", [False, True])
def test_a_result_that_is_handed_out_is_scattered_into_as_it_is(view):
    def body(fd, x, places):
        zero = fd.define_scalar(0.0)
        found = fd.ops.scatter(fd.ops.cast(x, D.Float), places, zero, 1)
        return fd.ops.permute(found, [1, 0]) if view else found

    x = noise(4, 8).bfloat16()
    assert operand_dtype(body, "scatter", x, PLACES) is D.Float
    check(body, x, PLACES)


def test_integers_are_narrowed_to_integers_alone():
    def body(fd, x):
        return fd.ops.argsort(fd.ops.cast(x, D.Int), 1, False, True)

    whole = torch.arange(32).reshape(4, 8) % 5
    assert operand_dtype(body, "argsort", whole.int()) is D.Int32
    assert operand_dtype(body, "argsort", whole > 2) is D.Int
    check(body, whole.int())
    check(body, whole > 2)


def test_results_keep_their_names():
    x = noise(4, 8).bfloat16()
    ir = record(largest, [x]).fusion.ir
    before = concretize(ir, signature(ir, [x], torch.device("cpu")))
    after = simplify(before)
    assert [o.value for o in after.outputs] == [o.value for o in before.outputs]


def rounded(fd, x):
    """Of what a kernel computes, which can store it wide as well."""
    return fd.ops.cast(fd.ops.cast(fd.ops.exp(fd.ops.cast(x, D.Float)), D.BFloat16), D.Float)


def handed_out(fd, x):
    return fd.ops.topk(rounded(fd, x), 2, 1, True, True)


def handed_out_of_an_input(fd, x):
    return fd.ops.topk(fd.ops.cast(x, D.Float), 2, 1, True, True)


def places_of_computed(fd, x):
    return fd.ops.argsort(rounded(fd, x), 1, False, True)


def picked_and_summed(fd, x):
    rows = fd.ops.index_select(fd.ops.cast(x, D.Float), fd.ops.iota(3, 0, 1, dtype=D.Int), 0)
    return fd.ops.argsort(rows, 1, False, True), fd.ops.sum(fd.ops.mul(rows, 2.0), [1])


@pytest.mark.parametrize(
    ("body", "dtype", "kernels"),
    [
        (handed_out, D.Float, 2),
        (handed_out_of_an_input, D.BFloat16, 2),
        (places_of_computed, D.BFloat16, 2),
        (picked_and_summed, D.Float, 2),
    ],
)
def test_no_more_kernels_are_needed(body, dtype, kernels):
    """torch is one of them."""
    x = noise(4, 8).bfloat16()
    op = "argsort" if body in (places_of_computed, picked_and_summed) else "topk"
    assert operand_dtype(body, op, x) is dtype
    assert len(check(body, x).segmented.segments) == kernels
