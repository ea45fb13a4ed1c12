"""Objects that the generated functions of a plan refer to by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...lowering.backend.launch import SCRATCH


def gpu_functions() -> dict[str, Any]:
    """torch's C functions that a run on a GPU calls."""
    return {
        "get_device": torch._C._cuda_getDevice,
        "get_stream": torch._C._cuda_getCurrentRawStream,
        # Takes a quarter of the time of torch.empty_strided; torch.compile calls it too.
        "empty": getattr(torch._C._dynamo.guards, "_empty_strided_cuda"),  # noqa: B009
    }


def constants(scope: dict[str, Any], prefix: str, values: Sequence[object]) -> list[str]:
    """Constant launch arguments as text; objects without a literal are added to ``scope``."""
    names: list[str] = []
    for place, value in enumerate(values):
        if value is None or value is SCRATCH or isinstance(value, bool | int):
            names.append(repr(value))
            continue
        names.append(f"{prefix}{place}")
        scope[names[-1]] = value
    return names
