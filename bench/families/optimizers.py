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


def lion(count: int, *tensors: Tensor) -> Any:
    """The sign of a gradient mixed into its average; weights decay apart from it."""
    groups = [tensors[place * count : (place + 1) * count] for place in range(3)]
    found = []
    for weight, grad, mean in zip(*groups, strict=True):
        wide = grad.float()
        move = torch.sign(mean * 0.9 + wide * 0.1)
        weight = weight * (1 - 1e-4 * 0.1) - 1e-4 * move
        found += [mean * 0.99 + wide * 0.01, weight, weight.to(grad.dtype)]
    return found


def sophia(count: int, *tensors: Tensor) -> Any:
    """Averages over a curvature, clamped; gradients of sampled labels estimate the curvature."""
    groups = [tensors[place * count : (place + 1) * count] for place in range(5)]
    found = []
    for weight, grad, sampled, mean, curvature in zip(*groups, strict=True):
        mean = mean * 0.96 + grad.float() * 0.04
        curvature = curvature * 0.99 + 480.0 * sampled.float().square() * 0.01
        move = torch.clamp(mean / torch.clamp(0.04 * curvature, min=1e-12), -1.0, 1.0)
        weight = weight * (1 - 1e-4 * 0.1) - 1e-4 * move
        found += [mean, curvature, weight, weight.to(grad.dtype)]
    return found


def _mean_square(x: Tensor) -> Tensor:
    return (x * x).mean()


def _factored(rows: Tensor, columns: Tensor) -> Tensor:
    """The inverse root of a matrix of squares of which the means of rows and columns are known."""
    return torch.rsqrt(rows / rows.mean())[:, None] * torch.rsqrt(columns)[None, :]


def adafactor(count: int, steps: Tensor, *tensors: Tensor) -> Any:
    """Squares of matrices are kept as means of rows and columns; moves are clipped by their RMS."""
    rest, found = list(tensors[2 * count :]), []
    kept = 1 - torch.pow(steps, -0.8)
    rate = torch.clamp(torch.rsqrt(steps), max=1e-2)
    for weight, grad in zip(tensors[:count], tensors[count : 2 * count], strict=True):
        wide = grad.float()
        square, averages = wide * wide + 1e-30, []
        for dim in (1, 0) if weight.ndim == 2 else ():
            averages.append(rest.pop(0) * kept + square.mean(dim) * (1 - kept))
        if not averages:
            averages.append(rest.pop(0) * kept + square * (1 - kept))
        move = wide * (_factored(*averages) if weight.ndim == 2 else torch.rsqrt(averages[0]))
        move = move / torch.clamp(torch.sqrt(_mean_square(move)), min=1.0)
        scale = rate * torch.clamp(torch.sqrt(_mean_square(weight)), min=1e-3)
        weight = weight - scale * move
        found += [*averages, weight, weight.to(grad.dtype)]
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


def _lion(width: int, hidden: int) -> Step:
    shapes = _block(width, hidden)
    return Step(_bound(lion, len(shapes)), _inputs(shapes, (_WIDE, _NARROW, _WIDE)), training=False)


def _sophia(width: int, hidden: int) -> Step:
    shapes = _block(width, hidden)
    inputs = _inputs(shapes, (_WIDE, _NARROW, _NARROW, _WIDE, _WIDE))
    return Step(_bound(sophia, len(shapes)), inputs, training=False)


def _adafactor(width: int, hidden: int) -> Step:
    shapes = _block(width, hidden)
    averages = [(n,) for shape in shapes for n in shape]
    inputs = (*_inputs(shapes, (_WIDE, _NARROW)), *_inputs(averages, (_WIDE,)))
    return Step(_bound(adafactor, len(shapes)), (torch.empty(()), *inputs), training=False)


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
    _family("lion", _lion),
    _family("sophia", _sophia),
    _family("adafactor", _adafactor),
    _family("ema", _ema),
    _family("clip_grad", _clip_grad),
)
