"""One training step of a small language model as one definition: forward, loss, every gradient.

Embedding, RMS norm, rotary attention, dropout, layer norm, a gated MLP and cross entropy, with the
backward written out by hand; ``reference`` is the same in torch, differentiated by autograd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops import philox

KEEP = 0.9
EPS = 1e-5
SEED, OFFSET = 1234, 8
FROM_TORCH = {torch.bfloat16: DataType.BFloat16, torch.float32: DataType.Float}
GELU_A, GELU_B = math.sqrt(2 / math.pi), 0.044715


@dataclass(frozen=True)
class Sizes:
    """Extents of the model and of its input; ``hidden`` is the MLP's width."""

    batch: int
    tokens: int
    width: int
    heads: int
    hidden: int
    vocabulary: int

    @property
    def rows(self) -> int:
        return self.batch * self.tokens

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.width // self.heads

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight, in the order of the inputs and of the gradients."""
        d, f, v = self.width, self.hidden, self.vocabulary
        return {
            "embedding": (v, d),
            "norm1": (d,),
            "qkv": (3 * d, d),
            "proj": (d, d),
            "proj_bias": (d,),
            "norm2": (d,),
            "norm2_bias": (d,),
            "up": (f, d),
            "up_bias": (f,),
            "gate": (f, d),
            "down": (d, f),
            "down_bias": (d,),
            "norm3": (d,),
            "head": (v, d),
        }


SMALL = Sizes(batch=2, tokens=16, width=32, heads=2, hidden=48, vocabulary=50)
REAL = Sizes(batch=2, tokens=1024, width=1024, heads=16, hidden=4096, vocabulary=32000)


def make_inputs(
    sizes: Sizes, dtype: torch.dtype, device: str = "cpu", seed: int = 0
) -> list[torch.Tensor | int]:
    """Tokens, labels, rotary tables, the dropout's seed and offset, and the weights."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(sizes.vocabulary, (2, sizes.rows), generator=generator)
    tokens, labels = ids[0].view(sizes.batch, sizes.tokens), ids[1]
    angles = torch.arange(sizes.tokens).unsqueeze(1) * 0.3 ** torch.arange(sizes.head // 2)
    tables = [torch.cat([t, t], 1).float() for t in (angles.cos(), angles.sin())]
    weights: list[torch.Tensor] = []
    for name, shape in sizes.weights().items():
        drawn = torch.randn(shape, generator=generator)
        if len(shape) == 1:
            drawn = 0.1 * drawn + float(name.startswith("norm") and not name.endswith("bias"))
        else:
            drawn = drawn if name == "embedding" else drawn / math.sqrt(shape[1])
        weights.append(drawn.to(dtype))
    tensors = [x.to(device) for x in (tokens, labels, *tables, *weights)]
    return [*tensors[:4], SEED, OFFSET, *tensors[4:]]


# --- the definition ------------------------------------------------------------------------------


class Writer:
    """Shorthands for recording: ``sizes``, and the dtype that weights and activations have."""

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
        """Of each row, as a column."""
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

    # -- pieces and their backwards ------------------------------------------------------------

    def rms_norm(self, x: Any, weight: Any) -> tuple[Any, Any]:
        """The normalized rows in the narrow dtype, and what they were scaled by."""
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
        """The normalized rows, weighted and not, and what they were scaled by."""
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
        """The function, by tanh, and its slope."""
        ops = self.ops
        squared = ops.mul(x, x)
        inner = ops.mul(ops.mul(x, GELU_A), ops.add(ops.mul(squared, GELU_B), 1.0))
        bent = ops.tanh(inner)
        half = ops.mul(ops.add(bent, 1.0), 0.5)
        steep = ops.mul(ops.add(ops.mul(squared, 3 * GELU_B), 1.0), 0.5 * GELU_A)
        rise = ops.mul(ops.mul(x, ops.sub(1.0, ops.mul(bent, bent))), steep)
        return ops.mul(x, half), ops.add(half, rise)

    def silu(self, x: Any) -> tuple[Any, Any]:
        """The function and its slope."""
        ops = self.ops
        gate = ops.sigmoid(x)
        out = ops.mul(x, gate)
        return out, ops.add(gate, ops.mul(out, ops.sub(1.0, gate)))

    def hits(self, ids: Any) -> Any:
        """Bool [rows, vocabulary]: which column each row's id names."""
        columns = self.ops.iota(self.sizes.vocabulary, dtype=DataType.Int)
        return self.ops.eq(self.ops.broadcast(ids, [False, True]), columns)


def define(fd: FusionDefinition, sizes: Sizes, dtype: torch.dtype) -> None:
    """Record the step: the loss first, then the gradients in the order of ``sizes.weights()``."""
    w = Writer(fd, sizes, FROM_TORCH[dtype])
    ops, rows, width = fd.ops, sizes.rows, sizes.width
    tokens = w.tensor((sizes.batch, sizes.tokens), DataType.Int)
    labels = w.tensor((rows,), DataType.Int)
    cos, sin = (w.tensor((sizes.tokens, sizes.head), DataType.Float) for _ in range(2))
    seed, offset = (fd.define_scalar(None, dtype=DataType.Int) for _ in range(2))
    p = {name: w.tensor(shape, w.dtype) for name, shape in sizes.weights().items()}
    grads: dict[str, Any] = {}

    # Attention.
    x0 = w.wide(ops.reshape(ops.embedding_fwd(tokens, p["embedding"]), new_shape=[rows, width]))
    n1, scale1 = w.rms_norm(x0, p["norm1"])
    qkv = ops.linear(n1, p["qkv"])
    parts = [ops.slice(qkv, [0, i * width], [rows, (i + 1) * width]) for i in range(3)]
    q, k, v = (w.to_heads(part) for part in parts)
    q, k = w.rotary(q, cos, sin), w.rotary(k, cos, sin)
    attended, total, drawn, at = ops.sdpfa_fwd(q, k, v, dropout_p=0.0, is_causal=True)
    merged = w.from_heads(attended)
    projected = ops.linear(merged, p["proj"], p["proj_bias"])
    chance = ops.uniform(0.0, 1.0, [rows, width], rng_seed=seed, rng_offset=offset)
    kept = ops.mul(w.wide(ops.lt(chance, KEEP)), 1 / KEEP)
    x1 = ops.add(x0, ops.mul(w.wide(projected), kept))

    # The MLP.
    n2, normed2, scale2 = w.layer_norm(x1, p["norm2"], p["norm2_bias"])
    raised, raised_slope = w.gelu(w.wide(ops.linear(n2, p["up"], p["up_bias"])))
    gated, gated_slope = w.silu(w.wide(ops.linear(n2, p["gate"])))
    act = w.narrow(ops.mul(raised, gated))
    x2 = ops.add(x1, w.wide(ops.linear(act, p["down"], p["down_bias"])))

    # The loss, and its gradient.
    n3, scale3 = w.rms_norm(x2, p["norm3"])
    logits = w.wide(ops.linear(n3, p["head"]))
    top = ops.max(logits, dims=[1], keepdim=True)
    exps = ops.sum(ops.exp(ops.sub(logits, top)), dims=[1], keepdim=True)
    normalizer = ops.add(ops.log(exps), top)
    own = ops.take_along_axis(logits, ops.broadcast(labels, [False, True]), 1)
    fd.add_output(ops.mul(ops.sum(ops.sub(normalizer, own)), 1.0 / rows))
    chances = ops.exp(ops.sub(logits, normalizer))
    d_logits = w.narrow(ops.mul(ops.sub(chances, w.wide(w.hits(labels))), 1.0 / rows))
    grads["head"] = w.weight_grad(d_logits, n3)
    d_n3 = w.wide(ops.matmul(d_logits, p["head"]))
    d_x2, grads["norm3"] = w.rms_norm_backward(d_n3, x2, scale3, p["norm3"])

    # The MLP's backward.
    d_down = w.narrow(d_x2)
    grads["down"] = w.weight_grad(d_down, act)
    grads["down_bias"] = w.over_rows(d_x2)
    d_act = w.wide(ops.matmul(d_down, p["down"]))
    d_up = ops.mul(ops.mul(d_act, gated), raised_slope)
    d_gate = w.narrow(ops.mul(ops.mul(d_act, raised), gated_slope))
    grads["up_bias"] = w.over_rows(d_up)
    d_up = w.narrow(d_up)
    grads["up"], grads["gate"] = w.weight_grad(d_up, n2), w.weight_grad(d_gate, n2)
    d_n2 = ops.add(ops.matmul(d_up, p["up"]), ops.matmul(d_gate, p["gate"]))
    d_rows, grads["norm2"], grads["norm2_bias"] = w.layer_norm_backward(
        w.wide(d_n2), normed2, scale2, p["norm2"]
    )
    d_x1 = ops.add(d_x2, d_rows)

    # Attention's backward.
    d_proj = ops.mul(d_x1, kept)
    grads["proj_bias"] = w.over_rows(d_proj)
    d_proj = w.narrow(d_proj)
    grads["proj"] = w.weight_grad(d_proj, merged)
    d_attended = w.to_heads(ops.matmul(d_proj, p["proj"]))
    saved = (d_attended, q, k, v, attended, total)
    d_q, d_k, d_v = ops.sdpfa_bwd(*saved, 0.0, True, drawn, at, None)
    d_q, d_k = w.rotary_backward(d_q, cos, sin), w.rotary_backward(d_k, cos, sin)
    d_qkv = ops.cat([w.from_heads(d) for d in (d_q, d_k, d_v)], dim=1)
    grads["qkv"] = w.weight_grad(d_qkv, n1)
    d_n1 = w.wide(ops.matmul(d_qkv, p["qkv"]))
    d_rows, grads["norm1"] = w.rms_norm_backward(d_n1, x0, scale1, p["norm1"])
    ids = ops.reshape(tokens, new_shape=[rows])
    d_x0 = w.narrow(ops.add(d_x1, d_rows))
    grads["embedding"] = w.weight_grad(w.narrow(w.hits(ids)), d_x0)

    for name in p:
        fd.add_output(grads[name])


def record(sizes: Sizes, dtype: torch.dtype) -> FusionDefinition:
    """The step as a definition."""
    with FusionDefinition() as fd:
        define(fd, sizes, dtype)
    return fd


# --- the same in torch ---------------------------------------------------------------------------


def loss(sizes: Sizes, inputs: list[Any], p: dict[str, torch.Tensor]) -> torch.Tensor:
    """The forward, in the dtype of the weights."""
    tokens, labels, cos, sin, seed, offset = inputs
    rows, width = sizes.rows, sizes.width
    cos, sin = cos.to(p["qkv"].dtype), sin.to(p["qkv"].dtype)

    def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * weight

    def rotary(x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat([-right, left], -1) * sin

    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.view(sizes.batch, sizes.tokens, sizes.heads, sizes.head).transpose(1, 2)

    x = F.embedding(tokens, p["embedding"]).view(rows, width)
    q, k, v = map(heads, F.linear(rms_norm(x, p["norm1"]), p["qkv"]).split(width, -1))
    attended = F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True)
    merged = attended.transpose(1, 2).reshape(rows, width)
    kept = philox.uniform((rows, width), seed, offset, device=x.device) < KEEP
    x = x + F.linear(merged, p["proj"], p["proj_bias"]) * kept / KEEP
    n = F.layer_norm(x, (width,), p["norm2"], p["norm2_bias"], EPS)
    raised = F.gelu(F.linear(n, p["up"], p["up_bias"]), approximate="tanh")
    x = x + F.linear(raised * F.silu(F.linear(n, p["gate"])), p["down"], p["down_bias"])
    return F.cross_entropy(F.linear(rms_norm(x, p["norm3"]), p["head"]), labels)


def reference(
    sizes: Sizes, inputs: list[Any], dtype: torch.dtype = torch.float64
) -> list[torch.Tensor]:
    """The loss and the gradients by autograd, the weights converted to ``dtype`` before."""
    leaves = [x.detach().to(dtype).requires_grad_() for x in inputs[6:]]
    found = loss(sizes, inputs[:6], dict(zip(sizes.weights(), leaves, strict=True)))
    return [found.detach(), *torch.autograd.grad(found, leaves)]
