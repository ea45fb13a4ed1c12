"""Attention by torch: the fastest way that takes the tensors.

Flash kernels come first, then memory-efficient ones, which take float32 too, then formulas.
"""

from __future__ import annotations

import math

from ...errors import InputError
from .attention_kernels import flash, formulas, memory_efficient
from .attention_kernels.operands import Tensor


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> tuple[Tensor, ...]:
    """Output, logsumexp of the scaled scores, and seed and offset of the dropout."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    options = (dropout_p, is_causal, factor)
    if bias is not None or mask is not None:
        return formulas.forward(
            query, key, value, formulas.added_to_scores(query, bias, mask), *options
        )
    if flash.takes_on_cuda(query, key, value, is_causal):
        return flash.forward(query, key, value, *options)
    if memory_efficient.takes(query, key, value):
        return memory_efficient.forward(query, key, value, *options)
    if flash.takes_on_cpu(query, value) and not dropout_p:
        return flash.forward_on_cpu(query, key, value, *options)
    return formulas.forward(query, key, value, None, *options)


def backward(
    grad: Tensor,
    saved: tuple[Tensor, ...],
    drawn: tuple[Tensor, Tensor],
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> tuple[Tensor, ...]:
    """Gradients of query, key and value.

    Parameters
    ----------
    saved : tuple of Tensor
        Query, key, value, output and logsumexp.
    drawn : tuple of Tensor
        Seed and offset that the forward gave.

    Raises
    ------
    InputError
        What was dropped is not known: only kernels on a GPU can draw it again.
    """
    query, key, value = saved[:3]
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if flash.takes_on_cuda(query, key, value, is_causal):
        return flash.backward(grad, saved, drawn, dropout_p, is_causal, factor)
    if memory_efficient.takes(query, key, value):
        return memory_efficient.backward(grad, saved, drawn, dropout_p, is_causal, factor)
    if dropout_p:
        raise InputError(
            f"sdpfa_bwd: expected a dropout_p of 0 for {query.dtype} on {query.device.type}, "
            f"got {dropout_p}",
            hint="Dropout can be drawn again for Half, BFloat16 and Float tensors on a GPU.",
        )
    if flash.takes_on_cpu(query, value):
        return flash.backward_on_cpu(grad, saved, is_causal, factor)
    return formulas.backward(grad, saved, is_causal, factor)
