"""Definitions that the tests of the passes share."""

from __future__ import annotations

from math import prod
from typing import Any

import torch


def softmax(fd: Any, x: Any, dim: int = -1) -> Any:
    top = fd.ops.max(x, [dim], keepdim=True)
    powers = fd.ops.exp(fd.ops.sub(x, top))
    return fd.ops.div(powers, fd.ops.sum(powers, [dim], keepdim=True))


def normalized(fd: Any, x: Any, dims: list[int]) -> Any:
    """Minus mean, over standard deviation."""
    var, mean = fd.ops.var_mean(x, dims, correction=0, keepdim=True)
    return fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))


def layer_norm(fd: Any, x: Any, w: Any, b: Any) -> Any:
    return fd.ops.add(fd.ops.mul(normalized(fd, x, [-1]), w), b)


def rms_norm(fd: Any, x: Any, w: Any) -> Any:
    mean = fd.ops.mul(fd.ops.sum(fd.ops.mul(x, x), [-1], keepdim=True), 1 / 64)
    return fd.ops.mul(fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(mean, 1e-5))), w)


def gelu(fd: Any, x: Any) -> Any:
    cube = fd.ops.mul(fd.ops.mul(x, x), x)
    inner = fd.ops.mul(0.7978845608, fd.ops.add(x, fd.ops.mul(0.044715, cube)))
    return fd.ops.mul(fd.ops.mul(x, 0.5), fd.ops.add(1.0, fd.ops.tanh(inner)))


def row_mean(fd: Any, x: Any, width: int) -> Any:
    return fd.ops.mul(fd.ops.sum(x, [1], keepdim=True), 1.0 / width)


def layer_norm_backward(fd: Any, x: Any, dy: Any, w: Any) -> tuple[Any, ...]:
    """For rows of 64."""
    var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
    scale = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
    hat = fd.ops.mul(fd.ops.sub(x, mean), scale)
    grad = fd.ops.mul(dy, w)
    along = fd.ops.mul(hat, row_mean(fd, fd.ops.mul(grad, hat), 64))
    dx = fd.ops.mul(scale, fd.ops.sub(fd.ops.sub(grad, row_mean(fd, grad, 64)), along))
    return dx, fd.ops.sum(fd.ops.mul(dy, hat), [0]), fd.ops.sum(dy, [0])


def rms_norm_backward(fd: Any, x: Any, dy: Any, w: Any) -> tuple[Any, ...]:
    """For rows of 64."""
    scale = fd.ops.rsqrt(fd.ops.add(row_mean(fd, fd.ops.mul(x, x), 64), 1e-5))
    hat, grad = fd.ops.mul(x, scale), fd.ops.mul(dy, w)
    along = fd.ops.mul(hat, row_mean(fd, fd.ops.mul(grad, hat), 64))
    return fd.ops.mul(scale, fd.ops.sub(grad, along)), fd.ops.sum(fd.ops.mul(dy, hat), [0])


def alternating(steps: int) -> Any:
    """Row and column sums in turn, each added to what the next one sums."""

    def body(fd: Any, x: Any) -> Any:
        for step in range(steps):
            total = fd.ops.sum(x, [1 - step % 2], keepdim=True)
            x = fd.ops.tanh(fd.ops.add(x, total))
        return x

    return body


def meta(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor without memory."""
    return torch.empty(sizes, dtype=dtype, device="meta")


def noise(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed + sum(sizes)))


def group_norm_backward(shape: tuple[int, ...]) -> Any:
    """Of images [n, g * c, h, w] in g groups; given are mean and 1 / deviation of [n, g]."""
    n, g, c, *pixels = shape
    count = max(c * prod(pixels), 1)

    def body(fd: Any, x: Any, dy: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, ...]:
        rows, dy = (fd.ops.reshape(v, list(shape)) for v in (x, dy))
        w = fd.ops.reshape(w, [1, g, c, *(1 for _ in pixels)])
        mean, rstd = (fd.ops.reshape(v, [n, g, 1, *(1 for _ in pixels)]) for v in (mean, rstd))
        hat = fd.ops.mul(fd.ops.sub(rows, mean), rstd)
        inside, all_but = [2, *range(3, 3 + len(pixels))], [0, *range(3, 3 + len(pixels))]

        def along(v: Any) -> Any:
            return fd.ops.mul(fd.ops.sum(v, inside, keepdim=True), 1.0 / count)

        grad = fd.ops.mul(dy, w)
        centred = fd.ops.sub(
            fd.ops.sub(grad, along(grad)), fd.ops.mul(hat, along(fd.ops.mul(grad, hat)))
        )
        dx = fd.ops.reshape(fd.ops.mul(rstd, centred), [n, g * c, *pixels])
        return dx, *(fd.ops.sum(v, all_but) for v in (fd.ops.mul(dy, hat), dy))

    return body
