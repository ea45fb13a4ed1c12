"""The cases as Liger-Kernel computes them: ``(liger_kernel.ops, inputs) -> thunk``.

The inputs are those of the definition. Liger's backwards run through autograd, and some overwrite
their arguments, so each thunk owns copies of its tensors.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F

from .building_blocks import EPS
from .case import Run

Tensor = torch.Tensor


def available() -> bool:
    """Whether Liger-Kernel is installed."""
    return importlib.util.find_spec("liger_kernel") is not None


def load() -> ModuleType:
    """Import ``liger_kernel.ops``; deferred because the import takes seconds."""
    return importlib.import_module("liger_kernel.ops")


def _leaves(*tensors: Tensor) -> list[Tensor]:
    return [t.detach().clone().requires_grad_() for t in tensors]


def _backward(outputs: Any, leaves: Sequence[Tensor], grads: Any) -> Run:
    return partial(torch.autograd.grad, outputs, leaves, grads, retain_graph=True)


def softmax(ops: ModuleType, inputs: list[Tensor]) -> Run:
    return partial(ops.LigerSoftmaxFunction.apply, *inputs)


def softmax_backward(ops: ModuleType, inputs: list[Tensor]) -> Run:
    grad = inputs[0]
    leaves = _leaves(torch.randn_like(grad))
    return _backward(ops.LigerSoftmaxFunction.apply(*leaves), leaves, grad)


def layer_norm(ops: ModuleType, inputs: list[Tensor]) -> Run:
    return partial(ops.LigerLayerNormFunction.apply, *inputs, EPS)


def layer_norm_backward(ops: ModuleType, inputs: list[Tensor]) -> Run:
    grad, x, _, _, weight = inputs
    leaves = _leaves(x, weight, torch.zeros_like(weight))
    return _backward(ops.LigerLayerNormFunction.apply(*leaves, EPS), leaves, grad)


def rms_norm(ops: ModuleType, inputs: list[Tensor]) -> Run:
    return partial(ops.LigerRMSNormFunction.apply, *inputs, EPS)


def rms_norm_backward(ops: ModuleType, inputs: list[Tensor]) -> Run:
    grad, x, _, weight = inputs
    leaves = _leaves(x, weight)
    out = ops.LigerRMSNormFunction.apply(*leaves, EPS, 0.0, "llama", False)
    return _backward(out, leaves, grad)


def add_rms_norm(ops: ModuleType, inputs: list[Tensor]) -> Run:
    return partial(ops.LigerFusedAddRMSNormFunction.apply, *inputs, EPS)


def add_rms_norm_backward(ops: ModuleType, inputs: list[Tensor]) -> Run:
    grad, x, _, weight, further = inputs
    leaves = _leaves(x, torch.zeros_like(x), weight)
    outputs = ops.LigerFusedAddRMSNormFunction.apply(*leaves, EPS)
    return _backward(outputs, leaves, (grad, further))


def group_norm_silu(groups: int, ops: ModuleType, inputs: list[Tensor]) -> Run:
    x, weight, bias = inputs
    norm = partial(ops.LigerGroupNormFunction.apply, x, weight, bias, x.shape[1], groups, EPS)
    return lambda: F.silu(norm())


def group_norm_silu_backward(groups: int, ops: ModuleType, inputs: list[Tensor]) -> Run:
    grad, x, weight, bias, *_ = inputs
    leaves = _leaves(x, weight, bias)
    out = F.silu(ops.LigerGroupNormFunction.apply(*leaves, x.shape[1], groups, EPS))
    return _backward(out, leaves, grad)


def silu_mul(ops: ModuleType, inputs: list[Tensor]) -> Run:
    return partial(ops.LigerSiLUMulFunction.apply, *inputs)


def silu_mul_backward(ops: ModuleType, inputs: list[Tensor]) -> Run:
    grad, gate, up = inputs
    leaves = _leaves(gate, up)
    return _backward(ops.LigerSiLUMulFunction.apply(*leaves), leaves, grad)


def _heads_first(*tensors: Tensor) -> list[Tensor]:
    """View [batch, sequence, heads, width] as [batch, heads, sequence, width]."""
    return [t.transpose(1, 2) for t in tensors]


def rotary(ops: ModuleType, inputs: list[Tensor]) -> Run:
    q, k, cos, sin = inputs
    moved = _heads_first(q.clone(), k.clone())
    return partial(ops.LigerRopeFunction.apply, *moved, cos, sin)


def rotary_backward(ops: ModuleType, inputs: list[Tensor]) -> Run:
    q, k, cos, sin = inputs
    leaves = _heads_first(*(t.clone() for t in (q, k)))
    leaves = [t.requires_grad_() for t in leaves]
    outputs = ops.LigerRopeFunction.apply(*leaves, cos, sin)
    return _backward(outputs, leaves, _heads_first(q.clone(), k.clone()))


def embedding(ops: ModuleType, inputs: list[Tensor]) -> Run:
    table, index = inputs
    return partial(ops.LigerEmbeddingFunction.apply, table, index)


def cross_entropy(ops: ModuleType, inputs: list[Tensor]) -> Run:
    logits, labels = inputs
    rest = (None, -100, 0.0, 0.0, "mean", None, False, False, False)
    return partial(ops.LigerCrossEntropyFunction.apply, logits, labels, *rest)
