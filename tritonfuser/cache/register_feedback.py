"""Register feedback: kernels are compiled before a plan is made, and may get other params by it.

Runs, ``fd.compile_for`` and ``fd.plan`` compile the same kernels, so it is done here for all of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import options as settings
from ..device import DeviceProperties
from ..errors import TritonFuserError
from ..ir import Fusion
from ..lowering.build import CompiledKernel
from ..lowering.lowered import Lowered
from ..lowering.register_feedback import with_actual_registers
from ..lowering.run_options import RunOptions
from .kernels import compiled_ahead, wanted_kernels


def with_register_feedback(
    fusion: Fusion,
    lowered: Lowered,
    inputs: Sequence[Any],
    properties: DeviceProperties,
    options: RunOptions,
    device: torch.device | None = None,
) -> Lowered:
    """A lowered fusion as it is to be run: with params that suit the registers of its kernels.

    Schedules and params of the user do not change. Neither do kernels with open sizes, those of the
    interpreter, and those of GPUs whose binaries do not tell registers. If the new params are
    refused, or their kernels do not compile, the first ones stay.

    Parameters
    ----------
    inputs : sequence
        Inputs like those of a run, flat.
    options : RunOptions
        What the run asks for.
    device : torch.device, optional
        Where they run; None where they are only compiled.
    """
    is_given = options.schedule is not None or options.params is not None
    is_interpreted = device is not None and device.type == "cpu"
    if is_given or is_interpreted or lowered.env is not None or not properties.limits_registers:
        return lowered

    def compile_all(made: Lowered) -> list[CompiledKernel | None]:
        wanted = wanted_kernels(fusion, inputs, made)
        kernels = iter(compiled_ahead(wanted, properties.arch, device))
        return [None if source is None else next(kernels) for source in made.sources]

    first = compile_all(lowered)
    try:
        return with_actual_registers(lowered, first, properties, compile_all)
    except TritonFuserError as error:
        settings.log("cache", f"the params that were chosen first stay: {error.message}")
        return lowered
