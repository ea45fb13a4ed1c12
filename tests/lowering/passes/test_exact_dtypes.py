"""Values that a lossless cast widened are in memory as they were before."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered, texts
from tritonfuser import DataType
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import Choice
from tritonfuser.lowering.passes.invariants.exact_dtypes import exact_dtype

D = DataType


def turned(fd, x, y):
    """A tensor widened before it is turned, in two results along different axes."""
    wide = fd.ops.permute(fd.ops.cast(x, D.Float), [0, 2, 1])
    both = fd.ops.mul(wide, y)
    return fd.ops.sum(both, [1]), fd.ops.sub(both, fd.ops.neg(wide))


def sliced(fd, x, y):
    wide = fd.ops.cast(x, D.Float)
    part = fd.ops.slice(fd.ops.permute(wide, [0, 2, 1]), [0, 1, 0], [4, 25, 16])
    part = fd.ops.reshape(part, [4, 24 * 16])
    flat = fd.ops.reshape(fd.ops.slice(y, [0, 1, 0], [4, 25, 16]), [4, 24 * 16])
    return fd.ops.sum(fd.ops.mul(part, flat), [1]), fd.ops.add(part, fd.ops.neg(flat))


def scaled(fd, x, y):
    """Products of two numbers of 16 bits are no numbers of 16 bits."""
    wide = fd.ops.mul(fd.ops.permute(fd.ops.cast(x, D.Float), [0, 2, 1]), 0.3)
    return fd.ops.sum(fd.ops.mul(wide, y), [1]), fd.ops.sub(wide, y)


def padded(fd, x, y):
    """What is between the elements is no number of 16 bits."""
    wide = fd.ops.pad(fd.ops.permute(fd.ops.cast(x, D.Float), [0, 2, 1]), [1, 0], 0.1)
    return fd.ops.sum(wide, [1]), fd.ops.neg(wide), y


def inputs_of(dtype):
    x, y = noise(4, 16, 40), noise(4, 40, 16, seed=1)
    return [(x > 0) if dtype is torch.bool else x.to(dtype), y]


def kept_as(found):
    """The dtypes of the values that were put in memory."""
    nodes = [node for piece in found.segmented.segments for node in piece.nodes]
    return {node.out.dtype for node in nodes if node.op == "materialize"}


def keeping(monkeypatch, *names):
    choice = Choice(materialized=names)
    monkeypatch.setattr(segment_choice, "refined", lambda fusion, device, make: make(choice))


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.bool])
@pytest.mark.parametrize(("body", "name"), [(turned, "tv3"), (sliced, "tv5")])
def test_what_is_kept_is_as_narrow_as_it_was(body, name, dtype, monkeypatch):
    keeping(monkeypatch, name)
    found = check(body, *inputs_of(dtype))
    assert [kept.info.torch for kept in kept_as(found)] == [dtype]
    stores = texts(found)[0]
    assert ".to(tl.float32)" not in stores


@pytest.mark.parametrize(("body", "name"), [(scaled, "tv4"), (padded, "tv4")])
def test_other_values_are_kept_as_they_are(body, name, monkeypatch):
    keeping(monkeypatch, name)
    found = check(body, *inputs_of(torch.half))
    assert kept_as(found) == {D.Float}


def test_a_dtype_that_is_exact():
    found = lowered(sliced, inputs_of(torch.bfloat16), H200)
    fusion = found.segmented.fusion
    kinds = {v.name: exact_dtype(v, fusion.producers) for n in fusion.nodes for v in n.outs}
    assert kinds["tv3"] is kinds["tv4"] is kinds["tv5"] is D.BFloat16
    assert kinds["tv8"] is D.Float
