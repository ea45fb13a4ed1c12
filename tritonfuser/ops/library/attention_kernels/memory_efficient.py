"""Attention by torch's memory-efficient kernels on a GPU, which take float32 too."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from . import flash
from .operands import Tensor, in_shapes_of, padded

_DTYPES = (*flash.DTYPES, torch.float32)
_LINE = 32
"""What the kernels fill the rows of a logsumexp up to a multiple of."""


def takes(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether torch's memory-efficient kernels take the tensors.

    They put the causal mask where torch has it, with any number of keys.
    """
    fits = query.is_cuda and query.dtype in _DTYPES and torch.version.cuda is not None
    return fits and all(x.numel() for x in (query, key, value))


def forward(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    """Output, logsumexp, and seed and offset of the dropout.

    Both numbers are in the seed, whose two elements ``backward`` reads.
    """
    out, total, seed, offset = torch.ops.aten._scaled_dot_product_efficient_attention(
        *map(padded, (query, key, value)), None, True, dropout_p, is_causal, scale=scale
    )
    rows = query.shape[:-1]
    drawn = torch.stack([seed, offset]).to(query.device).view(torch.uint64)
    out = out[..., : value.shape[-1]]
    out = out.reshape(*rows, -1) if query.dim() > 4 else out
    return out, total[..., : rows[-1]].reshape(rows), drawn, drawn[1].clone()


def backward(
    grad: Tensor,
    saved: tuple[Tensor, ...],
    drawn: tuple[Tensor, Tensor],
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    """Gradients of query, key and value."""
    *operands, total = saved
    total = total.flatten(0, total.dim() - 3)
    total = F.pad(total, [0, -total.shape[-1] % _LINE], value=math.inf)
    query, key, value, out = map(padded, operands)
    # Kernels of half read it with the strides that the forward gives it, whatever it has.
    out = out.transpose(1, 2).contiguous().transpose(1, 2)
    seed, offset = drawn[0].view(torch.int64).cpu() if dropout_p else torch.zeros(2).long()
    found = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
        padded(grad),
        query,
        key,
        value,
        None,
        out,
        total,
        seed,
        offset,
        dropout_p,
        [True, True, True, False],
        is_causal,
        scale=scale,
    )
    return in_shapes_of(found[:3], operands[:3])
