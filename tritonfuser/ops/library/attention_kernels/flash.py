"""Attention by torch's flash kernels: on a GPU in 16 bits, on a CPU in any dtype."""

from __future__ import annotations

import torch

from .operands import Tensor, dense, in_shapes_of, no_seed, padded

DTYPES = (torch.float16, torch.bfloat16)
"""Of the tensors that the kernels on a GPU take."""
_WIDEST = 256
"""The largest width of a head that the kernels take."""


def takes_on_cuda(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> bool:
    """Whether torch's CUDA kernels take the tensors.

    Where there are more keys than queries, or fewer, they would put the causal mask elsewhere.
    """
    if not query.is_cuda or query.dtype not in DTYPES or not _is_plain(query, value):
        return False
    square = query.shape[-2] == key.shape[-2]
    return (square or not is_causal) and torch.cuda.get_device_capability(query.device) >= (8, 0)


def takes_on_cpu(query: Tensor, value: Tensor) -> bool:
    """Whether torch's CPU kernels take the tensors."""
    return query.device.type == "cpu" and _is_plain(query, value)


def _is_plain(query: Tensor, value: Tensor) -> bool:
    width = query.shape[-1]
    return width == value.shape[-1] <= _WIDEST and query.numel() > 0 and value.numel() > 0


def forward(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    """Output, logsumexp, and seed and offset of the dropout, by the kernels on a GPU."""
    found = torch.ops.aten._scaled_dot_product_flash_attention(
        padded(query), padded(key), padded(value), dropout_p, is_causal, scale=scale
    )
    out, total, seed, offset = found[0], found[1], found[6], found[7]
    out = out[..., : query.shape[-1]]
    if query.dim() > 4:
        out = out.reshape(query.shape)
    return out, total.reshape(query.shape[:-1]), seed, offset


def backward(
    grad: Tensor,
    saved: tuple[Tensor, ...],
    drawn: tuple[Tensor, Tensor],
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    """Gradients of query, key and value, by the kernels on a GPU."""
    *operands, total = saved
    query, key = operands[:2]
    found = torch.ops.aten._scaled_dot_product_flash_attention_backward(
        padded(grad),
        *map(padded, operands),
        total.flatten(0, total.dim() - 3),
        None,
        None,
        query.shape[-2],
        key.shape[-2],
        dropout_p,
        is_causal,
        *drawn,
        scale=scale,
    )
    return in_shapes_of(found, operands)


def forward_on_cpu(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    """As ``forward``, by the kernels on a CPU, which draw no dropout that a backward can repeat."""
    out, total = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *map(dense, (query, key, value)), dropout_p, is_causal, scale=scale
    )
    shape = query.shape
    return (*in_shapes_of((out,), [query]), total.reshape(shape[:-1]), *no_seed(query))


def backward_on_cpu(
    grad: Tensor, saved: tuple[Tensor, ...], is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    """As ``backward``, by the kernels on a CPU, of an attention without dropout."""
    *operands, total = saved
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *map(dense, (grad, *operands)),
        total.flatten(0, total.dim() - 3).to(torch.promote_types(grad.dtype, torch.float32)),
        0.0,
        is_causal,
        scale=scale,
    )
    return in_shapes_of(found, operands)
