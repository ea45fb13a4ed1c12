"""``GivenNames``: the names in a given schedule, each with the segment that has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from ....errors import ParamsError
from ....heuristics.schedule import SegmentSchedule
from ....ir import Fusion
from ...segments.segment import Segment

_BOX = re.compile(r"(.+)\[[0-9]+\]")


class GivenNames:
    """The names under ``computes`` and ``stores`` of a schedule's segments, each in one of them.

    Raises
    ------
    ParamsError
        A segment has no names, or two have the same.
    """

    def __init__(self, segments: Iterable[SegmentSchedule]) -> None:
        self._found: dict[str, tuple[int, str]] = {}
        for place, piece in enumerate(segments):
            if not piece.computes and not piece.stores:
                raise ParamsError(f"segments[{place}]: expected names under computes or stores")
            for field in ("computes", "stores"):
                for at, name in enumerate(getattr(piece, field)):
                    self._add(name, place, f"segments[{place}].{field}[{at}]")
        self._unused = set(self._found)

    def _add(self, name: str, place: int, path: str) -> None:
        if name in self._found:
            raise ParamsError(f"{path}: {name} is in {self._found[name][1]} already")
        self._found[name] = place, path

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def use(self, name: str) -> tuple[int, str]:
        """The segment of an anchor that a kernel gets, and the path of its name in the schedule.

        Raises
        ------
        ParamsError
            No segment has it.
        """
        if name not in self._found:
            raise ParamsError(
                f"segments: {name} is in none of them",
                hint="Each reduction, op of torch and stored result has to be in one.",
            )
        self._unused.discard(name)
        return self._found[name]

    def segment(self, name: str) -> int:
        """The place of the segment that has a name."""
        return self._found[name][0]

    def segment_of(self, piece: Segment) -> int:
        """The place of the schedule's segment that a segment was made of."""
        if piece.members:
            return self.segment(piece.members[0].node.out.name)
        return self.segment(piece.stores[0].name if piece.stores else piece.nodes[0].out.name)

    def boxes(self) -> Mapping[str, int]:
        """The number of boxes of each value: ``tv3[0]`` and ``tv3[1]`` are two of ``tv3``."""
        found = (_BOX.fullmatch(name) for name in self._found)
        return Counter(box[1] for box in found if box is not None)

    def refuse_unknown(self, fusion: Fusion) -> None:
        """Refuse names that no value has before saying what is in no segment: it may be misnamed.

        Raises
        ------
        ParamsError
            A name under computes or stores.
        """
        known = {value.name for node in fusion.nodes for value in node.outs}
        for name, (_, field) in self._found.items():
            if name.partition("[")[0].partition(".")[0] not in known:
                raise ParamsError(
                    f"{field}: this definition computes no {name}",
                    hint="Names are those of the definition that the schedule is given to: "
                    "fd.schedule(inputs) has them, in the order of the printed definition in "
                    "its field values.",
                )

    def refuse_unused(self) -> None:
        """Refuse names of values that no kernel has to compute or store.

        Raises
        ------
        ParamsError
            A name that was not asked for by ``use``.
        """
        for name in sorted(self._unused):
            place, field = self._found[name]
            raise ParamsError(
                f"{field}: {name} is nothing that a kernel of this definition has to compute "
                "or store",
                hint=f"fd.schedule(inputs) gives the names, those of segments[{place}] among them.",
            )
