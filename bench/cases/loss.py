"""Cross entropy of logits [tokens, vocabulary], and its backward."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from . import liger, sizes
from .building_blocks import autograd, load, over_columns, over_rows, store, tensor, total, wide
from .case import Case, Draw, Inputs, Run, Size

Tensor = torch.Tensor


def _cross_entropy(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """The mean loss, and the logsumexp of each row, which the backward reads."""
    x, labels = load(fd, size, dtype), tensor(fd, size[:1], DataType.Int)
    largest = fd.ops.max(x, dims=[1])
    exps = fd.ops.exp(fd.ops.sub(x, over_rows(fd, largest, size)))
    logs = fd.ops.add(fd.ops.log(total(fd, exps, [1])), largest)
    column = fd.ops.broadcast(labels, is_broadcast_dim=[False, True])
    picked = fd.ops.squeeze(fd.ops.take_along_axis(x, column, dim=1), dims=[1])
    loss = total(fd, fd.ops.sub(logs, picked), [0])
    fd.add_output(fd.ops.mul(loss, 1.0 / size[0]))
    fd.add_output(logs)


def _inputs(draw: Draw, size: Size) -> Inputs:
    return [draw.normal(*size), draw.integers(size[1], size[0])]


def _eager(x: Tensor, labels: Tensor) -> Any:
    """The formula in float32; torch.compile fuses it best in this form."""
    x = wide(x)
    logs = torch.logsumexp(x, 1)
    return (logs - x.gather(1, labels[:, None])[:, 0]).mean(), logs


def _prepared(x: Tensor, labels: Tensor) -> Run:
    return partial(F.cross_entropy, x, labels)


def _backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    grad = tensor(fd, (), DataType.Float)
    x, logs = load(fd, size, dtype), tensor(fd, size[:1], DataType.Float)
    labels = tensor(fd, size[:1], DataType.Int)
    share = fd.ops.exp(fd.ops.sub(x, over_rows(fd, logs, size)))
    place = fd.ops.iota(size[1], 0, 1, DataType.Int)
    hit = fd.ops.eq(over_columns(fd, place, size), over_rows(fd, labels, size))
    inner = fd.ops.sub(share, fd.ops.cast(hit, dtype=DataType.Float))
    store(fd, fd.ops.mul(inner, fd.ops.mul(grad, 1.0 / size[0])), dtype)


def _backward_inputs(draw: Draw, size: Size) -> Inputs:
    x, labels = _inputs(draw, size)
    assert isinstance(x, torch.Tensor)
    grad = draw.normal(dtype=torch.float32)
    return [grad, x, torch.logsumexp(x.float(), 1), labels]


def _eager_backward(grad: Tensor, x: Tensor, logs: Tensor, labels: Tensor) -> Tensor:
    share = (x - logs[:, None]).exp()
    hit = torch.arange(x.shape[1], device=x.device) == labels[:, None]
    return ((share - hit.to(share.dtype)) * (grad / x.shape[0])).to(x.dtype)


def _autograd(grad: Tensor, x: Tensor, logs: Tensor, labels: Tensor) -> Run:
    return autograd(partial(F.cross_entropy, target=labels), grad.to(x.dtype), x)


CASES = (
    Case(
        "cross_entropy",
        "loss",
        sizes.VOCABULARIES,
        _cross_entropy,
        _inputs,
        _eager,
        _prepared,
        liger=liger.cross_entropy,
    ),
    Case(
        "cross_entropy_bwd",
        "loss",
        sizes.VOCABULARIES,
        _backward,
        _backward_inputs,
        _eager_backward,
        _autograd,
    ),
)
