"""Tiles of reductions across memory: how many columns a program has, and rows a step.

Neighbours in memory are neighbours along x here, so a program should have whole lines of memory,
each step should have enough bytes in flight, and programs should come in full waves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ..device import CACHE_LINE_BYTES, SECTOR_BYTES, VECTOR_BYTES
from .integers import ceil_div, next_power_of_2
from .problem import Problem, Stream

SUM_STEP = 32
"""Those of a reduction that reads once: on an H200 sums of the columns of 16384 x 20480 took
155 us with 32 bytes, 170 with 64 and 177 with 128."""

WHOLE = 128
"""Bytes of its columns that a thread keeps in registers."""

SMALL = 8 << 20
"""Bytes of a tensor that is read in the time of a launch: programs count more than lines."""


@dataclass(frozen=True)
class Columns:
    """The facts that tiles of columns depend on.

    ``read`` and ``written`` are bytes for each element of the whole tensors; ``narrowest`` those
    of the narrowest of them; ``together`` elements that a thread can load at once.
    """

    read: int
    written: int
    narrowest: int
    together: int

    @property
    def line(self) -> int:
        """Columns of whole lines."""
        return CACHE_LINE_BYTES // self.narrowest

    @property
    def sector(self) -> int:
        """Columns of a whole sector."""
        return SECTOR_BYTES // self.narrowest

    def a_thread(self, size: int) -> int:
        """Elements of which a thread loads about ``size`` bytes, a power of two."""
        return max(next_power_of_2(size // self.read + 1) // 2, self.together)

    def warps(self, elements: int, size: int) -> int:
        """Warps that load that many elements, about ``size`` bytes a thread; 1 to 32."""
        return max(1, min(32, elements // (32 * self.a_thread(size))))


def columns_of(problem: Problem) -> Columns:
    """The facts of a problem whose rows lie across memory."""
    full = problem.large_streams
    loads = [s for s in full if not s.is_store]
    narrowest = min((s.item_bytes for s in loads or full), default=4)
    return Columns(
        read=max(sum(s.item_bytes for s in loads), 1),
        written=sum(s.item_bytes for s in full if s.is_store),
        narrowest=min(narrowest, VECTOR_BYTES),
        together=min((_together(s) for s in full), default=VECTOR_BYTES // 4),
    )


def _together(stream: Stream) -> int:
    """Elements of a row that a thread can load at once: rows may begin anywhere in a line."""
    most = max(VECTOR_BYTES // stream.item_bytes, 1)
    return most if stream.r_stride is None else gcd(stream.r_stride, most) or most


# --- reductions ----------------------------------------------------------------------------------


RUN = 4096
"""Bytes of each row that a program has where that leaves a program for each SM: sums of the columns
of 128 x 262144 took 19 us on an H200, three stages deep, and 26 of single lines."""

MIDDLING = (64 << 20, 272 << 20)
"""Bytes of tensors that one wave of programs reads best: sums of the columns of 8192 x 8192 took
37 us on an H200 by programs of 4 warps with a line each, and 42 in four waves. Where rows begin
inside of lines a program has two, and steps that are twice as long: a variance of columns of
8192 x 8193 took 45 us, and 53 by shorter ones."""

FEWEST = 16
"""Columns of a program of a small tensor."""

ONE_STEP = 4096
"""Elements of those that a program has at once, 16 a thread: the sums of 256 x 1024 partial results
behind the backward of a layer norm took a tenth of its time less so than by 8 columns."""


def reduction_tile(problem: Problem) -> tuple[int, int, int]:
    """(block_x, block_r, num_warps) of a reduction over columns, which are read once."""
    facts = columns_of(problem)
    sms = problem.device.sm_count
    run = long_run(problem)
    if run:
        return run, 8, 8
    if _is_one_wave(problem, facts):
        return _one_wave_tile(problem, facts)
    block_x = min(next_power_of_2(problem.parallel), facts.line)
    column = next_power_of_2(problem.reduced)
    if problem.parallel * problem.reduced * facts.read <= SMALL:
        while block_x > FEWEST and ceil_div(problem.parallel, block_x) < sms:
            block_x //= 2
        if block_x * column <= ONE_STEP and ceil_div(problem.parallel, block_x) < 4 * sms:
            return block_x, column, max(1, min(8, block_x * column // (32 * 16)))
    many = ceil_div(problem.parallel, block_x) >= PROGRAMS * sms
    step = 8 * 32 * facts.a_thread(SUM_STEP if problem.accumulators == 1 or many else SUM_STEP // 2)
    if block_x * column <= 2 * step:
        while 2 * block_x * column <= step and problem.parallel >= 2 * block_x * PROGRAMS * sms:
            block_x *= 2
        return block_x, column, facts.warps(block_x * column, WHOLE)
    if _is_better_halved(problem, facts):
        return block_x, max(step // 2 // block_x, 1), 4
    return block_x, max(step // block_x, 1), 8


HALVED = 700 << 20
"""Bytes of tensors of 2 bytes an element up to which steps of half the warps are better: sums of
2048 x 73728 took 72.8 us so on an H200, and 74.9; of 16384 x 36864, 312 and 276."""


def _is_better_halved(problem: Problem, facts: Columns) -> bool:
    """Whether a sum of whole lines has programs of four warps."""
    sums = problem.accumulators == 1 and not problem.full_outputs and not begins_anywhere(problem)
    return sums and facts.read <= 2 and problem.parallel * problem.reduced * facts.read <= HALVED


def long_run(problem: Problem) -> int:
    """Columns of a program that has a long piece of each row, 0 where programs have lines."""
    run = RUN // columns_of(problem).narrowest
    fills = 20 * (problem.parallel // run) >= 19 * problem.device.sm_count
    return run if problem.accumulators == 1 and fills else 0


def _one_wave_tile(problem: Problem, facts: Columns) -> tuple[int, int, int]:
    """The tile of a tensor of middling size, as ``MIDDLING`` says."""
    columns = next_power_of_2(problem.parallel)
    step = 8 * 32 * facts.a_thread(SUM_STEP)
    if _in_lines(problem, facts):
        block_x = min(columns, facts.line)
        return block_x, max(step // 2 // block_x, 1), 4
    block_x = min(columns, 2 * facts.line)
    if problem.accumulators > 1:
        return block_x, max(step // block_x, 1), 4
    return block_x, max(2 * step // block_x, 1), 8


PROGRAMS = 16
"""Programs of a reduction for each SM: four waves of four that run at once."""

PART = 64 << 10
"""Bytes that a program should read at least, where that leaves the device full."""

LEAST = 16 << 10
"""Bytes that it should read in any case, or a second kernel costs more than it saves."""


def _is_one_wave(problem: Problem, facts: Columns) -> bool:
    """Whether columns, or parts of them, are read by as many programs as run at once."""
    low, high = MIDDLING
    wave = PROGRAMS // 4 * problem.device.sm_count
    in_turn = gcd(problem.reduced, VECTOR_BYTES)  # of parts that take rows in turn
    few = ceil_div(problem.parallel, 2 * facts.line) <= wave and begins_at_vectors(problem, in_turn)
    if problem.full_outputs and begins_anywhere(problem):
        return False
    return few and low <= problem.parallel * problem.reduced * facts.read <= high


def _in_lines(problem: Problem, facts: Columns) -> bool:
    """Whether rows begin at lines, or those of parts that take them in turn do, of so few."""
    steps = [s.r_stride * s.item_bytes for s in problem.large_loads if s.r_stride]
    parts = max((CACHE_LINE_BYTES // gcd(CACHE_LINE_BYTES, step) for step in steps), default=1)
    most = PROGRAMS // 2 * problem.device.sm_count
    return parts * ceil_div(problem.parallel, facts.line) <= most


def reduction_parts(problem: Problem) -> int:
    """In how many parts to cut columns: enough programs for full waves, each with enough to do."""
    facts = columns_of(problem)
    block_x = reduction_tile(problem)[0]
    programs = max(ceil_div(problem.parallel, block_x), 1)
    of_columns = block_x * problem.reduced * facts.read
    wave = PROGRAMS // 4 * problem.device.sm_count
    if 2 * programs >= PROGRAMS * problem.device.sm_count or long_run(problem):
        return 1
    if _is_one_wave(problem, facts):
        return max(1, (2 * wave if _in_lines(problem, facts) else wave) // programs)
    parts = min(ceil_div(PROGRAMS * problem.device.sm_count, programs), of_columns // PART)
    if programs * parts < wave:
        parts = min(ceil_div(wave, programs), of_columns // LEAST)
    return max(1, min(parts, problem.reduced // 2))


def begins_anywhere(problem: Problem) -> bool:
    """Whether rows that are read begin inside lines, of tensors worth more than a launch."""
    loads = problem.large_loads
    if problem.parallel * problem.reduced * sum(s.item_bytes for s in loads) <= SMALL:
        return False
    return any(
        s.r_stride is not None and s.r_stride * s.item_bytes % CACHE_LINE_BYTES for s in loads
    )


def begins_at_vectors(problem: Problem, step: int = 1) -> bool:
    """Whether every ``step``-th row that is read begins at a vector where the first does."""
    strides = [s.r_stride * s.item_bytes for s in problem.large_loads if s.r_stride]
    return all(step * stride % VECTOR_BYTES == 0 for stride in strides)
