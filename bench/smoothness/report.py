"""Tables of the points: by op, the figures, the points that miss one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from tritonfuser.frontend.vocabulary.units import bytes_text

from ..cases import size_name
from ..tables.formatting import human_ratio, known, table
from .results import FAST, JUMP, LEAST, MOST_SLOW, NAMES, Found, is_suspect

SHOWN = 25
"""Most points that are listed."""


def report(found: Sequence[Found]) -> str:
    """All tables as text."""
    timed = [point for point in found if NAMES[0] in point.seconds]
    if not timed:
        return "nothing was measured"
    ops = dict.fromkeys(point.op for point in timed)
    rows = [_summary(op, [p for p in timed if p.op == op]) for op in ops]
    parts = [table([*rows, _summary("all", timed)]), "\n".join(_figures(timed))]
    worst = sorted(filter(is_suspect, timed), key=_badness)
    if worst:
        parts.append(table([_line(point) for point in worst[:SHOWN]]))
    failures = [f"{p.name}, {who}: {text}" for p in found for who, text in p.failures.items()]
    return "\n\n".join([*parts, *(["\n".join(failures)] if failures else [])])


def _badness(point: Found) -> float:
    against = point.against_peer
    return min(JUMP / point.jump[0], 1.0 if against is None else against / FAST)


def _summary(op: str, points: Sequence[Found]) -> dict[str, str]:
    jumps = [point.jump[0] for point in points]
    against = known(point.against_peer for point in points)
    shares = known(point.share_of_bound for point in points)
    return {
        "op": op,
        "points": str(len(points)),
        "% of bound": f"{100 * statistics.median(shares):.0f}",
        "median jump": human_ratio(statistics.median(jumps)),
        "largest": human_ratio(max(jumps)),
        f"above {JUMP}x": str(sum(jump > JUMP for jump in jumps)),
        "vs compile": human_ratio(statistics.median(against)) if against else "",
        "least": human_ratio(min(against)) if against else "",
        f"below {FAST}x": str(sum(ratio < FAST for ratio in against)),
        f"below {LEAST}x": str(sum(ratio < LEAST for ratio in against)),
    }


def _figures(points: Sequence[Found]) -> Iterable[str]:
    jumps = sum(point.jump[0] > JUMP for point in points)
    against = known(point.against_peer for point in points)
    slow = sum(ratio < FAST for ratio in against)
    slowest = sum(ratio < LEAST for ratio in against)
    holds = {True: "holds", False: "missed"}
    yield f"time per byte within {JUMP}x of the partners': {holds[not jumps]}, {jumps} are not"
    if against:
        share = slow / len(against)
        wanted = f"{MOST_SLOW:.0%} of points at most below {FAST}x torch.compile"
        yield f"{wanted}: {holds[share <= MOST_SLOW]}, {slow} of {len(against)} are"
        yield f"none below {LEAST}x: {holds[not slowest]}, {slowest} are"


def _line(point: Found) -> dict[str, str]:
    jump, partner = point.jump
    place = NAMES.index(partner) if partner else 0
    return {
        "point": point.name,
        "moves": bytes_text(point.bytes[NAMES[0]]),
        "us": f"{point.seconds[NAMES[0]] * 1e6:.1f}",
        "% of bound": f"{100 * (point.share_of_bound or 0):.0f}",
        "partner": size_name(point.sizes[place]) if partner else "",
        "its us": f"{point.seconds[partner] * 1e6:.1f}" if partner else "",
        "jump": human_ratio(jump),
        "vs compile": human_ratio(point.against_peer),
    }
