"""Inputs prepared for kernels: conjugate and negative bits resolved, scalars rounded."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd import forward_ad

from ...dtypes import Category
from ...ir import TensorType
from ...symbolic.queries import assume_less
from ...symbolic.sizes import is_size


def detached(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without autograd, as all results of a run are; without a tangent too."""
    in_dual_level = forward_ad._current_level >= 0
    return tensor.detach() if tensor.requires_grad or in_dual_level else tensor


def view_as_real(tensor: torch.Tensor) -> torch.Tensor:
    """A complex tensor as pairs of reals; a copy of equal strides where the conj bit is set."""
    tensor = detached(tensor)
    if not tensor.is_conj():
        return torch.view_as_real(tensor)
    # conj() of it is a view of the same memory without the conj bit.
    return torch.view_as_real(_changed(tensor.conj(), torch.conj_physical))


def may_be_negated(type_: TensorType) -> bool:
    """Whether an input may have torch's negative bit, as far as dtype and strides say.

    ``z.conj().imag`` is a view of the imaginary part of ``z`` with that bit, so it has the strides
    of an imaginary part: even ones, in elements.
    """
    strides = () if type_.layout is None else type_.layout.strides or ()
    dims = zip(type_.sizes, strides, strict=True)
    steps = (step for size, step in dims if assume_less(1, size))
    # A step that is a size may be even at other sizes.
    known = (step for step in steps if not is_size(step))
    is_real = type_.dtype.info.category is Category.FLOAT
    return is_real and type_.dtype.info.bits >= 32 and all(step % 2 == 0 for step in known)


def resolve_neg(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; a copy with the same strides where the negative bit is set."""
    if not tensor.is_neg():
        return tensor
    return _changed(torch._neg_view(tensor), torch.neg)  # a view without the bit


def _changed(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A changed copy of equal strides, also where elements of the tensor share memory."""
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    reach = last + 1 if tensor.numel() else 0
    flat = change(tensor.as_strided((reach,), (1,)))
    return flat.as_strided(tensor.shape, tensor.stride(), 0)


def rounded(number: float, dtype: torch.dtype) -> float:
    """A number rounded to half, bf16 or fp8.

    Triton's launchers truncate a bf16 argument, and refuse a half out of range.
    """
    return torch.tensor(number, dtype=torch.float64, device="cpu").to(dtype).item()
