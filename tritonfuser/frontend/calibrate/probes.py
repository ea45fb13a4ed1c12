"""Facts of a GPU from times: a call for each, and what its seconds say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial

import torch

from ...calibration import Calibration
from ...device import CACHE_LINE_BYTES, DeviceProperties
from ..tune.timing import Run, free, interleaved
from .kernels import UNROLLED, chase_pointers, multiply_add

REPEATS = 5
"""Timings of each call; the fastest counts. Clocks of an idle GPU rise during the first."""

COPY_BYTES = 1 << 30
"""Bytes of a copy, next to which its launch is negligible."""

LAUNCHES = 200
"""Kernels of one element in a row."""

LINK_BYTES = 1 << 26
"""Bytes in which links lie. They are evicted from the L2 cache before each timing."""

LINKS = 20_000
"""Links that are followed, each to another line."""

PRODUCT_SIDE = 8192
"""Rows, columns and depth of the product."""

MULTIPLY_STEPS = 2000
MULTIPLY_BLOCK, MULTIPLY_WARPS = 1024, 4

_LINE = CACHE_LINE_BYTES // 8
"""Links of eight bytes in a line."""


@dataclass(frozen=True)
class TimedCall:
    """A call, and the fact that its seconds tell."""

    run: Run
    fact: Callable[[float], float]


@dataclass(frozen=True)
class Fact:
    """One fact.

    Attributes
    ----------
    name : str
        The field of ``DeviceProperties``.
    value : float
        As measured.
    varied : float
        The slowest timing over the fastest, less one.
    """

    name: str
    value: float
    varied: float


def copy_bandwidth(facts: DeviceProperties, device: str) -> TimedCall:
    """Bytes per second, read and written, of a copy that no cache holds."""
    size = COPY_BYTES
    if device == "cuda":
        size = min(size, torch.cuda.mem_get_info()[0] // 4)
    source = torch.ones(size, dtype=torch.uint8, device=device)
    return TimedCall(partial(torch.empty_like(source).copy_, source), lambda s: 2 * size / s)


def launch_time(facts: DeviceProperties, device: str) -> TimedCall:
    """Seconds of one more launch, of kernels of one element that follow one another."""
    one = torch.zeros(1, device=device)

    def run() -> None:
        for _ in range(LAUNCHES):
            one.zero_()

    return TimedCall(run, lambda s: s / LAUNCHES)


def memory_latency(facts: DeviceProperties, device: str) -> TimedCall:
    """Seconds of a load from memory: one thread chases pointers, each in another cache line."""
    places = pointer_ring(LINK_BYTES // CACHE_LINE_BYTES).to(device)
    end = torch.empty(1, dtype=torch.int64, device=device)
    call = partial(chase_pointers[(1,)], places, end, LINKS, num_warps=1)
    return TimedCall(call, lambda s: s / LINKS)


def pointer_ring(lines: int) -> torch.Tensor:
    """A ring of pointers: one element of each cache line names the next, in random order."""
    order = torch.randperm(lines, generator=torch.Generator().manual_seed(0)) * _LINE
    found = torch.zeros(lines * _LINE, dtype=torch.int64)
    found[order] = order.roll(-1)
    return found


def clock_rate(facts: DeviceProperties, device: str) -> TimedCall:
    """The clock in Hz of multiprocessors that are full of threads which multiply and add."""
    programs = facts.sm_count * (facts.max_threads_per_sm // (MULTIPLY_WARPS * facts.warp_size))
    out = torch.empty(programs * MULTIPLY_BLOCK, device=device)
    run = multiply_add[(programs,)]
    call = partial(run, out, MULTIPLY_STEPS, BLOCK=MULTIPLY_BLOCK, num_warps=MULTIPLY_WARPS)
    done = programs * MULTIPLY_BLOCK * MULTIPLY_STEPS * UNROLLED.value
    return TimedCall(call, lambda s: done / (s * facts.sm_count * facts.rates.fp32))


def product_rate(facts: DeviceProperties, device: str) -> TimedCall:
    """Floating-point operations per second of a large product of BFloat16."""
    shape = (PRODUCT_SIDE, PRODUCT_SIDE)
    left, right = (torch.randn(shape, dtype=torch.bfloat16, device=device) for _ in "12")
    return TimedCall(partial(torch.mm, left, right), lambda s: 2 * PRODUCT_SIDE**3 / s)


PROBES: dict[str, Callable[[DeviceProperties, str], TimedCall]] = {
    "bandwidth_bytes_per_s": copy_bandwidth,
    "clock_hz": clock_rate,
    "launch_s": launch_time,
    "memory_latency_s": memory_latency,
    "product_flops_per_s": product_rate,
}
"""What is timed for each fact."""


def measured(facts: DeviceProperties, device: str = "cuda") -> Iterator[Fact]:
    """The facts of the current GPU, one after the other.

    Parameters
    ----------
    facts : DeviceProperties
        What is built in for it.
    """
    for name, made in PROBES.items():
        timed = made(facts, device)
        for _ in range(2):
            timed.run()
        seconds = [interleaved({name: timed.run}, device)[name].median for _ in range(REPEATS)]
        fastest = min(seconds)
        yield Fact(name, timed.fact(fastest), max(seconds) / fastest - 1)
        del timed
        free(device)


def joined(found: list[Fact]) -> Calibration:
    """What the store takes."""
    values = {fact.name: fact.value for fact in found}
    return Calibration(**{field.name: values[field.name] for field in fields(Calibration)})
