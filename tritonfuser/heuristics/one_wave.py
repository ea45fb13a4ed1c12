"""Kernels of one wave, whose programs all run at once: elements of a thread, warps, parts of a row.

No other program hides latency there, so that the kernel takes as long as one of its threads.
"""

from __future__ import annotations

from ..device import MAX_THREADS_PER_BLOCK, VECTOR_BYTES, DeviceProperties
from .integers import TUNED_WARP_SIZE, ceil_div, floor_power_of_2, next_power_of_2
from .programs import following_s

EXCHANGE_LANES = 16
"""Cost of one more warp of a program that reduces, in elements of a lane: the warp has to start,
and to pass on its result. H200, kernels of few programs, cold caches: sums of rows of 704 1.95 us
by 4 warps, 1.63 by 8, 1.76 by 32; norms of rows of 1024 2.05 by 8, 2.21 by 16; of 4096 2.59 by 8,
2.18 by 16, 2.24 by 32; sums of 16384 6.56 by 16, 5.73 by 32."""

REDUCTION_EXCHANGE_LANES = 128
"""Cost of a reduction across several warps, in elements of a lane: they exchange results through
shared memory, with barriers, while the lanes of one warp use shuffles. H200, cold caches: layer
norms of rows of 52, 69 and 100 took 1.79, 1.44 and 1.73 us by one warp, 1.92, 1.57 and 1.86 by two;
of 242 1.76 by one, 1.92 by four; softmax of 512 1.69 by two, 1.63 by four. Sums of rows of 4160 by
a tile of 8192, half of it behind the end, took 2.59; by one of 4096 and a tail 2.37."""

ELEMENT_S = 4e-8
"""Seconds of a thread for each of its elements. H200, softmax of rows of 4224 by 4, 8, 16 and 32
warps: 3.46, 3.14, 2.85 and 3.04 us; norms of 4096: 2.94, 2.59, 2.18 and 2.24."""

WAVE_WARPS_PER_SM = 8
"""Up to so many warps of a multiprocessor, more warps end sooner: two for each warp scheduler."""

MAX_WARPS = MAX_THREADS_PER_BLOCK // TUNED_WARP_SIZE
"""Most warps of a program."""


def run_at_once(device: DeviceProperties, programs: int, warps: int) -> bool:
    """Whether a device has room for the threads of so many programs at the same time."""
    return programs * warps * device.warp_size <= device.sm_count * device.max_threads_per_sm


def wave_efficiency(device: DeviceProperties, programs: int) -> float:
    """Share of the slots of all waves that programs fill: 1 if all SMs have equally many
    programs."""
    return programs / (ceil_div(max(programs, 1), device.sm_count) * device.sm_count)


def spread_items(device: DeviceProperties, elements: int, loads: bool = True) -> int:
    """Elements of a thread, a power of two, if ``elements`` are spread over the whole device.

    One, until every lane that can issue in the same clock has an element. Then up to four: a vector
    of 32-bit elements takes no longer to load than one element. More only if the device has no room
    for more threads. Threads that load nothing have no latency to hide, so that only the lanes that
    can issue in the same clock get elements. H200, zeros of 2 MB: 1.15 us by 16 elements a
    thread, 1.98 by four.
    """
    lanes = device.sm_count * int(device.rates.issue)
    if not loads:
        return floor_power_of_2(max(elements // lanes, 1))
    room = device.sm_count * device.max_threads_per_sm
    vector = min(ceil_div(elements, lanes), VECTOR_BYTES // 4)
    return next_power_of_2(max(vector, ceil_div(elements, room)))


def spread_warps(
    device: DeviceProperties, programs: int, elements: int, reductions: int = 1
) -> int:
    """Warps of a program that reduces so many elements, if all programs run at once; else 0.

    The time ``elements / warps + EXCHANGE_LANES * warps`` is least where both terms are equal. One
    warp if several do not save more than the exchange between them costs.
    """
    squared = ceil_div(elements, EXCHANGE_LANES)
    best = 1 << (squared - 1).bit_length() // 2
    room = min(WAVE_WARPS_PER_SM * device.sm_count // max(programs, 1), MAX_WARPS)
    best = min(best, next_power_of_2(room + 1) // 2)
    one_warp = _lanes(elements, 1, reductions)
    return best if best < 1 or _lanes(elements, best, reductions) < one_warp else 1


def exchange_lanes(warps: int, reductions: int) -> int:
    """The cost of exchanging results of reductions between warps, in elements of a lane."""
    return REDUCTION_EXCHANGE_LANES * reductions if warps > 1 else 0


def _lanes(elements: int, warps: int, reductions: int) -> float:
    """The time of a program that reduces ``elements``, in elements of a lane."""
    return elements / warps + EXCHANGE_LANES * warps + exchange_lanes(warps, reductions)


def reduction_s(device: DeviceProperties, elements: int) -> float:
    """Seconds of one program that reduces so many elements, with the best number of warps."""
    warps = spread_warps(device, 1, elements)
    return _lanes(elements, warps, 1) / TUNED_WARP_SIZE * ELEMENT_S


def pays_to_split(device: DeviceProperties, elements: int, parts: int) -> bool:
    """Whether several programs and a second kernel that combines them take less time than one
    program."""
    divided = reduction_s(device, ceil_div(elements, parts)) + reduction_s(device, parts)
    return divided + following_s(device) < reduction_s(device, elements)
