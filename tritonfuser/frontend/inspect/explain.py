"""What a run would do, as data and as a report: its segments, why they are so, what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tabulate import tabulate

from ...device import DeviceProperties
from ...errors import SourceLoc
from ...heuristics.bounds import Bound, bound
from ...lowering.cost import segment_time
from ...lowering.kernel_source import KernelSource
from ...lowering.lowered import Lowered
from ...lowering.segments.segment import Segment
from ...lowering.work import fusion_work, segment_work
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import guard_text
from ...symbolic.sizes import hint
from .segment_report import SegmentReport
from .segment_text import bound_text, details, row


@dataclass(frozen=True)
class Explanation:
    """A definition for given inputs; ``print(explanation)`` shows all of it.

    Attributes
    ----------
    device : DeviceProperties
        What the kernels are for.
    segments : tuple of SegmentReport
        In the order they run.
    bound : Bound
        The least time of the whole definition, if one kernel could do all of it.
    cuts : tuple of str
        Every decision to start another kernel, also those taken before a reduction was split.
    guards : tuple of str
        What sizes that are arguments of the kernels must be for the kernels to be used, beside
        what is equal in all runs: ``"size0 <= 4096"``. Empty where all sizes are written out.
    origin : str
        Where the schedule comes from where it is not the heuristics' or a given one.
    """

    device: DeviceProperties
    segments: tuple[SegmentReport, ...]
    bound: Bound
    cuts: tuple[str, ...]
    guards: tuple[str, ...] = ()
    origin: str = ""

    @property
    def bytes(self) -> int:
        """Bytes that all segments move."""
        return sum(s.bytes_read + s.bytes_written for s in self.segments)

    @property
    def predicted_seconds(self) -> float:
        """The sum over the segments."""
        return sum(s.predicted_seconds for s in self.segments)

    @property
    def measured_seconds(self) -> float | None:
        """The sum over the segments; None where they were not measured."""
        found = [s.measured_seconds for s in self.segments if s.measured_seconds is not None]
        return sum(found) if found else None

    def __str__(self) -> str:
        table = tabulate([row(s) for s in self.segments], headers="keys", disable_numparse=True)
        parts = [self._heading(), table, *(details(s) for s in self.segments)]
        told = {s.cut for s in self.segments}
        others = [f"cut: {cut}" for cut in self.cuts if cut not in told]
        guards = [f"guard: {guard}" for guard in self.guards]
        return "\n\n".join([*parts, *("\n".join(lines) for lines in (others, guards) if lines)])

    def _heading(self) -> str:
        kernels = sum(s.grid is not None for s in self.segments)
        count = f"{kernels} kernel{'' if kernels == 1 else 's'}"
        speed = f"{self.device.bandwidth_bytes_per_s * 1e-9:.0f} GB/s"
        origin = f"\nschedule: {self.origin}" if self.origin else ""
        share = self.bound.share(self.measured_seconds)
        reached = "" if share is None else f"; {share:.0%} of it reached"
        least = f"\nat least, in one kernel: {bound_text(self.bound)}{reached}"
        heading = f"{count} for {self.device.name} ({self.device.arch}, {speed})"
        return f"{heading}{origin}{least if self.bound.limit else ''}"


def explain_lowered(
    lowered: Lowered, device: DeviceProperties, measured: Mapping[str, float] | None = None
) -> Explanation:
    """The report of a lowered fusion.

    Parameters
    ----------
    measured : mapping, optional
        Seconds of the segments that take any, by name.
    """
    times = measured or {}
    segmented = lowered.segmented
    pairs = zip(segmented.segments, lowered.sources, strict=True)
    return Explanation(
        device=device,
        segments=tuple(
            _segment_report(segment, source, device, times.get(segment.name))
            for segment, source in pairs
        ),
        bound=bound(fusion_work(segmented), device),
        cuts=segmented.cuts,
        guards=() if lowered.env is None else _guards(lowered.env),
        origin=lowered.origin,
    )


def _segment_report(
    segment: Segment, source: KernelSource | None, device: DeviceProperties, measured: float | None
) -> SegmentReport:
    """The report of a segment; ``source`` is None where it has no kernel of its own."""
    bytes_read, bytes_written = hint(segment.bytes_read), hint(segment.bytes_written)
    return SegmentReport(
        name=segment.name,
        kernel="" if source is None else source.name,
        scheduler=segment.scheduler,
        refusals=segment.refusals,
        reason=segment.reason,
        overruled=segment.overruled,
        cut=segment.cut,
        ops=tuple(node.op for node in segment.nodes),
        lines=_lines(segment),
        params=segment.params,
        grid=None if source is None else _counts(source.grid),
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        predicted_seconds=(bytes_read + bytes_written) / device.bandwidth_bytes_per_s,
        bound=bound(segment_work(segment), device),
        model=None if source is None else segment_time(segment),
        measured_seconds=measured,
        finishes=segment.finishes,
        beside=segment.beside,
    )


def _counts(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Programs at the sizes of these inputs."""
    x, y, z = grid
    return hint(x), hint(y), hint(z)


def _guards(env: ShapeEnv) -> tuple[str, ...]:
    symbols = (atom for atom in env.atoms if atom.is_symbol and atom.multiple > 1)
    multiples = (f"{atom.name} % {atom.multiple} == 0" for atom in symbols)
    return (*multiples, *(guard_text(env, guard) for guard in env.guards))


def _lines(segment: Segment) -> tuple[SourceLoc, ...]:
    found = dict.fromkeys(node.loc for node in segment.nodes if node.loc is not None)
    return tuple(sorted(found, key=lambda loc: (loc.file, loc.line)))
