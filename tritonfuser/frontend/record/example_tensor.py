"""Checks of the tensor that ``from_pytorch`` takes as an example of an input."""

from __future__ import annotations

from typing import Any

import torch

from ...cache.keys.storage_problems import form_problem
from ...dtypes import DataType, data_type, dtype_advice
from ...errors import ArgumentError, DefinitionError
from ...ops.arguments import shown
from ..vocabulary.location import user_line


def refuse_no_example(tensor: Any, static_sizes: Any) -> None:
    """Raise ArgumentError where the arguments of ``from_pytorch`` have wrong types."""
    if not isinstance(tensor, torch.Tensor):
        raise ArgumentError(
            f"from_pytorch(): incompatible function arguments: expected a tensor, "
            f"got {shown(tensor)}"
        )
    if not isinstance(static_sizes, bool):
        raise ArgumentError(
            "from_pytorch(): incompatible function arguments: static_sizes must be True or "
            f"False, got {shown(static_sizes)}"
        )


def dtype_of_example(tensor: torch.Tensor) -> DataType:
    """The dtype of an input like ``tensor``.

    Raises
    ------
    DefinitionError
        Kernels cannot read its elements, or there is no DataType for its dtype.
    """
    problem = form_problem(tensor)
    if problem is not None:
        message, hint = problem
        text = message.replace("INPUT", "from_pytorch: expected the tensor")
        raise DefinitionError(text, loc=user_line(), hint=hint)
    dtype = data_type(tensor.dtype)
    if dtype is None:
        raise DefinitionError(
            f"from_pytorch: there is no DataType for {tensor.dtype}",
            loc=user_line(),
            hint=dtype_advice(tensor.dtype),
        )
    return dtype
