"""Lightning Thunder with tritonfuser as its nvFuser, on a machine without a GPU.

Thunder asks for a GPU where it is imported, and for kernels of attention and for states of random
generators where it traces. Here they are answered for it, and every tensor is a fake one that says
it is on a GPU: a step at any size takes neither memory nor a GPU, and the definitions are those of
a machine with one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import tritonfuser.compat

DEVICE = torch.device("cuda", 0)
_CONVOLUTIONS = (torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default)
_NAMED_TENSORS = ("align_as", "align_to", "has_names", "refine_names", "rename")
"""Methods that Thunder 0.2.6 lists and newer versions of torch do not have."""


class _RandomState:
    """A generator's state of which Thunder takes the seed and the offset: both are 0."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if function is torch.chunk:
            return cls(), cls()
        return NotImplemented

    def view(self, dtype: torch.dtype) -> _RandomState:
        return self

    def item(self) -> int:
        return 0


class _ChannelsLast(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Convolutions of which an operand is channels last give such results, as cuDNN's do."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        found = function(*args, **(kwargs or {}))
        if function in _CONVOLUTIONS and any(map(_is_channels_last, args)):
            return tree_map(_as_channels_last, found)
        return found


def _is_channels_last(x: Any) -> bool:
    if not isinstance(x, torch.Tensor) or x.ndim != 4:
        return False
    return suggest_memory_format(x) is torch.channels_last


def _as_channels_last(x: Any) -> Any:
    if not isinstance(x, torch.Tensor) or x.ndim != 4:
        return x
    return torch.empty_like(x, memory_format=torch.channels_last)


@cache
def thunder() -> Any:
    """Thunder's module, imported with ``tritonfuser.compat`` in nvFuser's place.

    Raises
    ------
    SystemExit
        Thunder is not installed.
    """
    for name in _NAMED_TENSORS:
        if not hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, _removed(name))
    tritonfuser.compat.install()
    try:
        with mock.patch.object(torch.cuda, "is_available", lambda: True):
            found = importlib.import_module("thunder")
            importlib.import_module("thunder.executors.nvfuserex_impl")
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"python -m bench.record: expected Lightning Thunder, got {error}: "
            "pip install lightning-thunder==0.2.6"
        ) from error
    return found


def executors() -> list[Any]:
    """What a step is given to: kernels of attention, and tritonfuser for all that it can fuse."""
    module = thunder()
    return [module.get_executor(name) for name in ("sdpa", "nvfuser")]


def _removed(name: str) -> Callable[..., Any]:
    def removed(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"this version of torch has no Tensor.{name}")

    removed.__name__ = name
    return removed


@contextmanager
def as_if_on_gpu(connect: Callable[..., None]) -> Iterator[FakeTensorMode]:
    """Trace and run on fake tensors; ``connect`` takes what Thunder would hand to autograd."""
    module = thunder()
    executors = importlib.import_module("thunder.executors.nvfuserex")
    translation = importlib.import_module("thunder.executors.nvfuserex_impl")
    attention = importlib.import_module("thunder.executors.sdpaex")
    with mock.patch.object(torch.cuda, "is_available", lambda: True):
        version = executors.nvfuser_version()
    patches = [
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "get_rng_state", lambda device=None: _RandomState()),
        (torch.cuda, "set_rng_state", lambda state, device=None: None),
        (translation, "nvfuser_version", lambda: version),
        (attention, "_fused_sdp_choice", _attention),
        (FakeTensor, "__getitem__", _sliced),
        (FakeTensor, "__setitem__", lambda self, place, value: None),
        (FakeTensor, "contiguous", _contiguous),
        (FakeTensor, "copy_", lambda self, source, non_blocking=False: self),
        (module, "connect_to_autograd", connect),
    ]
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, _ChannelsLast():  # type: ignore[no-untyped-call]
        for place, name, value in patches:
            mock.patch.object(place, name, value, create=True).start()
        try:
            yield mode
        finally:
            mock.patch.stopall()


def _attention(query: Any, key: Any, value: Any, mask: Any = None, *args: Any) -> Any:
    """The kernel that a Hopper GPU takes: flash attention, the other one behind a mask."""
    kinds = importlib.import_module("thunder.executors.utils").SpdaBackend
    narrow = torch.finfo(_torch_dtype(query.dtype)).bits == 16
    return kinds.FLASH_ATTENTION if mask is None and narrow else kinds.MEMORY_EFFICIENT


def _sliced(x: torch.Tensor, slices: Any) -> torch.Tensor:
    """``x[slices]`` without a look at the device, which a build of torch for CPUs refuses."""
    if slices[0] is Ellipsis:
        slices = (slice(None),) * (x.ndim - len(slices) + 1) + slices[1:]
    for dim, part in enumerate(slices):
        if not isinstance(part, slice):
            raise NotImplementedError(f"expected an index of slices, got {part!r}")
        x = torch.ops.aten.slice.Tensor(x, dim, part.start, part.stop, part.step or 1)
    return x


def _contiguous(
    x: torch.Tensor, memory_format: torch.memory_format = torch.contiguous_format
) -> torch.Tensor:
    """``x.contiguous()`` without a look at the device."""
    if x.is_contiguous(memory_format=memory_format):
        return x
    found: torch.Tensor = torch.ops.aten.clone.default(x, memory_format=memory_format)
    return found


def _torch_dtype(dtype: Any) -> torch.dtype:
    found: torch.dtype = importlib.import_module("thunder.core.dtypes").to_torch_dtype(dtype)
    return found


def on_gpu(mode: FakeTensorMode, tree: Any) -> Any:
    """The tensors of a tree of meta tensors as fake ones on a GPU; parameters of modules too."""
    if isinstance(tree, torch.nn.Module):
        for module in tree.modules():
            for name, weight in module.named_parameters(recurse=False):
                made = torch.nn.Parameter(_fake(mode, weight.detach()), weight.requires_grad)
                module._parameters[name] = made
            for name, value in module.named_buffers(recurse=False):
                module._buffers[name] = _fake(mode, value)
        return tree
    return tree_map(lambda x: _fake(mode, x) if isinstance(x, torch.Tensor) else x, tree)


def _fake(mode: FakeTensorMode, value: torch.Tensor) -> torch.Tensor:
    return FakeTensor(mode, value.detach(), DEVICE).requires_grad_(value.requires_grad)
