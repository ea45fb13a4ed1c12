"""What a kernel needs at several indices is computed once, and loaded there."""

from __future__ import annotations

import torch

from bench.random_graphs.__main__ import named as random_graph
from bench.recorded.definitions import make_inputs
from bench.recorded.definitions import record as recorded
from tests.lowering.harness import H200, lowered
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import HEURISTIC
from tritonfuser.lowering.refine import candidates
from tritonfuser.lowering.refine.kernel_times import Excess, TimedKernels
from tritonfuser.lowering.refine.saved_instructions import SavedInstructions

ROWS, COLUMNS = 160_000, 576


def softmax(fd, x):
    top = fd.ops.broadcast(fd.ops.max(x, [1]), [False, True])
    powers = fd.ops.exp(fd.ops.sub(x, top))
    return fd.ops.div(powers, fd.ops.broadcast(fd.ops.sum(powers, [1]), [False, True]))


def shifted_and_turned(fd, x, y):
    """A dear function of probabilities: in its place, shifted by one, and with halves swapped."""
    rows, columns = x.shape()
    dear = fd.ops.lgamma(fd.ops.add(softmax(fd, x), y))
    before = fd.ops.pad(fd.ops.slice(dear, [0, 0], [rows, columns - 1]), [1, 0])
    left = fd.ops.slice(dear, [0, 0], [rows, columns // 2])
    right = fd.ops.slice(dear, [0, columns // 2], [rows, columns])
    turned = fd.ops.cat([fd.ops.neg(right), left], 1)
    return fd.ops.sub(dear, before), fd.ops.mul(dear, turned)


def large():
    return [torch.empty(ROWS, COLUMNS, device="meta") for _ in range(2)]


def dear_name(segmented):
    (name,) = (n.out.name for n in segmented.fusion.nodes if n.op == "lgamma")
    return name


def test_the_last_value_that_all_uses_have_in_common_is_in_memory(monkeypatch):
    """A softmax with an embedding added, its logarithm less that of the one before, and turned."""
    stored = random_graph("graph-79-20")
    fd = recorded(stored)
    inputs = make_inputs(stored, fd.fusion.ir, "meta")
    (name,) = (node.out.name for node in fd.fusion.ir.nodes if node.op == "log1p")
    assert fd.segments(inputs, arch="sm_90").rewrites.invariants == (name,)
    monkeypatch.setattr(candidates, "SavedInstructions", lambda now: lambda name: 0)
    assert recorded(stored).segments(inputs, arch="sm_90").rewrites.invariants == ()


def test_it_saves_most_instructions(monkeypatch):
    monkeypatch.setattr(segment_choice, "refined", lambda fusion, device, make: make(HEURISTIC))
    found = lowered(shifted_and_turned, large(), H200).segmented
    slow = tuple(Excess(piece, 1.0) for piece in found.segments)
    saved = SavedInstructions(TimedKernels(found, 1.0, 1.0, slow, 1.0))
    assert max((value.name for value in found.fusion.producers), key=saved) == dear_name(found)


def test_what_is_needed_at_one_index_saves_nothing():
    found = lowered(softmax, large()[:1], H200).segmented
    slow = tuple(Excess(piece, 1.0) for piece in found.segments)
    saved = SavedInstructions(TimedKernels(found, 1.0, 1.0, slow, 1.0))
    assert not any(saved(value.name) for value in found.fusion.producers)
