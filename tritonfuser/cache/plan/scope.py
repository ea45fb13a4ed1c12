"""Objects that a plan's functions use by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...lowering.backend.launch import SCRATCH


def calls_of_a_gpu() -> dict[str, Any]:
    """What a run calls of torch on a GPU: the C functions behind the public ones."""
    return {
        "get_device": torch._C._cuda_getDevice,
        "get_stream": torch._C._cuda_getCurrentRawStream,
        # A quarter of the time of torch.empty_strided; what torch.compile's code calls too.
        "empty": getattr(torch._C._dynamo.guards, "_empty_strided_cuda"),  # noqa: B009
    }


def constants(scope: dict[str, Any], prefix: str, values: Sequence[object]) -> list[str]:
    """Arguments of a launch that are the same in all runs, as text; objects go into ``scope``."""
    names: list[str] = []
    for place, value in enumerate(values):
        if value is None or value is SCRATCH or isinstance(value, bool | int):
            names.append(repr(value))
            continue
        names.append(f"{prefix}{place}")
        scope[names[-1]] = value
    return names
