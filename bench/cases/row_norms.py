"""Cases of norms over rows: the norm alone, and after a dropout and residual add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import FusionDefinition

from . import sizes
from .building_blocks import (
    DROPPED,
    SEEDS,
    define_seeds,
    dropped,
    dropped_in_torch,
    load,
    matrices,
    store,
    undropped,
    with_mask,
)
from .case import Case, Draw, Inputs, Liger, Run, Size

Tensor = torch.Tensor


@dataclass(frozen=True)
class RowNorm:
    """One norm over rows, as data for its cases.

    Attributes
    ----------
    name : str
        Name of the norm, such as ``layernorm``.
    vectors : int
        Number of parameter vectors: 1 for weight, 2 for weight and bias.
    record : callable
        ``(fd, x, size, dtype)``: define the vectors as inputs and add the outputs.
    gradient : callable
        ``(fd, size, dtype) -> (dx, rows)``: define the inputs of the backward and compute dx.
    store : callable
        ``(fd, rows, dtype)``: add the gradients of the vectors as outputs.
    eager, eager_backward : callable
        Forward and backward in torch.
    inputs : callable
        ``(draw, size) -> inputs`` of the backward.
    autograd : callable, optional
        ``(*inputs) -> thunk``: the backward through autograd where that is torch's fastest.
    """

    name: str
    vectors: int
    record: Callable[[FusionDefinition, Any, Size, torch.dtype], None]
    gradient: Callable[[FusionDefinition, Size, torch.dtype], tuple[Any, Any]]
    store: Callable[[FusionDefinition, Any, torch.dtype], None]
    eager: Callable[..., Any]
    eager_backward: Callable[..., Any]
    inputs: Callable[[Draw, Size], Inputs]
    autograd: Callable[..., Run] | None = None


def alone(norm: RowNorm, liger: Liger, liger_backward: Liger) -> tuple[Case, Case]:
    """The cases of the norm and its backward."""
    given = matrices(1, norm.vectors)
    forward = Case(
        norm.name, "norm", sizes.ROWS, partial(_norm, norm), given, norm.eager, liger=liger
    )
    backward = Case(
        f"{norm.name}_bwd",
        "norm",
        sizes.ROWS,
        partial(_backward, norm),
        norm.inputs,
        norm.eager_backward,
        norm.autograd,
        liger=liger_backward,
    )
    return forward, backward


def behind_dropout(norm: RowNorm) -> tuple[Case, Case]:
    """The cases of the norm of dropout(x) + residual and its backward."""
    autograd = norm.autograd and partial(_autograd_dropout, norm.autograd)
    forward = Case(
        f"dropout_{norm.name}",
        "norm",
        sizes.ROWS,
        partial(_dropout, norm),
        partial(_dropout_inputs, norm.vectors),
        partial(_eager_dropout, norm.eager),
        oracle=partial(_dropout_oracle, norm.eager),
    )
    backward = Case(
        f"dropout_{norm.name}_bwd",
        "norm",
        sizes.ROWS,
        partial(_dropout_backward, norm),
        partial(_dropout_backward_inputs, norm.inputs),
        partial(_eager_dropout_backward, norm.eager_backward),
        autograd,
        peers=with_mask,
        oracle=partial(_dropout_backward_oracle, norm.eager_backward),
    )
    return forward, backward


def then(backward: Callable[..., Run], finish: Callable[[Any], Any], *inputs: Tensor) -> Run:
    """A call of an autograd backward followed by eager ops on its results."""
    run = backward(*inputs)
    return lambda: finish(run())


def _norm(norm: RowNorm, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    norm.record(fd, load(fd, size, dtype), size, dtype)


def _backward(norm: RowNorm, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    dx, rows = norm.gradient(fd, size, dtype)
    store(fd, dx, dtype)
    norm.store(fd, rows, dtype)


# --- after a dropout -----------------------------------------------------------------------------


def _dropout(norm: RowNorm, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    residual, x = load(fd, size, dtype), load(fd, size, dtype)
    mixed = fd.ops.add(residual, dropped(fd, x, size, define_seeds(fd)))
    store(fd, mixed, dtype)
    norm.record(fd, mixed, size, dtype)


def _dropout_inputs(vectors: int, draw: Draw, size: Size) -> Inputs:
    residual, x, *given = matrices(2, vectors)(draw, size)
    return [residual, x, *SEEDS, *given]


def _normed(norm: Callable[..., Any], mixed: Tensor, *vectors: Tensor) -> tuple[Tensor, ...]:
    found = norm(mixed, *vectors)
    return (mixed, found) if isinstance(found, torch.Tensor) else (mixed, *found)


def _eager_dropout(
    norm: Callable[..., Any], residual: Tensor, x: Tensor, seed: int, offset: int, *vectors: Tensor
) -> Any:
    return _normed(norm, residual + F.dropout(x, DROPPED), *vectors)


def _dropout_oracle(
    norm: Callable[..., Any], residual: Tensor, x: Tensor, seed: int, offset: int, *vectors: Tensor
) -> Any:
    return _normed(norm, residual + dropped_in_torch(x, seed, offset), *vectors)


def _dropout_backward(norm: RowNorm, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """Gradients of the residual, of the dropout's input, and of the vectors."""
    dx, rows = norm.gradient(fd, size, dtype)
    store(fd, dx, dtype)
    store(fd, dropped(fd, dx, size, define_seeds(fd)), dtype)
    norm.store(fd, rows, dtype)


def _dropout_backward_inputs(
    inputs: Callable[[Draw, Size], Inputs], draw: Draw, size: Size
) -> Inputs:
    return [*inputs(draw, size), *SEEDS]


def _undrop(mask: Tensor, found: Any) -> Any:
    dx, *rest = found
    return dx, undropped(dx, mask), *rest


def _eager_dropout_backward(backward: Callable[..., Any], *inputs: Tensor) -> Any:
    *given, mask = inputs
    return _undrop(mask, backward(*given))


def _autograd_dropout(autograd: Callable[..., Run], *inputs: Tensor) -> Run:
    *given, mask = inputs
    return then(autograd, partial(_undrop, mask), *given)


def _dropout_backward_oracle(backward: Callable[..., Any], *inputs: Any) -> Any:
    *given, seed, offset = inputs
    dx, *rest = backward(*given)
    return dx, dropped_in_torch(dx, seed, offset), *rest
