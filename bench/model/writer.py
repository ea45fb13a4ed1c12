"""Layers of the model and their backwards, as recorded."""

from __future__ import annotations

import math
from typing import Any

from tritonfuser import DataType, FusionDefinition

from .sizes import EPS, Sizes

GELU_A, GELU_B = math.sqrt(2 / math.pi), 0.044715


class Writer:
    """Shorthands for recording with given sizes and a dtype of weights and activations."""

    def __init__(self, fd: FusionDefinition, sizes: Sizes, dtype: DataType) -> None:
        self.fd, self.sizes, self.dtype = fd, sizes, dtype
        self.ops = fd.ops

    def tensor(self, shape: tuple[int, ...], dtype: DataType) -> Any:
        return self.fd.define_tensor(shape=list(shape), contiguity=True, dtype=dtype)

    def wide(self, x: Any) -> Any:
        return self.ops.cast(x, dtype=DataType.Float)

    def narrow(self, x: Any) -> Any:
        return self.ops.cast(x, dtype=self.dtype)

    def mean(self, x: Any) -> Any:
        """A reduction of each row, as a column."""
        return self.ops.mul(self.ops.sum(x, dims=[1], keepdim=True), 1.0 / self.sizes.width)

    def over_rows(self, x: Any) -> Any:
        """A gradient summed over all rows, in the weights' dtype."""
        return self.narrow(self.ops.sum(x, dims=[0]))

    def weight_grad(self, grad: Any, x: Any) -> Any:
        return self.ops.matmul(self.ops.permute(grad, dims=[1, 0]), x)

    def to_heads(self, x: Any) -> Any:
        """[rows, width] as [batch, heads, tokens, head]."""
        s = self.sizes
        cut = self.ops.reshape(x, new_shape=[s.batch, s.tokens, s.heads, s.head])
        return self.ops.permute(cut, dims=[0, 2, 1, 3])

    def from_heads(self, x: Any) -> Any:
        turned = self.ops.permute(x, dims=[0, 2, 1, 3])
        return self.ops.reshape(turned, new_shape=[self.sizes.rows, self.sizes.width])

    # -- layers and their backwards ------------------------------------------------------------

    def rms_norm(self, x: Any, weight: Any) -> tuple[Any, Any]:
        """RMS norm: the normalized rows in the 16-bit dtype, and their scale factors."""
        ops = self.ops
        scale = ops.rsqrt(ops.add(self.mean(ops.mul(x, x)), EPS))
        return self.narrow(ops.mul(ops.mul(x, scale), self.wide(weight))), scale

    def rms_norm_backward(self, grad: Any, x: Any, scale: Any, weight: Any) -> tuple[Any, Any]:
        """Gradients of the rows and of the weight."""
        ops = self.ops
        normed = ops.mul(x, scale)
        inner = ops.mul(grad, self.wide(weight))
        along = ops.mul(normed, self.mean(ops.mul(inner, normed)))
        return ops.mul(scale, ops.sub(inner, along)), self.over_rows(ops.mul(grad, normed))

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
        """Layer norm: the rows with and without weights, and their scale factors."""
        ops = self.ops
        var, mean = ops.var_mean(x, dims=[1], correction=0, keepdim=True)
        scale = ops.rsqrt(ops.add(var, EPS))
        normed = ops.mul(ops.sub(x, mean), scale)
        out = ops.add(ops.mul(normed, self.wide(weight)), self.wide(bias))
        return self.narrow(out), normed, scale

    def layer_norm_backward(
        self, grad: Any, normed: Any, scale: Any, weight: Any
    ) -> tuple[Any, ...]:
        """Gradients of the rows, the weight and the bias."""
        ops = self.ops
        inner = ops.mul(grad, self.wide(weight))
        along = ops.mul(normed, self.mean(ops.mul(inner, normed)))
        rows = ops.mul(scale, ops.sub(ops.sub(inner, self.mean(inner)), along))
        return rows, self.over_rows(ops.mul(grad, normed)), self.over_rows(grad)

    def halves(self, x: Any) -> tuple[Any, Any]:
        s, half = self.sizes, self.sizes.head // 2
        shape = [s.batch, s.heads, s.tokens]
        left = self.ops.slice(x, [0, 0, 0, 0], [*shape, half])
        return left, self.ops.slice(x, [0, 0, 0, half], [*shape, s.head])

    def rotary(self, x: Any, cos: Any, sin: Any) -> Any:
        ops, x = self.ops, self.wide(x)
        left, right = self.halves(x)
        turned = ops.cat([ops.neg(right), left], dim=-1)
        return self.narrow(ops.add(ops.mul(x, cos), ops.mul(turned, sin)))

    def rotary_backward(self, grad: Any, cos: Any, sin: Any) -> Any:
        ops, grad = self.ops, self.wide(grad)
        left, right = self.halves(ops.mul(grad, sin))
        turned = ops.cat([right, ops.neg(left)], dim=-1)
        return self.narrow(ops.add(ops.mul(grad, cos), turned))

    def gelu(self, x: Any) -> tuple[Any, Any]:
        """GELU by tanh, and its derivative."""
        ops = self.ops
        squared = ops.mul(x, x)
        inner = ops.mul(ops.mul(x, GELU_A), ops.add(ops.mul(squared, GELU_B), 1.0))
        bent = ops.tanh(inner)
        half = ops.mul(ops.add(bent, 1.0), 0.5)
        steep = ops.mul(ops.add(ops.mul(squared, 3 * GELU_B), 1.0), 0.5 * GELU_A)
        rise = ops.mul(ops.mul(x, ops.sub(1.0, ops.mul(bent, bent))), steep)
        return ops.mul(x, half), ops.add(half, rise)

    def silu(self, x: Any) -> tuple[Any, Any]:
        """SiLU and its derivative."""
        ops = self.ops
        gate = ops.sigmoid(x)
        out = ops.mul(x, gate)
        return out, ops.add(gate, ops.mul(out, ops.sub(1.0, gate)))

    def hits(self, ids: Any) -> Any:
        """One-hot bool [rows, vocabulary] of each row's id."""
        columns = self.ops.iota(self.sizes.vocabulary, dtype=DataType.Int)
        return self.ops.eq(self.ops.broadcast(ids, [False, True]), columns)
