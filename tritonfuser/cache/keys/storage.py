"""Which tensors have memory that a kernel may read: subclasses, fake and meta tensors, modes.

A fake or meta tensor is called abstract: it has a shape, strides and a dtype, and no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _python_dispatch

PLAIN_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter})
"""Classes of tensors whose memory is what their methods say."""

DEVICE_TYPES = ("cpu", "cuda")
"""Types of the devices whose memory kernels read."""

_FACTS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("shape", lambda t: t.shape),
    ("size()", lambda t: t.size()),
    ("stride()", lambda t: t.stride()),
    ("storage_offset()", lambda t: t.storage_offset()),
    ("numel()", lambda t: t.numel()),
    ("dtype", lambda t: t.dtype),
    ("device", lambda t: t.device),
    ("data_ptr()", lambda t: t.data_ptr()),
    ("is_neg()", lambda t: t.is_neg()),
    ("is_conj()", lambda t: t.is_conj()),
)
"""What keys, guards and plans ask of a tensor."""

MODES: Any = torch._C._TorchDispatchModeKey
"""Kinds of modes in which torch intercepts ops."""


def is_trusted(kind: type) -> bool:
    """Whether tensors of a class are their own memory: none of them computes in Python."""
    if kind in PLAIN_CLASSES:
        return True
    disabled = torch._C._disabled_torch_dispatch_impl
    return issubclass(kind, torch.Tensor) and kind.__torch_dispatch__ is disabled


def is_its_own_memory(given: object) -> bool:
    """Whether an object is a tensor whose attributes say where its elements are."""
    if type(given) in PLAIN_CLASSES:
        return True
    return is_trusted(type(given)) and not false_attributes(given)


def check_class(given: object) -> None:
    """Raise a TypeError for an object whose class may hide where its elements are."""
    if not is_its_own_memory(given):
        raise TypeError(f"{type(given).__name__} is not a class of tensors with memory")


def false_attributes(given: Any) -> list[str]:
    """The attributes that a subclass reports otherwise than torch does for the same tensor."""
    with torch._C.DisableTorchFunctionSubclass():
        plain = torch.Tensor.as_subclass(given, torch.Tensor)
    false = []
    for name, value in _FACTS:
        try:
            same = value(given) == value(plain)
        except Exception:  # it is the user's code that fails
            same = False
        if not same:
            false.append(name)
    return false


def check_reach(tensor: torch.Tensor) -> None:
    """Raise a TypeError for a tensor with elements behind the end of its storage.

    It is asked of tensors on the CPU, beside whose kernels it costs nothing, and of others where
    ``TRITONFUSER_CHECK`` says so.
    """
    if end_bytes(tensor) > tensor.untyped_storage().nbytes():
        raise TypeError("the tensor's storage was resized")


def end_bytes(tensor: torch.Tensor) -> int:
    """Where the last element ends, in bytes from the begin of the storage; 0 of no elements."""
    if not tensor.numel():
        return 0
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return int(tensor.storage_offset() + last + 1) * tensor.element_size()


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
    found: FakeTensorMode | None = torch._C._get_dispatch_mode(MODES.FAKE)
    return found


def modes_active() -> bool:
    """Whether torch ops are intercepted or recorded: tensors they allocate may have no memory."""
    return bool(_python_dispatch._is_in_torch_dispatch_mode) or is_scripting()


def is_scripting() -> bool:
    """Whether torch.jit records the ops of this thread."""
    return torch._C._get_tracing_state() is not None


def is_abstract_run(inputs: Sequence[Any]) -> bool:
    """Whether outputs are to have no memory: inputs, or without any the active mode, say so."""
    tensors = [given for given in inputs if isinstance(given, torch.Tensor)]
    return any(map(is_abstract, tensors)) or (not tensors and fake_mode() is not None)
