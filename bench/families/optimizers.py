"""Steps of optimizers over all tensors of a transformer's blocks, as functions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .family import Family, Step

Shapes = tuple[tuple[int, ...], ...]


def _block(width: int, hidden: int) -> Shapes:
    """Shapes of the parameters of a block with biases."""
    return (
        (width,),
        (width,),
        (3 * width, width),
        (3 * width,),
        (width, width),
        (width,),
        (width,),
        (width,),
        (hidden, width),
        (hidden,),
        (width, hidden),
        (width,),
    )


def _averages(mean: Tensor, square: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The moving averages of the gradient and of its square."""
    return mean * 0.9 + grad * 0.1, square * 0.95 + grad * grad * 0.05


def _direction(mean: Tensor, square: Tensor, scales: tuple[Tensor, Tensor]) -> Tensor:
    """Adam's direction; the averages are scaled by what they lack in the first steps."""
    return mean * scales[0] / (torch.sqrt(square * scales[1]) + 1e-8)


def _scales(steps: Tensor) -> tuple[Tensor, Tensor]:
    return 1 / (1 - torch.pow(0.9, steps)), 1 / (1 - torch.pow(0.95, steps))


def adamw(count: int, steps: Tensor, *tensors: Tensor) -> Any:
    """Float32 parameters, their averages and a 16-bit copy of them; 16-bit gradients."""
    groups = [tensors[place * count : (place + 1) * count] for place in range(4)]
    scales, found = _scales(steps), []
    for weight, grad, mean, square in zip(*groups, strict=True):
        mean, square = _averages(mean, square, grad.float())
        weight = weight * (1 - 1e-3 * 0.1) - 1e-3 * _direction(mean, square, scales)
        found += [mean, square, weight, weight.to(grad.dtype)]
    return steps + 1, found


def lamb(count: int, steps: Tensor, *tensors: Tensor) -> Any:
    """Adam's direction scaled, tensor by tensor, by the norms of weight and direction."""
    groups = [tensors[place * count : (place + 1) * count] for place in range(4)]
    scales, found = _scales(steps), []
    for weight, grad, mean, square in zip(*groups, strict=True):
        mean, square = _averages(mean, square, grad.float())
        move = _direction(mean, square, scales) + 0.01 * weight
        size, length = torch.sqrt((weight * weight).sum()), torch.sqrt((move * move).sum())
        trust = torch.where(size > 0, torch.where(length > 0, size / length, 1.0), 1.0)
        found += [mean, square, weight - 1e-3 * trust * move]
    return steps + 1, found


def ema(count: int, *tensors: Tensor) -> Any:
    """A moving average of 16-bit parameters in float32."""
    return [
        kept * 0.999 + weight.float() * 0.001
        for kept, weight in zip(tensors[:count], tensors[count:], strict=True)
    ]


def clip_grad(*grads: Tensor) -> Any:
    """Gradients scaled so that the norm over all of them is at most 1."""
    total = torch.zeros((), device=grads[0].device)
    for grad in grads:
        total = total + (grad.float() * grad.float()).sum()
    norm = torch.sqrt(total)
    scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
    return norm, [(grad.float() * scale).to(grad.dtype) for grad in grads]


def _inputs(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[torch.dtype]) -> tuple[Tensor, ...]:
    return tuple(torch.empty(shape, dtype=dtype) for dtype in dtypes for shape in shapes)


def _bound(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def step(*inputs: Tensor) -> Any:
        return function(count, *inputs)

    return step


_WIDE, _NARROW = torch.float32, torch.bfloat16


def _adamw(width: int, hidden: int) -> Step:
    shapes = _block(width, hidden)
    inputs = _inputs(shapes, (_WIDE, _NARROW, _WIDE, _WIDE))
    return Step(_bound(adamw, len(shapes)), (torch.empty(()), *inputs), training=False)


def _lamb(width: int, hidden: int) -> Step:
    shapes = _block(width, hidden)
    inputs = _inputs(shapes, (_WIDE, _NARROW, _WIDE, _WIDE))
    return Step(_bound(lamb, len(shapes)), (torch.empty(()), *inputs), training=False)


def _ema(width: int, hidden: int) -> Step:
    shapes = _block(width, hidden) * 2
    inputs = _inputs(shapes, (_WIDE, _NARROW))
    return Step(_bound(ema, len(shapes)), inputs, training=False)


def _clip_grad(width: int, hidden: int) -> Step:
    return Step(clip_grad, _inputs(_block(width, hidden) * 2, (_NARROW,)), training=False)


def _family(name: str, build: Callable[..., Step]) -> Family:
    sizes = {
        "filling": {"width": 1024, "hidden": 4096},
        "small": {"width": 256, "hidden": 1024},
    }
    tiny = {"width": 12, "hidden": 20}
    return Family(name, build, sizes, {"filling": tiny, "small": tiny})


FAMILIES = (
    _family("adamw", _adamw),
    _family("lamb", _lamb),
    _family("ema", _ema),
    _family("clip_grad", _clip_grad),
)
