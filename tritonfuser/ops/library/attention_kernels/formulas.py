"""Attention by formulas of torch's ops, for tensors that no attention kernel takes."""

from __future__ import annotations

import math

import torch

from .operands import Tensor, no_seed


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    extra: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    """Output, logsumexp of the scores, and zeros in the place of seed and offset.

    The output is by torch's own formula, in the query's dtype: 0 where a row may see nothing.

    Parameters
    ----------
    extra : Tensor or None
        What is added to the scores, as ``added_to_scores`` gives it.
    """
    extra = _with_causal(query, key, extra, is_causal)
    given = None if extra is None else extra.to(query.dtype)
    out, _ = torch.ops.aten._scaled_dot_product_attention_math(
        query, key, value, given, dropout_p, False, scale=scale
    )
    return out, _scores(query, key, extra, scale).logsumexp(-1), *no_seed(query)


def backward(
    grad: Tensor, saved: tuple[Tensor, ...], is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    """Gradients of query, key and value of an attention without bias, mask and dropout."""
    query, key, value, out, total = saved
    extra = _with_causal(query, key, None, is_causal)
    scores = _scores(query, key, extra, scale)
    weights = torch.exp(scores - total.to(scores.dtype).unsqueeze(-1)).nan_to_num(0.0)
    wide = [x.to(scores.dtype) for x in (grad, query, key, value, out)]
    grad, query, key, value, out = wide
    by_weight = grad @ value.transpose(-1, -2) - (grad * out).sum(-1, keepdim=True)
    by_score = weights * by_weight * scale
    made = by_score @ key, by_score.transpose(-1, -2) @ query, weights.transpose(-1, -2) @ grad
    return tuple(g.to(x.dtype) for g, x in zip(made, saved, strict=False))


def added_to_scores(query: Tensor, bias: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """What is added to the scores: the bias, and minus infinity where the mask is false."""
    if mask is None:
        return bias
    masked = torch.zeros(mask.shape, dtype=query.dtype, device=query.device)
    masked = masked.masked_fill(~mask, -math.inf)
    return masked if bias is None else bias + masked


def _with_causal(
    query: Tensor, key: Tensor, extra: Tensor | None, is_causal: bool
) -> Tensor | None:
    """What is added to the scores, with minus infinity for keys behind the query."""
    if not is_causal:
        return extra
    sizes = query.shape[-2], key.shape[-2]
    seen = torch.ones(sizes, dtype=torch.bool, device=query.device).tril()
    base = query.new_zeros(()) if extra is None else extra
    return torch.where(seen, base, -math.inf).to(query.dtype)


def _scores(query: Tensor, key: Tensor, extra: Tensor | None, scale: float) -> Tensor:
    """The scaled scores in float32, or in float64 where the query is."""
    wide = torch.promote_types(query.dtype, torch.float32)
    found = (query.to(wide) * scale) @ key.to(wide).transpose(-1, -2)
    return found if extra is None else found + extra.to(wide)
