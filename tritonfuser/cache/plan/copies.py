"""Copies of tensors that keep their strides, also where elements share memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .memory_overlap import tensors_overlap


def copied(inputs: Sequence[Any]) -> list[Any]:
    """Inputs with tensors copied to new memory, with the same strides."""
    return [_copied(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.numel():
        return tensor.clone()
    reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    storage = tensor.as_strided((reach,), (1,), tensor.storage_offset()).clone()
    return storage.as_strided(tensor.shape, tensor.stride())


def put(given: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """Copy ``made`` into ``given`` outside of autograd, and return ``given``.

    A tensor of ``torch.inference_mode`` may be written anywhere, as kernels write it.
    """
    if given is made:
        return given
    if given.is_inference():
        with torch.inference_mode():
            given.copy_(made)
    else:
        given.detach().copy_(made.detach())
    return given


def without_stride_0(tensor: torch.Tensor) -> torch.Tensor:
    """A view of a tensor with extent 1 in dims of stride 0, so that it can be copied into."""
    sizes = [1 if not s and n else n for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    return tensor.as_strided(sizes, tensor.stride(), tensor.storage_offset())


def apart(view: torch.Tensor, *written: torch.Tensor) -> torch.Tensor:
    """A view of an input; a copy where it shares memory with tensors that are written."""
    return view.clone() if any(tensors_overlap(view, other) for other in written) else view
