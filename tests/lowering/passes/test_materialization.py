"""What is dear to compute once more is kept in memory for kernels behind ops that torch runs."""

from __future__ import annotations

import pytest

from tests.lowering.graphs import noise
from tests.lowering.harness import BOTH, H200, check, lowered, record
from tritonfuser import DataType
from tritonfuser.cache.keys.run_device import default_device
from tritonfuser.cache.keys.signature import signature
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.materialization import materialize_shared
from tritonfuser.lowering.passes.simplify import simplify

LAYERS = 12
SHAPES = ((8, 16), (16, 16))


def scaled(fd, x):
    return fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(fd.ops.sum(fd.ops.mul(x, x), [1], True), 1.0)))


def residuals(layers, show=False, again=False):
    """A sum that grows by a product in each layer, the product of what is computed of the sum."""

    def body(fd, x, weight):
        sums, parts = [], []
        for _ in range(layers):
            parts.append(scaled(fd, x))
            x = fd.ops.add(x, fd.ops.matmul(parts[-1], weight))
            sums.append(x)
        if again:  # as a backward does: all of it once more, behind the last product
            for part in parts:
                x = fd.ops.mul(x, fd.ops.add(part, 0.5))
        return (x, *sums) if show else x

    return body


def simplified(body, *inputs):
    ir = record(body, inputs).fusion.ir
    return simplify(concretize(ir, signature(ir, inputs, default_device())))


def kept(fusion):
    return [node for node in fusion.nodes if node.op == "materialize"]


def most_inputs(found):
    return max(len(piece.inputs) for piece in found.segmented.segments)


@pytest.mark.parametrize("facts", BOTH, ids=["H200", "CPU"])
@pytest.mark.parametrize("again", [False, True])
def test_a_running_sum_over_layers_is_right(facts, again):
    found = check(residuals(LAYERS, again=again), noise(8, 16), noise(16, 16), facts=facts)
    assert kept(found.segmented.fusion)


@pytest.mark.parametrize("again", [False, True])
def test_kernels_do_not_grow_with_the_layers(again):
    few, many = (
        lowered(residuals(n, again=again), [noise(8, 16), noise(16, 16)], H200) for n in (8, 40)
    )
    loads = [sum(len(p.inputs) for p in found.segmented.segments) for found in (few, many)]
    assert loads[1] < 6 * loads[0]
    if not again:
        assert most_inputs(few) == most_inputs(many) <= 6


def test_what_is_kept_is_computed_by_the_first_kernel_that_needs_it():
    """No kernel more than without: it is stored beside what that kernel is for."""
    found = lowered(residuals(LAYERS), [noise(8, 16), noise(16, 16)], H200)
    torch_runs = [p for p in found.segmented.segments if p.scheduler == "expr_eval"]
    assert len(torch_runs) == LAYERS
    assert len(found.segmented.segments) == 2 * LAYERS + 1
    values = {node.out for node in kept(found.segmented.fusion)}
    writers = [p for p in found.segmented.segments if values.intersection(p.outputs)]
    assert {len(p.outputs) for p in writers} == {2}


def test_an_output_that_is_kept_is_stored_once():
    body = residuals(LAYERS, show=True)
    found = check(body, noise(8, 16), noise(16, 16))
    stored = [out for piece in found.segmented.segments for out in piece.outputs]
    kernels = [p for p in found.segmented.segments if p.scheduler != "expr_eval"]
    assert kept(found.segmented.fusion) and len(stored) == len(set(stored))
    assert sum(len(p.outputs) for p in kernels) == 2 * LAYERS


def test_what_is_computed_of_kept_values_is_no_reason_to_keep_more():
    one = simplified(residuals(4), noise(8, 16), noise(16, 16))
    both = simplified(residuals(4, again=True), noise(8, 16), noise(16, 16))
    assert len(kept(materialize_shared(one)[0])) == 1
    extra = len(kept(materialize_shared(both)[0])) - 1
    assert extra <= 1


def test_cheap_ones_are_computed_once_more():
    fusion = simplified(residuals(2), noise(8, 16), noise(16, 16))
    assert materialize_shared(fusion)[0] is fusion


def test_without_an_op_that_torch_runs_all_stays():
    def body(fd, *given):
        total = given[0]
        for x in given[1:]:
            total = fd.ops.add(total, x)
        return fd.ops.sub(total, fd.ops.sum(total, [1], True))

    fusion = simplified(body, *(noise(8, 16) for _ in range(9)))
    assert materialize_shared(fusion)[0] is fusion


def test_small_tensors_make_nothing_dear():
    """A row that is read for many rows counts for what it has."""

    def body(fd, x, weight, *rows):
        for row in rows:
            x = fd.ops.add(x, row)
        return fd.ops.add(fd.ops.matmul(x, weight), x)

    fusion = simplified(body, noise(64, 16), noise(16, 16), *(noise(16) for _ in range(9)))
    assert materialize_shared(fusion)[0] is fusion


def test_long_chains_do_not_reach_a_limit():
    def body(fd, x, weight, *given):
        for other in given:
            x = fd.ops.add(x, other)
        for _ in range(3000):
            x = fd.ops.add(x, 1.0)
        return fd.ops.add(fd.ops.matmul(x, weight), x)

    fusion = simplified(body, noise(8, 16), noise(16, 16), *(noise(8, 16) for _ in range(5)))
    assert len(kept(materialize_shared(fusion)[0])) == 1


def test_bfloat16_counts_half():
    """Four tensors of half the bytes are as cheap as two."""

    def body(fd, x, weight, *given):
        total = fd.ops.cast(x, DataType.Float)
        for other in given:
            total = fd.ops.add(total, fd.ops.cast(other, DataType.Float))
        product = fd.ops.matmul(fd.ops.cast(total, DataType.BFloat16), weight)
        return fd.ops.add(fd.ops.cast(product, DataType.Float), total)

    def found(count):
        inputs = [noise(8, 16).bfloat16(), noise(16, 16).bfloat16()]
        others = [noise(8, 16).bfloat16() for _ in range(count)]
        return materialize_shared(simplified(body, *inputs, *others))[0]

    assert [len(kept(found(count))) for count in (3, 6, 7)] == [0, 0, 1]
