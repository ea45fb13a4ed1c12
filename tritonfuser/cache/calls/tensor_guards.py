"""Guards: one call that checks sizes, strides, dtypes and devices of all tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..keys.storage import PLAIN_CLASSES, check_reach, is_its_own_memory, is_scripting

Guard = Callable[..., bool]
"""Whether tensors, or other objects given as such, fit; TypeError for another number of them."""


def guard_for(tensors: Sequence[torch.Tensor]) -> Guard:
    """A guard for tensors like these, in this order.

    torch's own guards are five times as fast as a guard in Python. They also refuse tensors that
    fit: a tensor given twice, another class of tensor, another mode (autocast, inference) than at
    their creation.
    """
    found = _by_torch(tensors) if _is_reliable() else None
    return found or plain_guard(tensors)


def guard_of_memory(guard: Guard) -> Guard:
    """A guard that asks too that each tensor is an array in memory.

    torch's guards take a tensor whose storage was freed or made smaller, and end the process for a
    nested tensor. Beside kernels on the CPU the check costs nothing; on a GPU it would be felt, and
    is made where ``TRITONFUSER_CHECK`` says so.
    """

    def check(*tensors: Any) -> bool:
        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor) or tensor.is_nested:
                return False
        if not guard(*tensors):
            return False
        for tensor in tensors:
            check_reach(tensor)
        return True

    return check


def plain_guard(tensors: Sequence[torch.Tensor]) -> Guard:
    """A guard in Python, for any class of tensors with memory and for tensors given twice."""
    names = [f"t{place}" for place in range(len(tensors))]
    scope: dict[str, Any] = {
        "PLAIN_CLASSES": PLAIN_CLASSES,
        "is_its_own_memory": is_its_own_memory,
        "is_scripting": is_scripting,
    }
    conditions = ["not is_scripting()"]
    for name, tensor in zip(names, tensors, strict=True):
        facts = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device
        scope |= {f"{name}_{place}": fact for place, fact in enumerate(facts)}
        conditions += [
            f"(type({name}) in PLAIN_CLASSES or is_its_own_memory({name}))",
            f"({name}.data_ptr() or not {name}.numel())",
            f"{name}.shape == {name}_0",
            f"{name}.stride() == {name}_1",
            f"{name}.dtype is {name}_2",
            f"{name}.device == {name}_3",
            f"{name}.is_neg() is {tensor.is_neg()}",
        ]
    text = (
        f"def guard({', '.join(names)}):\n"
        f"    try:\n"
        f"        return {' and '.join(conditions)}\n"
        f"    except RuntimeError:\n"  # sparse tensors, those inside of torch.vmap, ...
        f"        return False\n"
    )
    exec(text, scope)
    guard: Guard = scope["guard"]
    return guard


def _by_torch(tensors: Sequence[torch.Tensor]) -> Guard | None:
    """A guard of torch.compile, which keeps no tensor; None where it does not take these."""
    make: Any = getattr(torch._C._dynamo.guards, "TensorGuards", None)
    if make is None or not tensors:
        return None
    try:
        guard: Guard = make(
            *tensors,
            dynamic_dims_sizes=[list(tensor.shape) for tensor in tensors],
            dynamic_dims_strides=[list(tensor.stride()) for tensor in tensors],
        ).check
        return guard if guard(*tensors) else None
    except (TypeError, RuntimeError):
        return None


@functools.cache
def _is_reliable() -> bool:
    """Whether torch's guards, which are no public interface, work as needed in this version."""
    x = torch.empty(2, 3, device="cpu")
    guard = _by_torch([x])
    if guard is None or not guard(torch.empty(2, 3, device="cpu")):
        return False
    others = [
        torch.empty(2, 4, device="cpu"),
        torch.empty(6, device="cpu"),
        torch.empty(3, 2, device="cpu").t(),
        torch.empty(2, 6, device="cpu")[:, :3],
        torch.empty(2, 3, dtype=torch.float16, device="cpu"),
        torch.empty(2, 3, device="meta"),
        2.0,
        None,
    ]
    return not any(guard(other) for other in others)
