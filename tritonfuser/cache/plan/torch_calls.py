"""Library ops in a plan: functions of a node's operands, which torch or a kernel here computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...errors import DefinitionError, TritonFuserError
from ...ir import Arg, Const, Node, Value
from ...lowering.library_kernels.found import library_kernel
from ...ops.builder import as_call
from ...ops.table import Call
from ..keys.signature import is_aligned

Strides = tuple[tuple[int, ...], ...]


def library_call(node: Node, strides: Strides) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The node as a function of its operands' tensors and numbers, in order.

    Parameters
    ----------
    strides : tuple
        The strides each result must have: kernels behind it count on them.
    """
    call = as_call(node)
    dtypes = [out.dtype.info.torch for out in node.outs]

    def run(*operands: Any) -> tuple[torch.Tensor, ...]:
        found = _computed(call, node, operands)
        results = found if isinstance(found, tuple) else (found,)
        return tuple(
            _laid_out(result.to(dtype), wanted)
            for result, dtype, wanted in zip(results, dtypes, strides, strict=True)
        )

    return run


def scalar_call(node: Node) -> Callable[..., Any]:
    """A node of scalars alone as a function of its operands' numbers, in order."""
    call = as_call(node)

    def run(*operands: Any) -> Any:
        found = _computed(call, node, operands)
        return found.item() if isinstance(found, torch.Tensor) else found

    return run


_OF_DEVICES = tuple(
    getattr(torch, name)
    for name in ("OutOfMemoryError", "AcceleratorError")
    if hasattr(torch, name)
)
"""Errors of torch that are no fault of the call they are raised in."""


def _computed(call: Call, node: Node, operands: tuple[Any, ...]) -> Any:
    """What torch or a kernel makes of the operands; its errors as the op's, at the user's line."""
    given = iter(operands)
    arguments = [_argument(arg, given) for arg in node.args]
    compute = library_kernel(node.op, arguments, call.attrs) or call.op.oracle
    try:
        # A definition says in which dtype it multiplies, whatever torch's mode.
        with torch._C._DisableAutocast():
            return compute(*arguments, **call.attrs)
    except TritonFuserError as error:
        raise error.located(node.loc) from None
    except _OF_DEVICES:
        raise
    except Exception as error:
        raise DefinitionError(
            f"{node.op}: torch does not compute it for these operands: {error}".rstrip(),
            loc=node.loc,
            hint="Look at the values of scalar operands, and at the shapes and dtypes of tensors.",
        ) from error


def _argument(arg: Arg, given: Iterator[Any]) -> Any:
    if isinstance(arg, tuple):
        return tuple(_argument(item, given) for item in arg)
    if isinstance(arg, Value):
        return next(given)
    return arg.value if isinstance(arg, Const) else None


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor with these strides at a multiple of 16 bytes, copied only if it has others."""
    if tensor.numel() == 0 or (tensor.stride() == strides and is_aligned(tensor)):
        return tensor
    laid = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return laid.copy_(tensor)
