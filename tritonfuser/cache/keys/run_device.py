"""The device that a run happens on, from its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import InputError


def default_device() -> torch.device:
    """Where a definition that takes no tensors runs: torch's current GPU, or the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def device_of(inputs: Sequence[Any], device: torch.device | None = None) -> torch.device:
    """The device of a run.

    The GPU of the inputs, else the CPU. Without tensors the current CUDA device, if there is one.

    Parameters
    ----------
    inputs : sequence
        Flat inputs: tensors and Python numbers.
    device : torch.device, optional
        The device that was asked for. It is returned with an index.

    Raises
    ------
    InputError
        Tensors on two GPUs.
    """
    found = {x.device for x in inputs if isinstance(x, torch.Tensor)}
    gpus = {d for d in found if d.type not in ("cpu", "meta")}
    if len(gpus) > 1:
        names = ", ".join(sorted(str(d) for d in gpus))
        raise InputError(
            "KernelExecutor does not support the Fusion provided. "
            f"Inputs on several devices: {names}",
            hint="Move all inputs to one device.",
        )
    if device is not None:
        return _indexed(device)
    if gpus:
        return gpus.pop()
    return torch.device("cpu") if found else default_device()


def _indexed(device: torch.device) -> torch.device:
    index: int | None = device.index
    if device.type == "cuda" and index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
