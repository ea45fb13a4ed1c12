"""``logsumexp`` as tracers write it: its sum is a softmax's, and the guard comes behind it."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import lowered, record
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.ir_graph import check
from tritonfuser.lowering.passes.arithmetic.guarded_maxima import sum_before_guards
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.mark_softmax import mark_softmax
from tritonfuser.lowering.passes.simplify import simplify

ROW = [False, True]


def of_infinity(fd, top):
    return fd.ops.where(fd.ops.eq(fd.ops.abs(top), math.inf), 0.0, top)


def of_isinf(fd, top):
    return fd.ops.where(fd.ops.isinf(top), 0.0, top)


def of_finite(fd, top):
    return fd.ops.where(fd.ops.isfinite(top), top, 0.0)


def of_unequal(fd, top):
    return fd.ops.where(fd.ops.ne(math.inf, fd.ops.abs(top)), top, 0.0)


GUARDS = [of_infinity, of_isinf, of_finite, of_unequal]


def before_broadcast(fd, x, guard):
    """The guard on one number of a row, then spread over the row."""
    shift = guard(fd, fd.ops.max(x, [1]))
    spread = fd.ops.expand(fd.ops.broadcast(shift, ROW), [*x.shape()])
    total = fd.ops.sum(fd.ops.exp(fd.ops.sub(x, spread)), [1])
    return fd.ops.add(fd.ops.log(total), shift)


def after_broadcast(fd, x, guard):
    shift = guard(fd, fd.ops.broadcast(fd.ops.max(x, [1]), ROW))
    total = fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [1])
    return fd.ops.add(fd.ops.log(total), fd.ops.squeeze(shift, [1]))


BODIES = [before_broadcast, after_broadcast]


def ops(body, *inputs):
    """The ops of a definition, softmaxes marked."""
    ir = record(body, inputs).fusion.ir
    concrete = simplify(concretize(ir, signature(ir, inputs, torch.device("cpu"))))
    return [node.op for node in check(mark_softmax(sum_before_guards(concrete))).nodes]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("body", BODIES)
def test_a_guarded_sum_is_that_of_a_softmax(body, guard) -> None:
    found = ops(lambda fd, x: body(fd, x, guard), noise(4, 50))
    assert found.count("exp_nonpositive") == found.count("sum") == found.count("max") == 1


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("columns", [5, 3000])
def test_numbers_that_are_not_finite(body, guard, dtype, columns) -> None:
    x = (noise(8, columns) * 9).to(dtype)
    x[1] = -math.inf
    x[2, 1] = math.inf
    x[3, 2] = math.nan
    x[4, ::2], x[4, 1] = -math.inf, math.inf
    x[5] = 3e38
    x[6, 1], x[6, 3] = math.nan, math.inf
    x[7, :4] = -math.inf
    with FusionDefinition() as fd:
        fd.add_output(body(fd, fd.from_pytorch(x), guard))
    (found,) = fd.run([x])
    expected = torch.logsumexp(x.double(), 1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_one_walk_over_the_rows_of_a_cross_entropy() -> None:
    def body(fd, x):
        top = fd.ops.max(x, [1])
        plain = fd.ops.sum(fd.ops.exp(fd.ops.sub(x, fd.ops.broadcast(top, ROW))), [1])
        return fd.ops.log(plain), after_broadcast(fd, x, of_infinity)

    x = torch.empty(4096, 50257, device="meta")
    (source,) = (s for s in lowered(body, [x]).sources if s is not None)
    assert source.text.count("for r_start in range") == 1


def shown_parts(fd, x):
    shift = of_infinity(fd, fd.ops.broadcast(fd.ops.max(x, [1]), ROW))
    parts = fd.ops.exp(fd.ops.sub(x, shift))
    return fd.ops.sum(parts, [1]), parts


def other_dims(fd, x):
    shift = of_infinity(fd, fd.ops.broadcast(fd.ops.max(x, [1]), ROW))
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [0])


def other_rows(fd, x):
    shift = of_infinity(fd, fd.ops.broadcast(fd.ops.max(fd.ops.neg(x), [1]), ROW))
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [1])


def other_number(fd, x):
    top = fd.ops.broadcast(fd.ops.max(x, [1]), ROW)
    shift = fd.ops.where(fd.ops.isinf(top), 1.0, top)
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [1])


def other_test(fd, x):
    top = fd.ops.broadcast(fd.ops.max(x, [1]), ROW)
    shift = fd.ops.where(fd.ops.isinf(top), top, 0.0)
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [1])


def rounded_shift(fd, x):
    top = fd.ops.cast(fd.ops.cast(fd.ops.max(x, [1]), DataType.BFloat16), DataType.Float)
    shift = of_infinity(fd, fd.ops.broadcast(top, ROW))
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [1])


def other_places(fd, x):
    """The maxima of the rows, one a column."""
    shift = of_infinity(fd, fd.ops.broadcast(fd.ops.max(x, [1]), [True, False]))
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, shift)), [1])


@pytest.mark.parametrize(
    "body",
    [shown_parts, other_dims, other_rows, other_number, other_test, other_places, rounded_shift],
)
def test_what_is_no_logsumexp_stays(body) -> None:
    assert "exp_nonpositive" not in ops(body, noise(20, 20))
