"""Random problems at sizes over a range of 1,000: the schedule in use against a static kernel's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.cache.abstract_variants import AbstractVariants, programs
from tests.lowering.graphs import meta
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.variant_family import MAX_VARIANTS
from tritonfuser.heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    ReductionParams,
)
from tritonfuser.heuristics.schedulers import propose
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import HEURISTIC
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.passes.splits.factors import MAX_SHORTFALL
from tritonfuser.lowering.segments.segment import Segment
from tritonfuser.symbolic.sizes import hint

RANGE = 1000
"""The longest size over the shortest."""

SIZES = 16
"""Signatures of each problem."""

SHARING = ("batch norm", "column variance")
"""Problems whose rows are shared out over programs."""

SHARED_ROWS = 512
"""What sizes of these are multiples of: others may have divisors that are not known where sizes are
open, or none."""

Shapes = Callable[[int, int], list[tuple[int, ...]]]


def softmax(fd: Any, x: Any, dim: int) -> Any:
    powers = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [dim], keepdim=True)))
    return fd.ops.div(powers, fd.ops.sum(powers, [dim], keepdim=True))


def normed(fd: Any, x: Any, dim: int) -> tuple[Any, Any]:
    """The values, and the reciprocal of the deviation."""
    var, mean = fd.ops.var_mean(x, dims=[dim], correction=0, keepdim=True)
    scale = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
    return fd.ops.mul(fd.ops.sub(x, mean), scale), scale


def row(fd: Any, w: Any) -> Any:
    return fd.ops.broadcast(w, [True, False])


def layer_norm_backward(fd: Any, x: Any, g: Any, w: Any) -> tuple[Any, ...]:
    values, scale = normed(fd, x, 1)
    weighted = fd.ops.mul(g, row(fd, w))
    means = [
        fd.ops.mul(fd.ops.sum(t, [1], keepdim=True), 1e-3)
        for t in (weighted, fd.ops.mul(weighted, values))
    ]
    inner = fd.ops.sub(fd.ops.sub(weighted, means[0]), fd.ops.mul(values, means[1]))
    gw, gb = fd.ops.sum(fd.ops.mul(g, values), [0]), fd.ops.sum(g, [0])
    return fd.ops.mul(inner, scale), gw, gb


PROBLEMS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "add": (lambda fd, x, y: fd.ops.add(x, y), lambda a, b: [(a, b), (a, b)]),
    "bias": (
        lambda fd, x, w: fd.ops.tanh(fd.ops.add(x, row(fd, w))),
        lambda a, b: [(a, b), (b,)],
    ),
    "row sum": (lambda fd, x: fd.ops.sum(x, [1]), lambda a, b: [(a, b)]),
    "column sum": (lambda fd, x: fd.ops.sum(x, [0]), lambda a, b: [(a, b)]),
    "column variance": (lambda fd, x: fd.ops.var(x, [0]), lambda a, b: [(a, b)]),
    "softmax": (lambda fd, x: softmax(fd, x, 1), lambda a, b: [(a, b)]),
    "softmax of columns": (lambda fd, x: softmax(fd, x, 0), lambda a, b: [(a, b)]),
    "layer norm": (
        lambda fd, x, w: fd.ops.mul(normed(fd, x, 1)[0], row(fd, w)),
        lambda a, b: [(a, b), (b,)],
    ),
    "layer norm backward": (layer_norm_backward, lambda a, b: [(a, b), (a, b), (b,)]),
    "batch norm": (lambda fd, x: normed(fd, x, 0)[0], lambda a, b: [(a, b)]),
    "transpose": (
        lambda fd, x, y: fd.ops.add(x, fd.ops.permute(y, [1, 0])),
        lambda a, b: [(a, b), (b, a)],
    ),
    "scan": (lambda fd, x: fd.ops.cumsum(x, 1), lambda a, b: [(a, b)]),
}


def define(body: Callable[..., Any], ranks: list[int], dtype: DataType) -> FusionDefinition:
    with FusionDefinition() as fd:
        given = [fd.define_tensor(shape=[-1] * r, contiguity=True, dtype=dtype) for r in ranks]
        made = body(fd, *(fd.ops.cast(x, DataType.Float) for x in given))
        for out in made if isinstance(made, tuple) else (made,):
            fd.add_output(fd.ops.cast(out, dtype))
    return fd


def row_lengths(lowered: Lowered) -> list[int]:
    """What each program reduces: fewer where a reduction has more parts."""
    pieces = (piece.problem for piece in lowered.segmented.segments)
    return [hint(problem.reduced) for problem in pieces if problem is not None]


def comparable(piece: Segment) -> Any:
    """The params; None for rows in several tiles, which are one masked tile where they vary. Also
    by the rules: what the model replaces are other params then."""
    assert piece.problem is not None
    params, rules = map(with_all_steps_alike, (piece.params, propose(piece.problem)))
    return None if any(map(has_several_tiles, (params, rules))) else params


def with_all_steps_alike(params: HeuristicParams) -> HeuristicParams:
    """The params with the last step in the loop, which is behind it where it may have less."""
    if isinstance(params, ReductionParams) and params.tails == (params.block_r,):
        return replace(params, tails=())
    return params


def has_several_tiles(params: HeuristicParams) -> bool:
    tiling = params.row_tiling
    return tiling is not None and bool(tiling.tails or tiling.align > 1)


def needs_constant_sizes(piece: Segment) -> bool:
    """Whether sums over rows share a kernel that has no form for open sizes.

    Several programs share a row, or a row fits in registers by its tails alone.
    """
    found = piece.params
    return isinstance(found, InnerOuterPersistentParams) and (found.parts > 1 or bool(found.tails))


def why_not_alike(used: Lowered, alone: Lowered) -> str:
    """Why a schedule is further from that of a kernel for one size than it may be; or empty.

    The same schedulers; as many programs, within a factor of 2; the same params where one has as
    many programs and parts, and rows in one tile. Parts of constant sizes have to divide a row, and
    may be fewer by ``MAX_SHORTFALL`` for that; those of open sizes are as many as fill the device.
    """
    pairs = list(zip(used.segmented.segments, alone.segmented.segments, strict=False))
    kinds = [[p.scheduler for p in side.segmented.segments] for side in (used, alone)]
    counts = list(zip(programs(used), programs(alone), strict=False))
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} for {kinds[1]}"
    if any(not other / 2 <= one <= MAX_SHORTFALL * other for one, other in counts):
        return f"{programs(used)} programs for {programs(alone)}"
    if programs(used) != programs(alone) or row_lengths(used) != row_lengths(alone):
        return ""
    differ = (
        f"{a.params} for {b.params}"
        for a, b in pairs
        if comparable(b) is not None
        and with_all_steps_alike(a.params) != with_all_steps_alike(b.params)
    )
    return next(differ, "")


def drawn(rng: random.Random, vary: str, multiple: int) -> list[tuple[int, int]]:
    """Rows and columns, log-uniform; those that do not vary are 1024."""
    most = RANGE**0.5 if vary == "both" else RANGE

    def size(varies: bool) -> int:
        return int(1 + 48 * most ** rng.random()) * multiple if varies else 1024

    return [(size(vary != "columns"), size(vary != "rows")) for _ in range(SIZES)]


@pytest.fixture
def by_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cost model cuts in another way it cuts so for constant sizes alone: those that run
    often have kernels for these."""
    monkeypatch.setattr(segment_choice, "refined", lambda fusion, device, make: make(HEURISTIC))


@pytest.mark.covering
@pytest.mark.usefixtures("by_rules")
@pytest.mark.parametrize("vary", ["rows", "columns", "both"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_schedule_in_use_is_that_of_the_size(name: str, vary: str) -> None:
    body, shapes = PROBLEMS[name]
    rng = random.Random(f"{name} {vary}")
    dtype, kind = rng.choice([(torch.float32, DataType.Float), (torch.bfloat16, DataType.BFloat16)])
    served = AbstractVariants(define(body, [len(s) for s in shapes(2, 2)], kind))
    for rows, columns in drawn(rng, vary, SHARED_ROWS if name in SHARING else 1):
        given = [meta(*shape, dtype=dtype) for shape in shapes(rows, columns)]
        used, alone = served.serve(given), served.static(given)
        if any(needs_constant_sizes(piece) for piece in alone.segmented.segments):
            continue
        found = why_not_alike(used, alone)
        assert not found, f"{rows} x {columns}: {found}\n{served.records}"
    kinds = [made.dynamic for made in served.records]
    assert kinds.count(False) == 2
    assert kinds.count(True) <= MAX_VARIANTS
