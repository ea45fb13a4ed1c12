"""The work of segments and of whole definitions, counted by hand."""

from __future__ import annotations

import re

import pytest
import torch

from tests.lowering.graphs import meta
from tests.lowering.harness import H200, lowered, record
from tritonfuser import DataType
from tritonfuser.heuristics.bounds import Instructions, bound
from tritonfuser.lowering.work import fusion_work, segment_work


def works(body, *inputs):
    """The work of each segment, and that of the whole definition, for an H200."""
    segmented = lowered(body, inputs).segmented
    return [segment_work(piece) for piece in segmented.segments], fusion_work(segmented)


def test_a_multiply_and_an_add_may_be_one_instruction():
    n = 1 << 20
    (only,), whole = works(lambda fd, x, y: fd.ops.add(fd.ops.mul(x, y), 1.0), meta(n), meta(n))
    assert only == whole
    assert (only.read_bytes, only.written_bytes, only.launches) == (8 * n, 4 * n, 1)
    assert (only.instructions.multiplies, only.instructions.adds) == (n, n)
    assert only.instructions.fp32 == only.instructions.issued == n


def test_a_row_is_counted_once_however_often_it_is_used():
    (only,), _ = works(lambda fd, x, w: fd.ops.mul(x, fd.ops.exp(w)), meta(512, 256), meta(256))
    assert only.instructions.sfu == 256
    assert only.instructions.multiplies == 512 * 256 + 5 * 256


def test_a_slice_needs_no_more_than_it_has():
    def body(fd, x):
        return fd.ops.slice(fd.ops.exp(x), [0, 0], [512, 64])

    (only,), whole = works(body, meta(512, 256))
    assert only.instructions.sfu == whole.instructions.sfu == 512 * 64
    assert whole.read_bytes == whole.written_bytes == 4 * 512 * 64


def test_a_concatenation_is_computed_piece_by_piece():
    def body(fd, x, y):
        return fd.ops.cat([fd.ops.exp(x), fd.ops.mul(y, y)], 1)

    n, m = 512 * 256, 512 * 64
    segments, whole = works(body, meta(512, 256), meta(512, 64))
    for found in (sum((s.instructions for s in segments), Instructions()), whole.instructions):
        assert (found.sfu, found.multiplies, found.adds) == (n, 5 * n + m, 5 * n)
    assert whole.read_bytes == whole.written_bytes == 4 * (n + m)


def test_a_softmax():
    def body(fd, x):
        e = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
        return fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True))

    (only,), whole = works(body, meta(1024, 512))
    n = 1024 * 512
    # max: 1; sub, sum: adds; exp_nonpositive: 1 multiply, 1 SFU; div_by_sum: 3 multiplies, 2 adds.
    assert only.instructions.integer == n
    assert (only.instructions.multiplies, only.instructions.adds) == (4 * n, 4 * n)
    assert only.instructions.sfu == n
    assert {rows.row_bytes for rows in only.again} == {4 * 512}
    assert bound(whole, H200).bytes_again == 0
    assert bound(whole, H200).limit == "launch"


def test_a_tensor_divided_by_its_sum_is_read_twice_where_it_is_large():
    n = 1 << 27
    segments, whole = works(lambda fd, x: fd.ops.div(x, fd.ops.sum(x, [0])), meta(n))
    found = bound(whole, H200)
    assert found.bytes_again == 4 * n - H200.on_chip_bytes
    assert found.seconds == pytest.approx((12 * n - H200.on_chip_bytes) / 4.27e12)
    # Two kernels read all of it, each once.
    assert [bound(work, H200).bytes_again for work in segments] == [0, 0, 0]
    assert segments[0].read_bytes == segments[2].read_bytes - 4 == 4 * n


def test_running_sums_are_not_read_twice():
    def body(fd, x):
        return fd.ops.sub(x, fd.ops.cumsum(x, 1))

    (only,), _ = works(body, meta(64, 1024))
    assert only.again == ()


def test_random_numbers_take_five_products_and_five_logic_instructions():
    def body(fd, x):
        u = fd.ops.uniform(0.0, 1.0, fd.ops.shape(x), dtype=DataType.Float)
        return fd.ops.where(fd.ops.lt(u, 0.9), x, 0.0)

    (only,), _ = works(body, meta(1 << 20))
    assert only.instructions.integer_multiplies == 5 << 20
    # The draw, an addition and a comparison in place of its number, the choice.
    assert only.instructions.integer == 8 << 20


def test_floats_of_16_bits_are_converted_two_at_a_time():
    (only,), _ = works(lambda fd, x: fd.ops.cast(x, DataType.BFloat16), meta(1 << 20))
    assert only.instructions.conversions == 1 << 19
    assert only.instructions.fp32 == 0


def test_a_product_has_its_operations():
    given = (meta(256, 512, dtype=torch.bfloat16), meta(512, 128, dtype=torch.bfloat16))
    (only,), whole = works(lambda fd, a, b: fd.ops.matmul(a, b), *given)
    assert only.product_flops == whole.product_flops == 2 * 256 * 512 * 128


def test_a_view_of_an_input_is_no_work():
    _, whole = works(lambda fd, x: fd.ops.permute(x, [1, 0]), meta(64, 32))
    assert (whole.read_bytes, whole.written_bytes, whole.launches) == (0, 0, 0)
    assert bound(whole, H200).seconds == 0


@pytest.mark.parametrize("given", [2.5, None], ids=["known", "of the run"])
def test_a_number_that_is_scattered_takes_no_work_to_compute(given):
    def body(fd, x, index, *number):
        src = number[0] if number else fd.define_scalar(given)
        return fd.ops.scatter(x, index, src, 0)

    inputs = [meta(64, 32), meta(8, 32, dtype=torch.int64), *([] if given else [2.5])]
    segments, _ = works(body, *inputs)
    assert sum((s.instructions for s in segments), Instructions()) == Instructions()
    assert sum(s.written_bytes for s in segments) == 4 * (64 + 8) * 32


_SFU = re.compile(r"^\s*(?:ex2|rcp|rsqrt|sqrt|lg2|sin|cos|div)\b", re.MULTILINE)
_FP32 = re.compile(r"^\s*(?:fma|mul|add|sub)\.[\w.]*f32\b", re.MULTILINE)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "silu", "exp2", "rsqrt", "neg"])
def test_no_kernel_has_fewer_instructions_than_the_bound_counts(name):
    """Eight elements of a thread in the PTX, at least."""
    given = [meta(1 << 22)]
    fd = record(lambda fd, x: getattr(fd.ops, name)(x), given)
    (kernel,) = fd.compile_for("sm_90", given)
    found = fusion_work(fd.segments(given, arch="sm_90")).instructions
    ptx = kernel.asm["ptx"]
    elements = 2 * len(re.findall(r"st\.global[\w.]*\.v4\.b32", ptx)) * 2
    assert elements == 8
    assert found.sfu / 2**22 <= len(_SFU.findall(ptx)) / elements
    assert found.fp32 / 2**22 <= max(len(_FP32.findall(ptx)) / elements, 1 if name == "neg" else 0)
