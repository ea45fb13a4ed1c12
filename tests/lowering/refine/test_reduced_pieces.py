"""Reductions in pieces among the changes of a segmentation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, lowered
from tritonfuser.ir import Fusion
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.access.node_kinds import is_reducer
from tritonfuser.lowering.fuse.rewritten import CommonRewrites
from tritonfuser.lowering.fuse.segmentation import HEURISTIC, Choice
from tritonfuser.lowering.fuse.splits.split_policy import ByDims
from tritonfuser.lowering.passes.splits.parts import reduced_extents
from tritonfuser.lowering.refine.kernel_times import timed_kernels
from tritonfuser.lowering.refine.reduced_pieces import in_pieces
from tritonfuser.lowering.refine.timed_choices import TimedChoices


@pytest.mark.parametrize(
    ("dim", "merged", "carried"),
    [(2, False, 2), (0, False, 0), (1, True, 0)],
    ids=["kept", "reduced", "reduced and merged"],
)
def test_pieces_are_split_by_dims_as_the_whole_where_they_reduce_as_much(
    monkeypatch: pytest.MonkeyPatch, dim: int, merged: bool, carried: int
) -> None:
    found: list[Choice] = []

    def refined(fusion: Fusion, device: Any, make: Callable[[Choice], Any]) -> Any:
        node = next(node for node in fusion.nodes if is_reducer(node))
        choice = Choice(by_dims=(ByDims(node.out.name, (1, reduced_extents(node)[1])),))
        base = cache(lambda pieces: CommonRewrites.of(fusion, pieces).fusion)
        times = TimedChoices(H200, base, make, {choice: timed_kernels(make(choice), H200)})
        found.extend(in_pieces(fusion, times, choice))
        return [make(HEURISTIC), *map(make, found)][-1]

    def body(fd: Any, x: Any, y: Any) -> Any:
        both = fd.ops.cat([fd.ops.exp(x), fd.ops.sin(y)], dim)
        if merged:
            both = fd.ops.reshape(both, [64 * 96, 32, 8])
        return fd.ops.sum(both, [0, 1])

    monkeypatch.setattr(segment_choice, "refined", refined)
    sizes = (64, 48, 32, 8) if merged else (64, 48, 32)
    lowered(body, [noise(*sizes).float(), noise(*sizes, seed=1).float()], H200)
    (choice,) = found
    assert choice.pieces and len(choice.by_dims) == carried
