"""Softmax over rows and over columns, and of attention scores with a mask and dropout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from . import liger, sizes
from .building_blocks import (
    DROPPED,
    SEEDS,
    define_seeds,
    dropped,
    dropped_in_torch,
    load,
    matrices,
    spread,
    store,
    total,
    undropped,
    with_mask,
)
from .case import Case, Draw, Inputs, Size

SCALE = 0.125
"""Scale of attention scores: 1 / sqrt(64)."""


def _softmax_of(fd: FusionDefinition, x: Any, size: Size, dim: int) -> Any:
    others = [d for d in range(len(size)) if d != dim]
    largest = spread(fd, fd.ops.max(x, dims=[dim]), size, others)
    exps = fd.ops.exp(fd.ops.sub(x, largest))
    share = fd.ops.reciprocal(total(fd, exps, [dim]))
    return fd.ops.mul(exps, spread(fd, share, size, others))


def _softmax(dim: int, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    store(fd, _softmax_of(fd, load(fd, size, dtype), size, dim), dtype)


def _backward_of(fd: FusionDefinition, grad: Any, out: Any, size: Size, dim: int) -> Any:
    product = fd.ops.mul(grad, out)
    others = [d for d in range(len(size)) if d != dim]
    along = spread(fd, total(fd, product, [dim]), size, others)
    return fd.ops.sub(product, fd.ops.mul(out, along))


def _softmax_backward(dim: int, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    grad, out = load(fd, size, dtype), load(fd, size, dtype)
    store(fd, _backward_of(fd, grad, out, size, dim), dtype)


def _backward_inputs(dim: int, draw: Draw, size: Size) -> Inputs:
    return [draw.normal(*size), torch.softmax(draw.normal(*size), dim)]


def _eager_backward(dim: int, grad: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    dx: torch.Tensor = torch.ops.aten._softmax_backward_data(grad, out, dim, out.dtype)
    return dx


# --- attention -----------------------------------------------------------------------------------


def _finish(fd: FusionDefinition, masked: Any, size: Size, dtype: torch.dtype) -> None:
    """Softmax with dropout; also outputs the probabilities, which the backward reads."""
    probabilities = _softmax_of(fd, masked, size, 3)
    seeds = define_seeds(fd)
    store(fd, dropped(fd, probabilities, size, seeds), dtype)
    store(fd, probabilities, dtype)


def _attention(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    scores, mask = load(fd, size, dtype), load(fd, size[2:], dtype)
    scaled = fd.ops.mul(scores, SCALE)
    _finish(fd, fd.ops.add(scaled, spread(fd, mask, size, [2, 3])), size, dtype)


def _attention_inputs(draw: Draw, size: Size) -> Inputs:
    return [draw.normal(*size), draw.normal(*size[2:]), *SEEDS]


def _probabilities(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores * SCALE + mask, -1)


def _causal(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    scaled = fd.ops.mul(load(fd, size, dtype), SCALE)
    query, key = (fd.ops.iota(n, 0, 1, DataType.Int) for n in size[2:])
    seen = fd.ops.ge(spread(fd, query, size[2:], [0]), spread(fd, key, size[2:], [1]))
    masked = fd.ops.where(spread(fd, seen, size, [2, 3]), scaled, float("-inf"))
    _finish(fd, masked, size, dtype)


def _causal_probabilities(scores: torch.Tensor) -> torch.Tensor:
    place = torch.arange(scores.shape[-1], device=scores.device)
    hidden = place[:, None] < place
    return torch.softmax((scores * SCALE).masked_fill(hidden, float("-inf")), -1)


def _eager_dropped(softmax: Callable[..., torch.Tensor], *inputs: Any) -> Any:
    *given, _, _ = inputs
    probabilities = softmax(*given)
    return F.dropout(probabilities, DROPPED), probabilities


def _dropped_oracle(softmax: Callable[..., torch.Tensor], *inputs: Any) -> Any:
    *given, seed, offset = inputs
    probabilities = softmax(*given)
    return dropped_in_torch(probabilities, seed, offset), probabilities


def _attention_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    grad, out = load(fd, size, dtype), load(fd, size, dtype)
    inner = dropped(fd, grad, size, define_seeds(fd))
    store(fd, fd.ops.mul(_backward_of(fd, inner, out, size, 3), SCALE), dtype)


def _attention_backward_inputs(draw: Draw, size: Size) -> Inputs:
    return [*_backward_inputs(-1, draw, size), *SEEDS]


def _eager_attention_backward(
    grad: torch.Tensor, out: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    return _eager_backward(-1, undropped(grad, mask), out) * SCALE


def _attention_backward_oracle(grad: torch.Tensor, out: torch.Tensor, *seeds: int) -> torch.Tensor:
    return _eager_backward(-1, dropped_in_torch(grad, *seeds), out) * SCALE


CASES = (
    Case(
        "softmax",
        "softmax",
        sizes.ROWS,
        partial(_softmax, 1),
        matrices(1),
        partial(torch.softmax, dim=-1),
        liger=liger.softmax,
    ),
    Case(
        "softmax_bwd",
        "softmax",
        sizes.ROWS,
        partial(_softmax_backward, 1),
        partial(_backward_inputs, -1),
        partial(_eager_backward, -1),
        liger=liger.softmax_backward,
    ),
    Case(
        "softmax_columns",
        "softmax",
        sizes.ROWS,
        partial(_softmax, 0),
        matrices(1),
        partial(torch.softmax, dim=0),
    ),
    Case(
        "softmax_columns_bwd",
        "softmax",
        sizes.ROWS,
        partial(_softmax_backward, 0),
        partial(_backward_inputs, 0),
        partial(_eager_backward, 0),
    ),
    Case(
        "attention_softmax",
        "softmax",
        sizes.SCORES,
        _attention,
        _attention_inputs,
        partial(_eager_dropped, _probabilities),
        oracle=partial(_dropped_oracle, _probabilities),
    ),
    Case(
        "causal_softmax",
        "softmax",
        sizes.SCORES,
        _causal,
        matrices(1, seeds=True),
        partial(_eager_dropped, _causal_probabilities),
        oracle=partial(_dropped_oracle, _causal_probabilities),
    ),
    Case(
        "attention_softmax_bwd",
        "softmax",
        sizes.SCORES,
        _attention_backward,
        _attention_backward_inputs,
        _eager_attention_backward,
        peers=with_mask,
        oracle=_attention_backward_oracle,
    ),
)
