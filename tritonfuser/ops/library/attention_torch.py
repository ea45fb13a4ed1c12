"""Attention by torch: its flash kernels where they take the tensors, else its memory-efficient

ones, which take float32 too, else plain formulas.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from ...errors import InputError

Tensor = torch.Tensor
_FLASH_DTYPES = (torch.float16, torch.bfloat16)
_EFFICIENT_DTYPES = (*_FLASH_DTYPES, torch.float32)
_LINE = 32
"""What the memory-efficient kernels fill the rows of a logsumexp up to a multiple of."""
_WIDEST = 256


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
        return _by_formula(query, key, value, _added(query, bias, mask), *options)
    if _on_cuda(query, key, value, is_causal):
        return _flash(query, key, value, *options)
    if _efficiently(query, key, value):
        return _efficient(query, key, value, *options)
    if _on_cpu(query, value) and not dropout_p:
        return _flash_on_cpu(query, key, value, *options)
    return _by_formula(query, key, value, None, *options)


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
    if _on_cuda(query, key, value, is_causal):
        return _flash_backward(grad, saved, drawn, dropout_p, is_causal, factor)
    if _efficiently(query, key, value):
        return _efficient_backward(grad, saved, drawn, dropout_p, is_causal, factor)
    if dropout_p:
        raise InputError(
            f"sdpfa_bwd: expected a dropout_p of 0 for {query.dtype} on {query.device.type}, "
            f"got {dropout_p}",
            hint="Dropout can be drawn again for Half, BFloat16 and Float tensors on a GPU.",
        )
    if _on_cpu(query, value):
        return _flash_on_cpu_backward(grad, saved, is_causal, factor)
    return _formula_backward(grad, saved, is_causal, factor)


# --- flash kernels -------------------------------------------------------------------------------


def _on_cuda(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> bool:
    """Whether torch's CUDA kernels take the tensors.

    Where there are more keys than queries, or fewer, they would put the causal mask elsewhere.
    """
    if not query.is_cuda or query.dtype not in _FLASH_DTYPES or not _is_plain(query, value):
        return False
    square = query.shape[-2] == key.shape[-2]
    return (square or not is_causal) and torch.cuda.get_device_capability(query.device) >= (8, 0)


def _on_cpu(query: Tensor, value: Tensor) -> bool:
    return query.device.type == "cpu" and _is_plain(query, value)


def _is_plain(query: Tensor, value: Tensor) -> bool:
    width = query.shape[-1]
    return width == value.shape[-1] <= _WIDEST and query.numel() > 0 and value.numel() > 0


def _dense(x: Tensor) -> Tensor:
    """Four dims, and rows that lie densely: torch's kernels take others for such."""
    x = x.flatten(0, x.dim() - 4)
    return x if x.stride(-1) == 1 else x.contiguous()


def _padded(x: Tensor) -> Tensor:
    """As ``_dense``, with a width that is a multiple of 8, as kernels on a GPU want it."""
    missing = -x.shape[-1] % 8
    return _dense(F.pad(x, [0, missing]) if missing else x)


def _flash(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    found = torch.ops.aten._scaled_dot_product_flash_attention(
        _padded(query), _padded(key), _padded(value), dropout_p, is_causal, scale=scale
    )
    out, total, seed, offset = found[0], found[1], found[6], found[7]
    out = out[..., : query.shape[-1]]
    if query.dim() > 4:
        out = out.reshape(query.shape)
    return out, total.reshape(query.shape[:-1]), seed, offset


def _flash_backward(
    grad: Tensor,
    saved: tuple[Tensor, ...],
    drawn: tuple[Tensor, Tensor],
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    *operands, total = saved
    query, key = operands[:2]
    padded = [_padded(x) for x in operands]
    found = torch.ops.aten._scaled_dot_product_flash_attention_backward(
        _padded(grad),
        *padded,
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
    return _shaped(found, operands)


def _shaped(found: tuple[Tensor, ...], like: list[Tensor]) -> tuple[Tensor, ...]:
    """Gradients in the operands' shapes."""
    cut = (g[..., : x.shape[-1]] for g, x in zip(found, like, strict=False))
    return tuple(g.reshape(x.shape) if x.dim() > 4 else g for g, x in zip(cut, like, strict=False))


def _flash_on_cpu(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    out, total = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *map(_dense, (query, key, value)), dropout_p, is_causal, scale=scale
    )
    shape = query.shape
    return (*_shaped((out,), [query]), total.reshape(shape[:-1]), *_no_seed(query))


def _flash_on_cpu_backward(
    grad: Tensor, saved: tuple[Tensor, ...], is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    *operands, total = saved
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *map(_dense, (grad, *operands)),
        total.flatten(0, total.dim() - 3).to(torch.promote_types(grad.dtype, torch.float32)),
        0.0,
        is_causal,
        scale=scale,
    )
    return _shaped(found, operands)


def _no_seed(like: Tensor) -> tuple[Tensor, Tensor]:
    zeros = torch.zeros(3, dtype=torch.uint64, device=like.device)
    return zeros[:2], zeros[2]


# --- memory-efficient kernels --------------------------------------------------------------------


def _efficiently(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether torch's memory-efficient kernels take the tensors.

    They put the causal mask where torch has it, with any number of keys.
    """
    fits = query.is_cuda and query.dtype in _EFFICIENT_DTYPES and torch.version.cuda is not None
    return fits and all(x.numel() for x in (query, key, value))


def _efficient(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
    """The seed and the offset are both in the seed's two numbers."""
    out, total, seed, offset = torch.ops.aten._scaled_dot_product_efficient_attention(
        *map(_padded, (query, key, value)), None, True, dropout_p, is_causal, scale=scale
    )
    rows = query.shape[:-1]
    drawn = torch.stack([seed, offset]).to(query.device).view(torch.uint64)
    out = out[..., : value.shape[-1]]
    out = out.reshape(*rows, -1) if query.dim() > 4 else out
    return out, total[..., : rows[-1]].reshape(rows), drawn, drawn[1].clone()


def _efficient_backward(
    grad: Tensor,
    saved: tuple[Tensor, ...],
    drawn: tuple[Tensor, Tensor],
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    *operands, total = saved
    total = total.flatten(0, total.dim() - 3)
    total = F.pad(total, [0, -total.shape[-1] % _LINE], value=math.inf)
    query, key, value, out = map(_padded, operands)
    # Kernels of half read it with the strides that the forward gives it, whatever it has.
    out = out.transpose(1, 2).contiguous().transpose(1, 2)
    seed, offset = drawn[0].view(torch.int64).cpu() if dropout_p else torch.zeros(2).long()
    found = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
        _padded(grad),
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
    return _shaped(found[:3], operands[:3])


# --- formulas ------------------------------------------------------------------------------------


def _added(query: Tensor, bias: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """What is added to the scores: the bias, and minus infinity where the mask is false."""
    if mask is None:
        return bias
    masked = torch.zeros(mask.shape, dtype=query.dtype, device=query.device)
    masked = masked.masked_fill(~mask, -math.inf)
    return masked if bias is None else bias + masked


def _with_causal(
    query: Tensor, key: Tensor, extra: Tensor | None, is_causal: bool
) -> Tensor | None:
    if not is_causal:
        return extra
    sizes = query.shape[-2], key.shape[-2]
    seen = torch.ones(sizes, dtype=torch.bool, device=query.device).tril()
    base = query.new_zeros(()) if extra is None else extra
    return torch.where(seen, base, -math.inf).to(query.dtype)


def _scores(query: Tensor, key: Tensor, extra: Tensor | None, scale: float) -> Tensor:
    """In float32, or in float64 where the query is."""
    wide = torch.promote_types(query.dtype, torch.float32)
    found = (query.to(wide) * scale) @ key.to(wide).transpose(-1, -2)
    return found if extra is None else found + extra.to(wide)


def _by_formula(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    extra: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    """torch's own formula, in the query's dtype: 0 where a row may see nothing."""
    extra = _with_causal(query, key, extra, is_causal)
    given = None if extra is None else extra.to(query.dtype)
    out, _ = torch.ops.aten._scaled_dot_product_attention_math(
        query, key, value, given, dropout_p, False, scale=scale
    )
    return out, _scores(query, key, extra, scale).logsumexp(-1), *_no_seed(query)


def _formula_backward(
    grad: Tensor, saved: tuple[Tensor, ...], is_causal: bool, scale: float
) -> tuple[Tensor, ...]:
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
