"""The row of a value put in memory for later kernels: ``materialize``, written by a pass."""

from __future__ import annotations

import torch

from ..ir import TensorType
from .forms import Materialize
from .shape_rules import ARG, tensor
from .table import Call, Op


def _infer(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    return (tensor(arg.dims, arg.dtype),)


INTERNAL: tuple[Op, ...] = (
    Op(
        "materialize",
        (ARG,),
        "The operand, stored in memory by the kernel that computes it.",
        "view",
        Materialize(),
        _infer,
        torch.clone,
    ),
)
"""Rows that only passes write: ``fd.ops`` does not have them."""
