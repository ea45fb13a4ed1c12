"""Points without a GPU: the times that the cost model predicts, and the params that were chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from tritonfuser.heuristics.bounds import bound
from tritonfuser.heuristics.params import HeuristicParams
from tritonfuser.lowering.cost import fusion_seconds
from tritonfuser.lowering.segments.segmented_fusion import SegmentedFusion
from tritonfuser.lowering.work import fusion_work

from ..cases import Size, size_name
from ..tables.formatting import human_ratio, table
from .points import Point
from .report import report
from .results import NAMES, Found

ARCH = "sm_90"
"""What points are lowered for."""

CLOSE = 1.1
"""Factor of times per byte above which a point is listed: the model errs by more, but of sizes that
are alike it errs alike."""

SHOWN = 12
"""Most points that are listed."""


@dataclass(frozen=True)
class Predicted:
    """A point by the cost model.

    Attributes
    ----------
    found : Found
        The predicted seconds in the place of measured ones.
    kernels : dict of str to str
        The params of the kernels, by name of the size.
    """

    found: Found
    kernels: dict[str, list[str]]

    @property
    def differences(self) -> str:
        """What the kernels of the partner that differs most have in the place of the point's."""
        partner = self.found.jump[1] or NAMES[1]
        mine, others = self.kernels[NAMES[0]], self.kernels[partner]
        if len(mine) != len(others):
            return f"{len(mine)} kernels, {len(others)}"
        pairs = zip(mine, others, strict=True)
        return "; ".join(dict.fromkeys(f"{a} -> {b}" for a, b in pairs if a != b))


def predicted(points: Iterable[Point]) -> list[Predicted]:
    """The points and their partners, lowered for ``ARCH``."""
    return [_predicted(point) for point in points]


def _predicted(point: Point) -> Predicted:
    sizes, least, seconds, kernels = {}, {}, {}, {}
    for name, size in zip(NAMES, point.sizes, strict=True):
        moved, cut = _lowered(point, size)
        time = fusion_seconds(cut)
        assert time is not None
        device = next(p.problem.device for p in cut.segments if p.problem is not None)
        sizes[name], seconds[name] = moved, time
        least[name] = bound(fusion_work(cut), device).seconds
        kernels[name] = [_outline(piece.params) for piece in cut.segments]
    listed = [[*size] for size in point.sizes]
    return Predicted(Found(point.op, point.dtype, listed, sizes, least, seconds), kernels)


def _lowered(point: Point, size: Size) -> tuple[int, SegmentedFusion]:
    """The bytes to move at a size, and its kernels."""
    fd = point.case.record(size, point.torch_dtype)
    inputs = point.case.inputs(size, point.torch_dtype, "meta", 1)
    return point.case.bytes(fd, size, point.torch_dtype), fd.segments(inputs, arch=ARCH)


def _outline(params: HeuristicParams) -> str:
    """The fields of params that sizes and warps are in."""
    shown = [f.name for f in fields(params) if f.name.startswith(("block", "num", "tails", "max"))]
    return f"{params.scheduler} " + " ".join(str(getattr(params, name)) for name in shown)


def predicted_report(found: list[Predicted]) -> str:
    """The tables of measured points, of predicted times, and where kernels differ."""
    jumps = sorted(found, key=lambda each: -each.found.jump[0])
    flips = sum(each.kernels[NAMES[0]] != each.kernels[n] for each in found for n in NAMES[1:])
    rows = [_line(each) for each in jumps[:SHOWN] if each.found.jump[0] > CLOSE]
    parts = [report([each.found for each in found])]
    parts.append(f"{flips} of {2 * len(found)} partners have other params than their point")
    return "\n\n".join([*parts, *([table(rows)] if rows else [])])


def _line(each: Predicted) -> dict[str, str]:
    jump, partner = each.found.jump
    place = NAMES.index(partner) if partner else 0
    return {
        "point": each.found.name,
        "us": f"{1e6 * each.found.seconds[NAMES[0]]:.1f}",
        "partner": size_name(each.found.sizes[place]),
        "its us": f"{1e6 * each.found.seconds[partner or NAMES[0]]:.1f}",
        "jump": human_ratio(jump),
        "params": each.differences,
    }
