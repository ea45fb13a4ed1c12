"""What a timed run was like, in nvFuser's words: ``FusionProfile`` and ``KernelProfile``."""

from __future__ import annotations

from dataclasses import dataclass

from ...cache.calls.profiling import Timing
from ...cache.plan.steps import Resources, Step, resources
from ...ir import Value
from ...lowering.access.bytes_moved import held_bytes


@dataclass(frozen=True)
class KernelProfile:
    """One kernel of a run, or one call into torch.

    Attributes
    ----------
    name : str
        The kernel's.
    segment_id : int
        Its place among the kernels of the run.
    device : int
        The GPU's number; -1 for the CPU.
    stream : int
        The CUDA stream: 7 for the default one, as CUPTI numbers it, else its handle.
    compile_time_ms : float
        What compiling took when the plan of the run was made.
    time_ms : float
        On a GPU by CUDA events; in the interpreter by the host's clock.
    effective_bandwidth_gbs : float
        Bytes it has to move, read and written, by that time.
    percentage_peak_bandwidth : float
        The same of the device's bandwidth, in percent.
    grid_str, block_str, cluster_str : str
        Programs, threads of a program and programs of a cluster: ``"[2048, 1, 1]"``. Zeros for
        what the interpreter and torch keep to themselves.
    shared_mem_str : str
        Bytes of a program, dynamic and static: ``"[1024, 0]"``.
    registers : int
        Of a thread.
    input_bytes, output_bytes : int
        Bytes of tensors that it has to read and to write.
    scheduler : str
        Which made it; ``expr_eval`` where torch runs it.
    """

    name: str
    segment_id: int
    device: int
    stream: int
    compile_time_ms: float
    time_ms: float
    effective_bandwidth_gbs: float
    percentage_peak_bandwidth: float
    grid_str: str
    block_str: str
    cluster_str: str
    shared_mem_str: str
    registers: int
    input_bytes: int
    output_bytes: int
    scheduler: str


@dataclass(frozen=True)
class FusionProfile:
    """One run of a definition.

    Attributes
    ----------
    fusion_id : int
        The number that its FusionExecutorCache was given.
    segments : int
        Kernels and calls into torch; as many as ``kernel_profiles``.
    cuda_evt_time_ms : float
        From the start of the first kernel to the end of the last.
    host_time_ms : float
        From the call to its return, on the host.
    compile_time_ms, kernel_time_ms : float
        Sums over the kernels.
    effective_bandwidth_gbs : float
        Bytes of inputs and outputs by ``kernel_time_ms``.
    percentage_peak_bandwith : float
        The same of the device's bandwidth, in percent; spelled as nvFuser does.
    input_bytes, output_bytes : int
        Bytes of the tensors given and returned, those that kernels read or write.
    kernel_profiles : tuple of KernelProfile
        In order.
    """

    fusion_id: int
    segments: int
    cuda_evt_time_ms: float
    host_time_ms: float
    compile_time_ms: float
    kernel_time_ms: float
    effective_bandwidth_gbs: float
    percentage_peak_bandwith: float
    input_bytes: int
    output_bytes: int
    kernel_profiles: tuple[KernelProfile, ...]


def profile_of(timing: Timing) -> FusionProfile:
    """The profile of a timed run."""
    plan = timing.plan
    kernels = tuple(
        _kernel_profile(place, step, seconds, timing)
        for place, (step, seconds) in enumerate(zip(plan.steps, timing.step_seconds, strict=True))
    )
    segmented = plan.lowered.segmented
    given = set(segmented.fusion.inputs)
    read = {v for s in segmented.segments for v in s.inputs if v.is_tensor and v in given}
    written = {r.root for r in segmented.results if r.root not in given}
    seconds = sum(timing.step_seconds)
    total = _held(timing, read) + _held(timing, written)
    return FusionProfile(
        fusion_id=timing.fusion_id,
        segments=len(kernels),
        cuda_evt_time_ms=timing.device_seconds * 1e3,
        host_time_ms=timing.host_seconds * 1e3,
        compile_time_ms=sum(kernel.compile_time_ms for kernel in kernels),
        kernel_time_ms=seconds * 1e3,
        effective_bandwidth_gbs=_gigabytes(total, seconds),
        percentage_peak_bandwith=_percent(total, seconds, timing),
        input_bytes=_held(timing, read),
        output_bytes=_held(timing, written),
        kernel_profiles=kernels,
    )


def _kernel_profile(place: int, step: Step, seconds: float, timing: Timing) -> KernelProfile:
    plan, segment = timing.plan, step.segment
    taken = resources(step, plan.device, plan.properties)
    moved = segment.bytes_read + segment.bytes_written
    grid = (0, 0, 0) if step.source is None else step.source.grid
    return KernelProfile(
        name=step.name,
        segment_id=place,
        device=-1 if plan.device.index is None else plan.device.index,
        stream=timing.stream,
        compile_time_ms=step.compile_seconds * 1e3,
        time_ms=seconds * 1e3,
        effective_bandwidth_gbs=_gigabytes(moved, seconds),
        percentage_peak_bandwidth=_percent(moved, seconds, timing),
        grid_str=str(list(grid)),
        block_str=str(_block(taken)),
        cluster_str=str(list(taken.cluster)),
        shared_mem_str=str([taken.shared_bytes, 0]),
        registers=taken.registers,
        input_bytes=segment.bytes_read,
        output_bytes=segment.bytes_written,
        scheduler=segment.scheduler,
    )


def _block(taken: Resources) -> list[int]:
    return [taken.threads, 1, 1] if taken.threads else [0, 0, 0]


def _held(timing: Timing, values: set[Value]) -> int:
    fusion = timing.plan.lowered.segmented.fusion
    return sum(held_bytes(fusion, value) for value in values)


def _gigabytes(count: int, seconds: float) -> float:
    """Gigabytes a second; 0 where nothing took any time."""
    return count / seconds * 1e-9 if seconds else 0.0


def _percent(count: int, seconds: float, timing: Timing) -> float:
    peak = timing.plan.properties.bandwidth_bytes_per_s
    return 100 * count / seconds / peak if seconds else 0.0
