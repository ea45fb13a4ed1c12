"""Candidates compiled ahead of their timing, on the threads of this process.

Triton keeps what it compiles on disk: the process that times a candidate finds its kernels there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...cache.dry_run import lower_for, wanted_kernels
from ...cache.kernels import compiled, launcher_built
from ...cache.keys.kernel_key import kernel_key
from ...errors import LoweringError, ParamsError, TritonFuserError
from ...heuristics.schedule import Schedule
from ...ir import Fusion
from ...lowering.run_options import RunOptions
from ...lowering.schedules import schedule_of
from ...lowering.segments import SegmentedFusion
from .search import Prepared


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
    """

    def __init__(
        self, fusion: Fusion, inputs: Sequence[Any], device: torch.device | None = None
    ) -> None:
        self._fusion, self._inputs, self._device = fusion, inputs, device

    def heuristics(self) -> Schedule:
        """The schedule that the heuristics choose."""
        lowered, _ = lower_for(self._fusion, self._inputs, RunOptions(device=self._device))
        return schedule_of(lowered.segmented)

    def segmented(self, schedule: Schedule) -> SegmentedFusion:
        """What a schedule makes of the definition: nothing is compiled.

        Raises
        ------
        ParamsError
            A field of the schedule cannot be.
        """
        options = RunOptions(schedule=schedule, device=self._device)
        return lower_for(self._fusion, self._inputs, options)[0].segmented

    def __call__(self, schedule: Schedule) -> Prepared | str:
        """The schedule with its kernels compiled; a text says why that cannot be."""
        try:
            return self.prepared(schedule)
        except ParamsError as error:
            return f"not legal: {error.message}"
        except TritonFuserError as error:
            return error.message
        except Exception as error:  # of Triton; what cannot be compiled is not tried
            return f"{type(error).__name__}: {error}"

    def prepared(self, schedule: Schedule) -> Prepared:
        """The schedule with its kernels compiled.

        Raises
        ------
        ParamsError
            A field of the schedule cannot be.
        LoweringError
            A kernel does not compile, or asks for more shared memory than there is.
        """
        options = RunOptions(schedule=schedule, device=self._device)
        lowered, device = lower_for(self._fusion, self._inputs, options)
        wanted = wanted_kernels(self._fusion, self._inputs, lowered)
        for source, flags in () if device.is_cpu else wanted:
            shared = compiled(source, device.arch, flags).shared_bytes
            if shared > device.shared_bytes_per_block:
                raise LoweringError(
                    f"it asks for {shared} bytes of shared memory, and {device.name} has "
                    f"{device.shared_bytes_per_block} for a program"
                )
            launcher_built(source)
        keys = tuple(kernel_key(source) for source, _ in wanted)
        # As its kernels say it: a segment in another's launch has the warps of that.
        return Prepared(schedule_of(lowered.segmented), lowered.segmented, keys)
