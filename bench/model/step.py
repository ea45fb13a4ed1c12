"""The training step as a definition."""

from __future__ import annotations

from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

from .attention import attention, attention_backward
from .mlp import mlp, mlp_backward
from .sizes import KEEP, Sizes
from .writer import Writer


def define(fd: FusionDefinition, sizes: Sizes, dtype: torch.dtype) -> None:
    """Record the step: the loss first, then the gradients in the order of ``sizes.weights()``."""
    w = Writer(fd, sizes, from_torch(dtype))
    ops, rows, width = fd.ops, sizes.rows, sizes.width
    tokens = w.tensor((sizes.batch, sizes.tokens), DataType.Int)
    labels = w.tensor((rows,), DataType.Int)
    cos, sin = (w.tensor((sizes.tokens, sizes.head), DataType.Float) for _ in range(2))
    seed, offset = (fd.define_scalar(None, dtype=DataType.Int) for _ in range(2))
    p = {name: w.tensor(shape, w.dtype) for name, shape in sizes.weights().items()}
    grads: dict[str, Any] = {}

    # Forward.
    x0 = w.wide(ops.reshape(ops.embedding_fwd(tokens, p["embedding"]), new_shape=[rows, width]))
    attended = attention(w, x0, p, cos, sin)
    projected = ops.linear(attended.merged, p["proj"], p["proj_bias"])
    chance = ops.uniform(0.0, 1.0, [rows, width], rng_seed=seed, rng_offset=offset)
    kept = ops.mul(w.wide(ops.lt(chance, KEEP)), 1 / KEEP)
    x1 = ops.add(x0, ops.mul(w.wide(projected), kept))
    between = mlp(w, x1, p)
    x2 = ops.add(x1, w.wide(ops.linear(between.act, p["down"], p["down_bias"])))

    # The head, the loss and its gradient.
    n3, scale3 = w.rms_norm(x2, p["norm3"])
    d_logits = _loss(w, w.wide(ops.linear(n3, p["head"])), labels)
    grads["head"] = w.weight_grad(d_logits, n3)
    d_n3 = w.wide(ops.matmul(d_logits, p["head"]))
    d_x2, grads["norm3"] = w.rms_norm_backward(d_n3, x2, scale3, p["norm3"])

    # Backward.
    d_rows, found = mlp_backward(w, d_x2, between, p)
    grads.update(found)
    d_x1 = ops.add(d_x2, d_rows)
    d_proj = ops.mul(d_x1, kept)
    grads["proj_bias"] = w.over_rows(d_proj)
    d_rows, found = attention_backward(w, w.narrow(d_proj), attended, p, cos, sin)
    grads.update(found)
    ids = ops.reshape(tokens, new_shape=[rows])
    d_x0 = w.narrow(ops.add(d_x1, d_rows))
    grads["embedding"] = w.weight_grad(w.narrow(w.hits(ids)), d_x0)

    for name in p:
        fd.add_output(grads[name])


def _loss(w: Writer, logits: Any, labels: Any) -> Any:
    """Return the mean cross entropy from the step. Gives the gradient of the logits in 16 bits."""
    ops, share = w.ops, 1.0 / w.sizes.rows
    top = ops.max(logits, dims=[1], keepdim=True)
    exps = ops.sum(ops.exp(ops.sub(logits, top)), dims=[1], keepdim=True)
    normalizer = ops.add(ops.log(exps), top)
    own = ops.take_along_axis(logits, ops.broadcast(labels, [False, True]), 1)
    w.fd.add_output(ops.mul(ops.sum(ops.sub(normalizer, own)), share))
    chances = ops.exp(ops.sub(logits, normalizer))
    return w.narrow(ops.mul(ops.sub(chances, w.wide(w.hits(labels))), share))


def record(sizes: Sizes, dtype: torch.dtype) -> FusionDefinition:
    """The step as a definition."""
    with FusionDefinition() as fd:
        define(fd, sizes, dtype)
    return fd
