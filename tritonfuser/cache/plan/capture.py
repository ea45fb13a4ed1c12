"""Refusals inside the capture of a CUDA graph: a first run, and copies from or to the CPU."""

from __future__ import annotations

import torch

from ...errors import CaptureError
from .copies import put


def refuse_first_run(device: torch.device) -> None:
    """Refuse to compile during a capture; called before anything is compiled or loaded.

    Raises
    ------
    CaptureError
        A graph is being captured.
    """
    if device.type != "cpu" and torch.cuda.is_current_stream_capturing():
        raise CaptureError(
            "the first run for inputs of this signature compiles and loads kernels, which cannot "
            "be done inside the capture of a CUDA graph",
            hint="Run it once with inputs like these before the capture.",
        )


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor copied to the GPU of the run.

    Raises
    ------
    CaptureError
        A graph is being captured and the tensor is on the CPU.
    """
    if tensor.is_cpu and torch.cuda.is_current_stream_capturing():
        raise CaptureError(
            "a 0-dim tensor on the CPU cannot be read inside the capture of a CUDA graph",
            hint="Move it to the GPU before, or capture with fd.plan(inputs).graph(inputs).",
        )
    return tensor.to(device)


def to_cpu(target: torch.Tensor, made: torch.Tensor) -> None:
    """Copy a result from the GPU into a CPU tensor.

    Raises
    ------
    CaptureError
        A graph is being captured.
    """
    if target.is_cpu and torch.cuda.is_current_stream_capturing():
        raise CaptureError(
            "a 0-dim tensor on the CPU cannot be written inside the capture of a CUDA graph",
            hint="Move it to the GPU before.",
        )
    put(target, made)
