"""Which tensors have memory that a kernel may read, and what to say of those that have none.

A fake or meta tensor is called abstract: it has a shape, strides and a dtype, and no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _python_dispatch

from ...errors import InputError

PLAIN_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter})
"""Classes of tensors whose memory is what their methods say."""

DEVICE_TYPES = ("cpu", "cuda")
"""Types of the devices whose memory kernels read."""

Problem = tuple[str, str]
"""Message and hint; ``INPUT`` in the message stands for the input's place and name."""

_functorch: Any = torch._C._functorch
_modes: Any = torch._C._TorchDispatchModeKey
_TRACES = "Call it outside of the trace, or wrap the call as an op with torch.library.custom_op; "


def is_trusted(kind: type) -> bool:
    """Whether tensors of a class are their own memory: none of them computes in Python."""
    if kind in PLAIN_CLASSES:
        return True
    disabled = torch._C._disabled_torch_dispatch_impl
    return issubclass(kind, torch.Tensor) and kind.__torch_dispatch__ is disabled


def check_class(given: object) -> None:
    """Raise a TypeError for an object whose class may hide where its elements are."""
    if not is_trusted(type(given)):
        raise TypeError(f"{type(given).__name__} is not a class of tensors with memory")


def empty_address(tensor: torch.Tensor) -> int:
    """The address to assume of a tensor at address 0: it has no elements.

    Raises
    ------
    TypeError
        It has elements, and so no memory.
    """
    if tensor.numel():
        raise TypeError("the tensor has no memory")
    return 0


def is_abstract(given: object) -> bool:
    """Whether it is a fake or a meta tensor."""
    return isinstance(given, torch.Tensor) and (isinstance(given, FakeTensor) or given.is_meta)


def fake_mode() -> FakeTensorMode | None:
    """The active mode in which torch makes fake tensors."""
    found: FakeTensorMode | None = torch._C._get_dispatch_mode(_modes.FAKE)
    return found


def modes_active() -> bool:
    """Whether a thread intercepts ops of torch in Python: what they allocate may have no memory."""
    return bool(_python_dispatch._is_in_torch_dispatch_mode)


def is_abstract_run(inputs: Sequence[Any]) -> bool:
    """Whether outputs are to have no memory: inputs, or without any the active mode, say so."""
    tensors = [given for given in inputs if isinstance(given, torch.Tensor)]
    return any(map(is_abstract, tensors)) or (not tensors and fake_mode() is not None)


# --- errors --------------------------------------------------------------------------------------


def tracing_error() -> InputError | None:
    """The error for a run while torch records ops: it would not be in the record."""
    for key, name in ((_modes.PROXY, "make_fx"), (_modes.FUNCTIONAL, "functionalization")):
        if torch._C._get_dispatch_mode(key) is not None:
            return InputError(
                f"a definition was run inside a trace by {name}, which records ops of torch and "
                "does not see the kernels of a definition",
                hint=_TRACES + "its register_fake may run the definition too.",
            )
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
    found = _transform_problem(tensor) or _class_problem(tensor)
    if found is not None:
        return found
    if tensor.device.type not in DEVICE_TYPES:
        return (
            f"INPUT to be on the CPU or on a GPU of torch.cuda, but got a tensor on "
            f"{tensor.device}",
            "Move it with t.cpu() or t.cuda().",
        )
    if not tensor.data_ptr() and tensor.numel():
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


def _class_problem(tensor: torch.Tensor) -> Problem | None:
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
    if not is_trusted(type(tensor)):
        return (
            f"INPUT to be a torch.Tensor, but got a {name}, a subclass that computes by "
            "__torch_dispatch__ and need not hold its elements as its shape says",
            "Pass the tensor that it holds: for a DTensor t.to_local(), or run the definition "
            "with tritonfuser.integrations.dtensor.execute_with_dtensors.",
        )
    return None
