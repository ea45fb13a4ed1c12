"""What a run would do, as data and as a report: its segments, why they are so, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from tabulate import tabulate

from ...device import DeviceProperties
from ...errors import SourceLoc
from ...heuristics.bounds import Bound, bound
from ...heuristics.cost.model import KernelTime
from ...heuristics.params import HeuristicParams
from ...lowering.cost import segment_time
from ...lowering.lowered import Lowered
from ...lowering.segments.segment import Segment
from ...lowering.work import fusion_work, segment_work
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import guard_text
from ...symbolic.sizes import hint
from ..vocabulary.units import bytes_text, seconds_text


@dataclass(frozen=True)
class SegmentReport:
    """One segment: a kernel, a call into torch, or nothing to launch.

    Attributes
    ----------
    name : str
        ``s0``, ``s1``, ...
    kernel : str
        The kernel's name; empty where torch runs it or nothing is launched.
    scheduler : str
        The first that takes it.
    refusals : tuple of str
        Why the schedulers before it do not: ``"scan: it has no scan"``.
    reason : str
        What is in it.
    overruled : str
        By what the cost model chose other params than the scheduler proposes; empty where it did
        not.
    cut : str
        Why it is not in a kernel before it; empty where there is no other to be in.
    ops : tuple of str
        Its ops by name, in recording order.
    lines : tuple of SourceLoc
        The lines of the program that recorded them, each once.
    params : HeuristicParams
        Tile sizes.
    grid : tuple of int, optional
        Programs along x, y, z; None where no kernel is launched.
    bytes_read, bytes_written : int
        Bytes of tensors it has to move, each element once.
    predicted_seconds : float
        Those bytes at the device's bandwidth: what a kernel bound by memory takes at least.
    bound : Bound
        The least time that any kernel for the segment takes, and what limits it: memory, a kind of
        instructions, matrix products, the launch.
    model : KernelTime, optional
        The time of the kernel by the cost model, and how long each resource of the device is busy.
        None where torch runs the segment, and in the interpreter.
    measured_seconds : float, optional
        Median on the GPU, the L2 cache cold when the run starts; None where it was not measured.
        Of a launch of several segments the first has that of all.
    finishes, beside : str
        The segment whose kernel computes it too, by its last programs or by others; empty for one
        of its own.
    """

    name: str
    kernel: str
    scheduler: str
    refusals: tuple[str, ...]
    reason: str
    overruled: str
    cut: str
    ops: tuple[str, ...]
    lines: tuple[SourceLoc, ...]
    params: HeuristicParams
    grid: tuple[int, int, int] | None
    bytes_read: int
    bytes_written: int
    predicted_seconds: float
    bound: Bound
    model: KernelTime | None = None
    measured_seconds: float | None = None
    finishes: str = ""
    beside: str = ""

    @property
    def share_of_bound(self) -> float | None:
        """The least time by the measured time: at 1.0 nothing is left to gain.

        By the model's time where nothing was measured. None without either.
        """
        if self.measured_seconds is None and self.model is not None:
            return self.bound.share(float(self.model.seconds))
        return self.bound.share(self.measured_seconds)

    @property
    def speed_of_light(self) -> float | None:
        """Predicted by measured time: 1.0 moves its bytes as fast as a copy does."""
        if not self.measured_seconds:
            return None
        return self.predicted_seconds / self.measured_seconds


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
        table = tabulate([_row(s) for s in self.segments], headers="keys", disable_numparse=True)
        parts = [self._heading(), table, *(_details(s) for s in self.segments)]
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
        least = f"\nat least, in one kernel: {_bound_text(self.bound)}{reached}"
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
    pieces = zip(segmented.segments, lowered.sources, strict=True)
    return Explanation(
        device=device,
        segments=tuple(
            SegmentReport(
                name=piece.name,
                kernel="" if source is None else source.name,
                scheduler=piece.scheduler,
                refusals=piece.refusals,
                reason=piece.reason,
                overruled=piece.overruled,
                cut=piece.cut,
                ops=tuple(node.op for node in piece.nodes),
                lines=_lines(piece),
                params=piece.params,
                grid=None if source is None else _counts(source.grid),
                bytes_read=hint(piece.bytes_read),
                bytes_written=hint(piece.bytes_written),
                predicted_seconds=(hint(piece.bytes_read) + hint(piece.bytes_written))
                / device.bandwidth_bytes_per_s,
                bound=bound(segment_work(piece), device),
                model=None if source is None else segment_time(piece),
                measured_seconds=times.get(piece.name),
                finishes=piece.finishes,
                beside=piece.beside,
            )
            for piece, source in pieces
        ),
        bound=bound(fusion_work(segmented), device),
        cuts=segmented.cuts,
        guards=() if lowered.env is None else _guards(lowered.env),
        origin=lowered.origin,
    )


def _counts(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Programs at the sizes of these inputs."""
    x, y, z = grid
    return hint(x), hint(y), hint(z)


def _guards(env: ShapeEnv) -> tuple[str, ...]:
    symbols = (atom for atom in env.atoms if atom.is_symbol and atom.multiple > 1)
    multiples = (f"{atom.name} % {atom.multiple} == 0" for atom in symbols)
    return (*multiples, *(guard_text(env, guard) for guard in env.guards))


def _lines(piece: Segment) -> tuple[SourceLoc, ...]:
    found = dict.fromkeys(node.loc for node in piece.nodes if node.loc is not None)
    return tuple(sorted(found, key=lambda loc: (loc.file, loc.line)))


# --- text ----------------------------------------------------------------------------------------


def _row(segment: SegmentReport) -> dict[str, str]:
    cells = {
        "segment": segment.name,
        "scheduler": segment.scheduler,
        "ops": str(len(segment.ops)),
        "grid": "" if segment.grid is None else " x ".join(map(str, segment.grid)),
        "read": bytes_text(segment.bytes_read),
        "written": bytes_text(segment.bytes_written),
        "predicted": seconds_text(segment.predicted_seconds),
        "at least": seconds_text(segment.bound.seconds),
        "limited by": segment.bound.limit,
    }
    if segment.model is not None:
        cells["model"] = seconds_text(segment.model.seconds)
    if segment.measured_seconds is not None:
        share = segment.speed_of_light
        cells["measured"] = seconds_text(segment.measured_seconds)
        cells["of speed of light"] = "" if share is None else f"{share:.0%}"
    reached = segment.share_of_bound
    if reached is not None:
        cells["of bound"] = f"{reached:.0%}"
    return cells


BUSY = 0.1
"""Share of the bound from which on a resource is named beside the one that limits."""


def _bound_text(found: Bound) -> str:
    """``7.86 us, memory; integer 3.1 us``: the resources that are busy for a tenth of the time."""
    limit, *others = found.resources
    busy = [f"{name} {seconds_text(s)}" for name, s in others if s >= BUSY * limit[1]]
    again = [f"{bytes_text(found.bytes_again)} are read twice, since they do not fit on the chip"]
    more = [*(again if found.bytes_again else ()), *busy]
    return "; ".join([f"{seconds_text(limit[1])}, {limit[0]}", *more])


def _model_text(found: KernelTime) -> str:
    """``9.1 us; memory 7.2 us, instructions 3.0 us; 40 registers``."""
    ranked = sorted(found.resources.items(), key=lambda item: -item[1])
    busy = [f"{n} {seconds_text(s)}" for n, s in ranked if s >= BUSY * ranked[0][1] and s > 0]
    parts = [seconds_text(found.seconds), ", ".join(busy)]
    limit = f"of {found.register_limit:.0f} registers a thread"
    parts += [f"about {found.registers:.0f} {limit}"] if found.registers else []
    return "; ".join(part for part in parts if part)


def _details(segment: SegmentReport) -> str:
    lines = [f"why: {segment.reason}", f"params: {segment.params}"]
    if segment.overruled:
        lines.append(f"why params: {segment.overruled}")
    if segment.bound.limit:
        lines.append(f"at least: {_bound_text(segment.bound)}")
    if segment.model is not None:
        lines.append(f"model: {_model_text(segment.model)}")
    lines.append(f"ops: {', '.join(segment.ops)}")
    if segment.lines:
        lines.append(f"recorded at: {_places(segment.lines)}")
    if segment.finishes:
        lines.append(f"launch: none, the last programs of {segment.finishes} compute it")
    if segment.beside:
        lines.append(f"launch: that of {segment.beside}, whose programs are divided among both")
    if segment.cut:
        lines.append(f"cut: {segment.cut}")
    lines += [f"not {refusal}" for refusal in segment.refusals]
    head = segment.name if not segment.kernel else f"{segment.name}: {segment.kernel}"
    return f"{head}\n{indent(chr(10).join(lines), '  ')}"


def _places(lines: Sequence[SourceLoc]) -> str:
    """``model.py:12, 14, 15``, file by file."""
    files: dict[str, list[int]] = {}
    for loc in lines:
        files.setdefault(loc.file, []).append(loc.line)
    return "; ".join(f"{file}:{', '.join(map(str, found))}" for file, found in files.items())
