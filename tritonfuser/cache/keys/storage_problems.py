"""Errors for tensors whose memory kernels cannot read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...errors import InputError
from .storage import (
    DEVICE_TYPES,
    MODES,
    PLAIN_CLASSES,
    end_bytes,
    fake_mode,
    false_attributes,
    is_abstract,
    is_abstract_run,
    is_scripting,
    is_trusted,
)

Problem = tuple[str, str]
"""Message and hint; ``INPUT`` in the message stands for the input's place and name."""

_functorch: Any = torch._C._functorch
_pre_dispatch_mode: Any = torch._ops._get_dispatch_mode_pre_dispatch
_TRACES = "Call it outside of the trace, or wrap the call as an op with torch.library.custom_op; "


def tracing_error() -> InputError | None:
    """The error for a run while torch records ops: it would not be in the record."""
    name = _tracer()
    if name is None:
        return None
    return InputError(
        f"a definition was run inside a trace by {name}, which records ops of torch and "
        "does not see the kernels of a definition",
        hint=_TRACES + "its register_fake may run the definition too.",
    )


def _tracer() -> str | None:
    """What records the ops of this thread."""
    if is_scripting():
        return "torch.jit"
    for key, name in ((MODES.PROXY, "make_fx"), (MODES.FUNCTIONAL, "functionalization")):
        if torch._C._get_dispatch_mode(key) is not None:
            return name
        if _pre_dispatch_mode(key) is not None:  # before autograd: other modes, another stack
            return f"torch.export or {name}"
    return None


def memory_error(inputs: Sequence[Any]) -> InputError | None:
    """The error for a run of kernels while torch makes fake tensors."""
    if fake_mode() is None or is_abstract_run(inputs):
        return None
    return InputError(
        "a definition was run on tensors with memory inside a FakeTensorMode, where outputs "
        "cannot be allocated",
        hint="Leave the mode, or pass fake tensors: mode.from_tensor(t).",
    )


def abstract_problem(tensor: torch.Tensor) -> Problem | None:
    """What is wrong with a fake or meta tensor where kernels are to be compiled or run."""
    if not is_abstract(tensor):
        return None
    what = "a FakeTensor" if isinstance(tensor, FakeTensor) else "a meta tensor"
    return (
        f"INPUT to be a tensor with memory, but got {what}",
        "fd.run(inputs) takes fake and meta tensors and gives such outputs; fd.kernels and "
        "fd.explain with arch=, and fd.compile_for, show kernels for them.",
    )


def storage_problem(tensor: torch.Tensor) -> Problem | None:
    """Why kernels cannot read a tensor that is neither fake nor meta; None where they can."""
    if is_abstract(tensor):
        return None
    found = _transform_problem(tensor) or form_problem(tensor) or _class_problem(tensor)
    if found is not None:
        return found
    if tensor.device.type not in DEVICE_TYPES:
        return (
            f"INPUT to be on the CPU or on a GPU of torch.cuda, but got a tensor on "
            f"{tensor.device}",
            "Move it with t.cpu() or t.cuda().",
        )
    freed = not tensor.data_ptr() and tensor.numel()
    if freed or end_bytes(tensor) > tensor.untyped_storage().nbytes():
        return (
            f"INPUT to be a tensor with memory, but got a {type(tensor).__name__} of shape "
            f"{list(tensor.shape)} whose storage holds {tensor.untyped_storage().nbytes()} bytes",
            "Its storage was freed or resized: restore it before the run.",
        )
    return None


def _transform_problem(tensor: torch.Tensor) -> Problem | None:
    """Tensors inside of a transform of torch.func."""
    if _functorch.is_batchedtensor(tensor):
        return (
            f"INPUT to be a tensor with memory, but got a {type(tensor).__name__} batched by "
            "torch.vmap",
            "Define the tensor with one more dim and pass the whole batch, outside of torch.vmap; "
            "or wrap the run with torch.library.custom_op and register_vmap.",
        )
    if _functorch.is_gradtrackingtensor(tensor):
        return (
            f"INPUT to be a tensor with memory, but got a {type(tensor).__name__} that "
            "torch.func.grad, vjp or jvp differentiates",
            "A run records nothing for autograd: wrap it in a torch.autograd.Function whose "
            "backward runs a definition of the gradient.",
        )
    if _functorch.is_functorch_wrapped_tensor(tensor) or torch._is_functional_tensor(tensor):
        return (
            f"INPUT to be a tensor with memory, but got a functional {type(tensor).__name__} of "
            "torch.func.functionalize",
            _TRACES + "register_fake gives the shapes.",
        )
    return None


def form_problem(tensor: torch.Tensor) -> Problem | None:
    """What is wrong with a tensor that is nested, sparse or quantized."""
    name = type(tensor).__name__
    if tensor.is_nested:
        return (
            f"INPUT to be a strided tensor, but got a nested {name}",
            "Pass t.to_padded_tensor(0.0), or t.values() and t.offsets() as inputs of their own.",
        )
    if tensor.layout is not torch.strided:
        return (
            f"INPUT to be a strided tensor, but got a {name} of layout {tensor.layout}",
            "Pass t.to_dense().",
        )
    if tensor.is_quantized:
        return (
            f"INPUT to be a tensor of plain numbers, but got a quantized {name} of dtype "
            f"{tensor.dtype}",
            "Pass t.dequantize().",
        )
    return None


def _class_problem(tensor: torch.Tensor) -> Problem | None:
    name = type(tensor).__name__
    if not is_trusted(type(tensor)):
        return (
            f"INPUT to be a torch.Tensor, but got a {name}, a subclass that computes by "
            "__torch_dispatch__ and need not hold its elements as its shape says",
            "Pass the tensor that it holds: for a DTensor t.to_local(), or run the definition "
            "with tritonfuser.integrations.dtensor.execute_with_dtensors.",
        )
    if type(tensor) not in PLAIN_CLASSES and (false := false_attributes(tensor)):
        return (
            f"INPUT to be a torch.Tensor, but got a {name}, a subclass whose {', '.join(false)} "
            "is not what torch says of the same tensor",
            "Pass t.as_subclass(torch.Tensor).",
        )
    return None
