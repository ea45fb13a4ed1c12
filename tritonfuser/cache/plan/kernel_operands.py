"""Inputs prepared for kernels: conjugate and negative bits resolved, scalars rounded."""

from __future__ import annotations

import torch

from ...dtypes import Category
from ...ir import TensorType
from ...symbolic.queries import assume_less
from ...symbolic.sizes import is_size


def detached(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without autograd: all results of a run are, those that torch computes too."""
    return tensor.detach() if tensor.requires_grad else tensor


def view_as_real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's memory as pairs of reals; of a conjugated tensor a copy, laid out the same."""
    tensor = detached(tensor)
    if not tensor.is_conj():
        return torch.view_as_real(tensor)
    # Twice conjugated: the same memory, as it is.
    given = tensor.conj()
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    reach = last + 1 if tensor.numel() else 0
    flat = given.as_strided((reach,), (1,)).conj_physical()
    return torch.view_as_real(flat.as_strided(tensor.shape, tensor.stride(), 0))


def may_be_negated(type_: TensorType) -> bool:
    """Whether an input's strides are those of an imaginary part: then its signs may be off.

    ``z.conj().imag`` is a view of the imaginary part of ``z`` with a mark.
    """
    strides = () if type_.layout is None else type_.layout.strides or ()
    dims = zip(type_.sizes, strides, strict=True)
    steps = (step for size, step in dims if assume_less(1, size))
    # A step that varies may be even, whatever it is now.
    known = (step for step in steps if not is_size(step))
    is_real = type_.dtype.info.category is Category.FLOAT
    return is_real and type_.dtype.info.bits >= 32 and all(step % 2 == 0 for step in known)


def resolve_neg(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy without the mark, laid out the same."""
    if not tensor.is_neg():
        return tensor
    strides = tensor.stride()
    plain = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return plain.copy_(tensor)


def rounded(number: float, dtype: torch.dtype) -> float:
    """A number as half, bf16 or fp8 holds it: launchers cut bf16 off and refuse great halves."""
    return torch.tensor(number, dtype=torch.float64, device="cpu").to(dtype).item()
