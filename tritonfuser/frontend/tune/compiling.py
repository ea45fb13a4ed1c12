"""Candidates compiled ahead of their timing.

Triton keeps what it compiles on disk: the process that times a candidate finds its kernels there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...cache.dry_run import alternatives_for, lower_for
from ...cache.kernels import Wanted, compiled, launcher_built, wanted_kernels
from ...cache.keys.kernel_key import kernel_key
from ...cache.lru import LRU
from ...cache.register_feedback import with_register_feedback
from ...errors import LoweringError, ParamsError, TritonFuserError
from ...heuristics.schedule import Schedule
from ...ir import Fusion
from ...lowering.kernel_source import KernelSource
from ...lowering.run_options import RunOptions
from ...lowering.schedules import schedule_of
from ...lowering.segments.segmented_fusion import SegmentedFusion
from .compile_pool import CompilePool
from .interfaces import PreparedSchedule


class Compiler:
    """Compiles schedules of one definition for one set of inputs; threads may share it.

    Parameters
    ----------
    fusion : Fusion
        As recorded.
    inputs : sequence
        Flat.
    device : torch.device, optional
        Where it runs, if no tensor says that.
    pool : CompilePool, optional
        Processes that compile candidates. Without, and where there can be none, the threads do.
    """

    def __init__(
        self,
        fusion: Fusion,
        inputs: Sequence[Any],
        device: torch.device | None = None,
        pool: CompilePool | None = None,
    ) -> None:
        self._fusion, self._inputs, self._device = fusion, inputs, device
        self._pool = pool
        self._shared: LRU[Any, int] = LRU(4096)
        kept: LRU[Any, Any] = LRU(256)
        self._memo = kept.get_or_make

    def heuristics(self) -> Schedule:
        """The schedule that the heuristics choose, by the registers that kernels take too."""
        options = RunOptions(device=self._device)
        lowered, device = lower_for(self._fusion, self._inputs, options, memo=self._memo)
        made = with_register_feedback(self._fusion, lowered, self._inputs, device, options)
        return schedule_of(made.segmented)

    def cuts(self, should_continue: Callable[[], bool]) -> list[Schedule]:
        """Other ways to cut the definition into kernels, the most promising first.

        Parameters
        ----------
        should_continue : callable
            Whether there is time for another one.
        """
        options = RunOptions(device=self._device)
        found = alternatives_for(self._fusion, self._inputs, options, should_continue)
        return [schedule_of(each) for each in found]

    def segmented(self, schedule: Schedule) -> SegmentedFusion:
        """What a schedule makes of the definition: nothing is compiled.

        Raises
        ------
        ParamsError
            A field of the schedule cannot be.
        """
        options = RunOptions(schedule=schedule, device=self._device)
        return lower_for(self._fusion, self._inputs, options, memo=self._memo)[0].segmented

    def __call__(self, schedule: Schedule) -> PreparedSchedule | str:
        """The schedule with its kernels compiled; a text says why that cannot be."""
        try:
            return self.prepared(schedule)
        except ParamsError as error:
            return f"not legal: {error.message}"
        except TritonFuserError as error:
            return error.message
        except Exception as error:  # of Triton; what cannot be compiled is not tried
            return f"{type(error).__name__}: {error}"

    def prepared(self, schedule: Schedule) -> PreparedSchedule:
        """The schedule with its kernels compiled.

        Raises
        ------
        ParamsError
            A field of the schedule cannot be.
        LoweringError
            A kernel does not compile, or asks for more shared memory than there is.
        """
        options = RunOptions(schedule=schedule, device=self._device)
        lowered, device = lower_for(self._fusion, self._inputs, options, memo=self._memo)
        wanted = wanted_kernels(self._fusion, self._inputs, lowered)
        for one in () if device.is_cpu else wanted:
            shared = self._shared_bytes(one, device.arch)
            if shared > device.shared_bytes_per_block:
                raise LoweringError(
                    f"it asks for {shared} bytes of shared memory, and {device.name} has "
                    f"{device.shared_bytes_per_block} for a program"
                )
        keys = tuple(kernel_key(source) for source, _ in wanted)
        # As its kernels say it: a segment in another's launch has the warps of that.
        return PreparedSchedule(schedule_of(lowered.segmented), lowered.segmented, keys)

    def _shared_bytes(self, wanted: Wanted, arch: str) -> int:
        """The shared memory of a program of a kernel, which is compiled once."""
        source, aligned = wanted
        key = (*kernel_key(source), arch, aligned)
        return self._shared.get_or_make(key, lambda: self._compiled(source, arch, aligned))

    def _compiled(self, source: KernelSource, arch: str, aligned: tuple[bool, ...]) -> int:
        if self._pool is not None and self._pool.works:
            elsewhere = self._pool.shared_bytes(source, arch, aligned)
            if elsewhere is not None:
                return elsewhere
        found = compiled(source, arch, aligned).shared_bytes
        launcher_built(source)
        return found
