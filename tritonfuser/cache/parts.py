"""Complex tensors as what kernels read: real ones with a last dim of two."""

from __future__ import annotations

import torch


def view_as_real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's memory as pairs of reals; of a conjugated tensor a copy, laid out the same."""
    if not tensor.is_conj():
        return torch.view_as_real(tensor)
    # Twice conjugated: the same memory, as it is.
    given = tensor.conj()
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    reach = last + 1 if tensor.numel() else 0
    flat = given.as_strided((reach,), (1,)).conj_physical()
    return torch.view_as_real(flat.as_strided(tensor.shape, tensor.stride(), 0))
