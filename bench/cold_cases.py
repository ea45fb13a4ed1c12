"""The functions whose first run is timed: small ones, and one of several kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition

ROWS, COLUMNS = 4096, 2048
MATRIX, ROW = (ROWS, COLUMNS), (COLUMNS,)
Body = Callable[..., Any]


@dataclass(frozen=True)
class ColdCase:
    """A definition by its body, ``body(ops, *floats) -> float(s)``, and its BFloat16 inputs."""

    name: str
    body: Body
    shapes: tuple[tuple[int, ...], ...]

    def record(self) -> FusionDefinition:
        """Tensors cast to Float, the body, the results cast back."""
        with FusionDefinition() as fd:
            given = [
                fd.define_tensor(shape=list(s), contiguity=True, dtype=DataType.BFloat16)
                for s in self.shapes
            ]
            made = self.body(fd.ops, *(fd.ops.cast(x, dtype=DataType.Float) for x in given))
            for result in made if isinstance(made, tuple) else (made,):
                fd.add_output(fd.ops.cast(result, dtype=DataType.BFloat16))
        return fd

    def inputs(self, device: str) -> list[torch.Tensor]:
        return [torch.ones(shape, dtype=torch.bfloat16, device=device) for shape in self.shapes]


def _softmax(ops: Any, x: Any) -> Any:
    exps = ops.exp(ops.sub(x, ops.max(x, dims=[1], keepdim=True)))
    return ops.div(exps, ops.sum(exps, dims=[1], keepdim=True))


def _mean(ops: Any, x: Any) -> Any:
    return ops.mul(ops.sum(x, dims=[1], keepdim=True), 1 / COLUMNS)


def _layernorm_backward(ops: Any, grad: Any, x: Any, weight: Any) -> Any:
    var, mean = ops.var_mean(x, dims=[1], correction=0, keepdim=True)
    scale = ops.rsqrt(ops.add(var, 1e-5))
    normed = ops.mul(ops.sub(x, mean), scale)
    inner = ops.mul(grad, weight)
    along = ops.mul(normed, _mean(ops, ops.mul(inner, normed)))
    rows = ops.mul(scale, ops.sub(ops.sub(inner, _mean(ops, inner)), along))
    return rows, ops.sum(ops.mul(grad, normed), dims=[0]), ops.sum(grad, dims=[0])


def _gelu_bias(ops: Any, x: Any, bias: Any) -> Any:
    x = ops.add(x, bias)
    inner = ops.mul(ops.mul(x, 0.79788456), ops.add(ops.mul(ops.mul(x, x), 0.044715), 1.0))
    return ops.mul(ops.mul(x, 0.5), ops.add(ops.tanh(inner), 1.0))


def _pointwise(ops: Any, x: Any, y: Any) -> Any:
    for place in range(10):
        x = ops.sin(ops.add(ops.mul(x, 0.1 * place + 0.5), y))
    return x


def _several(ops: Any, x: Any, weight: Any) -> Any:
    """Reductions along both dims that depend on one another: a kernel for each."""
    found = []
    for _ in range(2):
        x = ops.div(x, ops.add(ops.sum(ops.abs(x), dims=[0], keepdim=True), 1.0))
        x = ops.mul(_softmax(ops, x), weight)
        found.append(ops.sum(ops.mul(x, x)))
    return x, *found


CASES = {
    case.name: case
    for case in (
        ColdCase("softmax", _softmax, (MATRIX,)),
        ColdCase("layernorm_backward", _layernorm_backward, (MATRIX, MATRIX, ROW)),
        ColdCase("gelu_bias", _gelu_bias, (MATRIX, ROW)),
        ColdCase("pointwise_30", _pointwise, (MATRIX, MATRIX)),
        ColdCase("several_kernels", _several, (MATRIX, ROW)),
    )
}
