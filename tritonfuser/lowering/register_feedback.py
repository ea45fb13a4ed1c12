"""Register feedback: new params for segments whose kernels take too many registers, or spill.

It covers params that heuristics chose, for kernels of a single segment with constant sizes. Nothing
else of the lowering changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..device import WORD_BYTES, DeviceProperties
from ..heuristics.integers import ceil_div
from ..heuristics.params import KernelParams
from ..heuristics.search.compiled_registers import CompiledRegisters
from ..heuristics.search.register_feedback import (
    rechosen_params,
    why_better,
    why_spills_less,
    with_more_warps,
)
from ..options import dump
from .axis_order import explicit
from .backend.compile import CompiledKernel
from .cost import segment_element_work
from .fuse.later_loads import with_later_loads
from .legality.device_limits import why_not_launched
from .legality.params import why_not_params
from .lowered import Lowered
from .pipeline import with_kernels
from .register_room import share_of_programs
from .segments.segment import Segment

Compiled = Sequence["CompiledKernel | None"]
"""The compiled kernel of each segment; None for segments without a kernel."""


class Offer(NamedTuple):
    """A way to find other params for a kernel whose registers are known.

    Attributes
    ----------
    params : callable
        ``(kernel, programs of a multiprocessor)`` -> params, or None.
    why_better : callable
        ``(other, kernel)`` -> why the kernel of these params is better; empty if it is not.
    """

    params: Callable[[CompiledRegisters, int], KernelParams | None]
    why_better: Callable[[CompiledRegisters, CompiledRegisters], str]


OFFERS = (Offer(rechosen_params, why_better), Offer(with_more_warps, why_spills_less))
"""These are tried in turn."""


def with_actual_registers(
    lowered: Lowered,
    before: Compiled,
    device: DeviceProperties,
    compiled: Callable[[Lowered], Compiled],
) -> Lowered:
    """A lowered fusion, with other params for kernels that take too many registers or spill.

    New params are accepted if the model predicts them to be much faster by the registers of both
    compiled kernels, or if the other prefetch ends the spills. A kernel that still spills is tried
    with more warps.

    Parameters
    ----------
    before : sequence of CompiledKernel or None
        Its kernels.
    compiled : callable
        Compiles the kernels of a lowered fusion.
    """
    for offer in OFFERS:
        lowered, before = _with_offer(offer, lowered, before, device, compiled)
    return lowered


def _with_offer(
    offer: Offer,
    lowered: Lowered,
    before: Compiled,
    device: DeviceProperties,
    compiled: Callable[[Lowered], Compiled],
) -> tuple[Lowered, Compiled]:
    """A lowered fusion and its kernels, with the params of an offer where they are better."""
    again = offered_params(lowered, before, offer)
    if not again:
        return lowered, before
    after = compiled(under(lowered, again, device))
    reasons = {
        place: _why_better(
            offer, lowered.segmented.segments[place], params, before[place], after[place]
        )
        for place, params in again.items()
    }
    kept = {place: (again[place], reason) for place, reason in reasons.items() if reason}
    if not kept:
        return lowered, before
    made = under(lowered, {place: params for place, (params, _) in kept.items()}, device)
    for source in (made.sources[place] for place in kept):
        dump("kernel", "" if source is None else source.text)
    segments = (
        replace(piece, overruled=kept[place][1]) if place in kept else piece
        for place, piece in enumerate(made.segmented.segments)
    )
    made = replace(made, segmented=replace(made.segmented, segments=tuple(segments)))
    return made, [after[n] if n in kept else kernel for n, kernel in enumerate(before)]


def offered_params(lowered: Lowered, compiled: Compiled, offer: Offer) -> dict[int, KernelParams]:
    """The params that an offer has for segments, by their places."""
    found: dict[int, KernelParams] = {}
    for place, (piece, source) in enumerate(
        zip(lowered.segmented.segments, lowered.sources, strict=True)
    ):
        kernel = compiled[place]
        if source is None or kernel is None or lowered.segmented.launched_with(piece):
            continue
        programs, taken = share_of_programs(piece, source.grid), _compiled_registers(piece, kernel)
        params = offer.params(taken, programs) if taken is not None and programs else None
        if params is not None and _may_have(piece, params):
            found[place] = params
    return found


def under(
    lowered: Lowered, chosen: Mapping[int, KernelParams], device: DeviceProperties
) -> Lowered:
    """A lowered fusion with other params for some segments, by their places."""
    segmented = lowered.segmented
    segments = [
        replace(piece, params=explicit(piece, chosen[place]), loaded_later=())
        if place in chosen
        else piece
        for place, piece in enumerate(segmented.segments)
    ]
    segments = with_later_loads(segmented.fusion, segments, device)
    changed = replace(segmented, segments=tuple(segments))
    return with_kernels(replace(lowered, segmented=changed), device)


def _may_have(piece: Segment, params: KernelParams) -> bool:
    """Whether these params differ from those of a segment, and are legal for it."""
    if piece.problem is None or explicit(piece, params) == piece.params:
        return False
    reasons = (why_not_params(piece, params), why_not_launched(params, piece.problem.device))
    return not any(reasons)


def _compiled_registers(
    piece: Segment, kernel: CompiledKernel, params: KernelParams | None = None
) -> CompiledRegisters | None:
    """The registers of a segment's kernel. None if the model does not predict it, or the compiler
    does not report them."""
    if piece.problem is None or "cubin" not in kernel.asm:
        return None
    own = params or piece.kernel_params
    return CompiledRegisters(
        problem=piece.problem,
        work=segment_element_work(piece),
        # It may have been compiled once more, with another limit.
        params=replace(own, max_registers=kernel.source.max_registers),
        registers=kernel.registers,
        spilled=ceil_div(kernel.spilled_bytes, WORD_BYTES),
    )


def _why_better(
    offer: Offer,
    piece: Segment,
    params: KernelParams,
    kernel: CompiledKernel | None,
    other: CompiledKernel | None,
) -> str:
    """Why other params are better, by the kernels of both; empty if they are not."""
    if kernel is None or other is None:
        return ""
    before, after = _compiled_registers(piece, kernel), _compiled_registers(piece, other, params)
    return "" if before is None or after is None else offer.why_better(after, before)
