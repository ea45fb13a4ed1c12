"""Which params a segment may have: all that schedulers propose, none that do not fit it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lowering.graphs import gelu, layer_norm, layer_norm_backward, noise, softmax
from tests.lowering.harness import CPU, H200, lowered
from tritonfuser.heuristics.params import PointwiseParams
from tritonfuser.lowering.legality.params import why_not_params


def scan(fd, x):
    return fd.ops.cumsum(x, 1)


DEFINITIONS = [
    (gelu, [noise(64, 100)]),
    (softmax, [noise(16, 1000)]),
    (softmax, [noise(4, 100_003)]),
    (layer_norm, [noise(2048, 999), noise(999), noise(999)]),
    (layer_norm_backward, [noise(4096, 64), noise(4096, 64), noise(64)]),
    (scan, [noise(8, 300)]),
]


@pytest.mark.parametrize("device", [H200, CPU], ids=["H200", "cpu"])
@pytest.mark.parametrize(("body", "inputs"), DEFINITIONS)
def test_what_schedulers_propose_is_legal(body, inputs, device):
    segments = lowered(body, inputs, device).segmented.segments
    assert segments
    assert [why_not_params(each, each.params) for each in segments] == [None] * len(segments)


def test_the_answer_says_what_does_not_fit_and_what_to_change():
    (segment,) = lowered(softmax, [noise(16, 1000)]).segmented.segments
    refused = why_not_params(segment, replace(segment.params, block_r=256, tails=()))
    assert refused is not None
    assert refused.reason == (
        "segment s0 (inner_persistent) keeps rows of 1000 elements in registers, "
        "block_r=256 is too small"
    )
    assert refused.hint == "Use persistent=False, or a block_r of at least the row."
    looped = replace(segment.params, block_r=256, tails=(), persistent=False)
    assert why_not_params(segment, looped) is None


def test_params_are_of_the_segments_scheduler():
    (segment,) = lowered(softmax, [noise(16, 1000)]).segmented.segments
    refused = why_not_params(segment, PointwiseParams(block_x=64))
    assert refused is not None and "does not take PointwiseParams" in refused.reason


def test_columns_are_not_kept_at_whole_vectors():
    """The rows of outer_persistent lie across memory, so no vector runs along them."""
    (segment,) = lowered(lambda fd, x: softmax(fd, x, 0), [noise(128, 4096)]).segmented.segments
    assert segment.scheduler == "outer_persistent"
    refused = why_not_params(segment, replace(segment.params, align=4, tails=(8,)))
    assert refused is not None and refused.reason.endswith("its scheduler have none")
