"""Kernels with open sizes against kernels of one size without a GPU: what they compile to.

Instructions of a thread and the widths of its loads and stores, from the machine code for an
architecture, and how much longer the cost model says that the kernel takes for the instructions.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tests.lowering.sass import disassembled, loops
from tritonfuser import FusionDefinition
from tritonfuser.cache.dry_run import lower_for
from tritonfuser.cache.kernels import wanted_kernels
from tritonfuser.cache.size_uses import differs_in_masks_alone
from tritonfuser.heuristics.cost.axis_order import in_order
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.model import KernelTime, busy_seconds
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.cost import segment_element_work, segment_time
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.problem_sizes import env_of
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.segments.segment import Segment
from tritonfuser.symbolic.choices import with_hints

from .schedules.problems import Problem
from .tables.formatting import table

ARCH = "sm_90"
"""The architecture that is compiled for: its disassembler comes with Triton."""

_ACCESS = re.compile(r"(?:LDG|STG|LDGSTS)\.")
_BITS = re.compile(r"\.(128|64|[US]16|[US]8)\b")


@dataclass(frozen=True)
class Compared:
    """One kernel with open sizes, at one size, and the kernel for that size in its place.

    Attributes
    ----------
    name, dtype, rows, columns
        The problem.
    kernel : str
        The kernel.
    limit : str
        The resource that the cost model says it is busy with for longest.
    instructions, static_instructions : int
        Of a thread, those of a loop as often as it runs.
    narrower : bool
        Whether it has more loads and stores of fewer bytes.
    predicted : float
        Its time over that of the static kernel by the cost model, if that has the static kernel's
        instructions right.
    stays : bool
        Whether it stays in use at sizes that run often.
    """

    name: str
    dtype: str
    rows: int
    columns: int
    kernel: str
    limit: str
    instructions: int
    static_instructions: int
    narrower: bool
    predicted: float
    stays: bool

    @property
    def ratio(self) -> float:
        return self.instructions / self.static_instructions


def compared(problem: Problem, seen: Sequence[tuple[int, int]]) -> Iterator[Compared]:
    """The kernels of a definition at the sizes of a problem, open in what varied before.

    Parameters
    ----------
    seen : sequence of (int, int)
        Rows and columns of earlier runs.
    """
    fd, _ = problem.definition(open_sizes=True)
    earlier = [_inputs(replace(problem, rows=r, columns=c)) for r, c in seen]
    given = _inputs(problem)
    used, fixed = _lowered(fd, given, earlier), _lowered(fd, given, [])
    opened, static = _kernels(fd, given, used), _kernels(fd, given, fixed)
    if [kernel.scheduler for kernel in opened] != [kernel.scheduler for kernel in static]:
        return  # cut in another way: constant sizes are taken for that, or other kernels
    for kernel, alone in zip(opened, static, strict=True):
        if not kernel.source.sizes or alone.time is None:
            continue
        one, other = _Code.of(kernel), _Code.of(alone)
        counts = one.instructions(other), other.instructions(one)
        yield Compared(
            problem.name,
            problem.dtype,
            problem.rows,
            problem.columns,
            kernel.source.name,
            alone.time.limit,
            *counts,
            one.accesses > other.accesses,
            _slower(alone.time, counts[0] / counts[1]),
            differs_in_masks_alone(used, fixed),
        )


@dataclass(frozen=True)
class _Kernel:
    """A kernel, the alignment of its arguments, and its time and steps by the model."""

    scheduler: str
    source: KernelSource
    aligned: tuple[bool, ...]
    time: KernelTime | None
    steps: float


@dataclass(frozen=True)
class _Code:
    """The machine code of a kernel.

    Attributes
    ----------
    beside : Counter
        Instructions beside all loops.
    bodies : list of Counter
        Those of each loop.
    steps : float
        How often a loop of the text runs.
    """

    beside: Counter[str]
    bodies: list[Counter[str]]
    steps: float

    @staticmethod
    def of(kernel: _Kernel) -> _Code:
        with tempfile.TemporaryDirectory(prefix="tritonfuser-") as folder:
            code = compile_kernel(kernel.source, ARCH, kernel.aligned).asm["cubin"]
            beside, bodies = loops(disassembled(code, Path(folder)))
        return _Code(beside, bodies, kernel.steps)

    def instructions(self, other: _Code) -> int:
        """Of a thread. What the compiler unrolled is told by loads, of which a step has no more
        than in the other kernel."""
        total = self.beside.total()
        alike = len(other.bodies) == len(self.bodies)
        for place, body in enumerate(self.bodies):
            mine = max(_accesses(body), 1)
            least = min(max(_accesses(other.bodies[place]), 1), mine) if alike else mine
            total += round(body.total() * self.steps * least / mine)
        return total

    @property
    def accesses(self) -> float:
        """Accesses to memory for a byte: of narrower ones there are more."""
        everything = sum(self.bodies, self.beside)
        return _accesses(everything) / max(_bytes(everything), 1)


def _accesses(found: Counter[str]) -> int:
    return sum(count for name, count in found.items() if _ACCESS.match(name))


def _bytes(found: Counter[str]) -> int:
    return sum(count * _width(name) for name, count in found.items() if _ACCESS.match(name))


def _width(name: str) -> int:
    """Bytes of an access: 16 of ``LDG.E.128``, 4 where it does not say."""
    found = _BITS.search(name)
    return int(found[1].lstrip("US")) // 8 if found else 4


def _inputs(problem: Problem) -> list[torch.Tensor]:
    shapes = problem.definition(open_sizes=True)[1]
    return [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in shapes]


def _lowered(fd: FusionDefinition, inputs: list[Any], earlier: list[list[Any]]) -> Lowered:
    return lower_for(fd.fusion.ir, inputs, RunOptions(arch=ARCH), earlier)[0]


def _kernels(fd: FusionDefinition, inputs: list[Any], lowered: Lowered) -> list[_Kernel]:
    pieces = zip(lowered.segmented.segments, lowered.sources, strict=True)
    kept = [piece for piece, source in pieces if source is not None]
    wanted = wanted_kernels(fd.fusion.ir, inputs, lowered)
    return [
        _Kernel(piece.scheduler, *kernel, segment_time(piece), _steps(piece))
        for kernel, piece in zip(wanted, kept, strict=True)
    ]


def _steps(piece: Segment) -> float:
    """Steps of a kernel's loop by the model."""
    assert piece.problem is not None
    problem, params = with_hints(env_of(piece.problem), piece.problem), piece.kernel_params
    counting = Counting(in_order(problem, params), segment_element_work(piece))
    return float(counting.counts(params).steps)


def _slower(time: KernelTime, ratio: float) -> float:
    """How much longer a kernel takes with so many times the instructions."""
    with_more = {**time.resources, "instructions": time.resources["instructions"] * ratio}
    return float((time.seconds - time.busy + busy_seconds(with_more)) / time.seconds)


def report(found: Sequence[Compared], bar: float, shown: int = 12) -> str:
    """Quantiles of the ratios, and the kernels of the largest predicted times."""
    rows = [
        {
            "definition": one.name,
            "dtype": one.dtype,
            "rows": one.rows,
            "columns": one.columns,
            "kernel": one.kernel[:32],
            "limit": one.limit,
            "instructions": f"{one.instructions} / {one.static_instructions}",
            "ratio": f"{one.ratio:.2f}",
            "narrower": "yes" if one.narrower else "",
            "predicted": f"{one.predicted:.3f}",
        }
        for one in sorted(found, key=lambda one: -one.predicted)[:shown]
    ]
    limited = [one for one in found if one.limit == "instructions"]
    stay = [one.predicted for one in found if one.stays]
    return "\n".join(
        [
            f"{table(rows)}\n",
            f"instructions: {_quantiles([one.ratio for one in found], bar)}",
            f"of {len(limited)} limited by them: {_quantiles([o.ratio for o in limited], bar)}",
            f"predicted time: {_quantiles([one.predicted for one in found], bar)}",
            f"of {len(stay)} that stay where sizes run often: {_quantiles(stay, bar)}",
            f"narrower accesses: {sum(one.narrower for one in found)}",
        ]
    )


def _quantiles(ratios: list[float], bar: float) -> str:
    if not ratios:
        return "none"
    over = sum(ratio > bar for ratio in ratios)
    return (
        f"{len(ratios)} kernels, median {statistics.median(ratios):.3f}, {over} above {bar}, "
        f"most {max(ratios):.2f}"
    )


def as_data(found: Sequence[Compared]) -> list[dict[str, Any]]:
    """The comparisons as plain data."""
    return [asdict(one) for one in found]
