"""What goes over the pipe to the process that times: JSON texts, and inputs as parcels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...cache.keys.signature import ALIGNMENT

Parcel = dict[str, Any]
"""An input on its way: a number, or a tensor's layout with its memory or a copy of that."""


@dataclass(frozen=True)
class TensorLayout:
    """How a tensor lies in memory.

    Attributes
    ----------
    dtype : str
        Name in torch.
    shape, stride : tuple of int
        In elements.
    skew : int
        Bytes from a multiple of ``ALIGNMENT`` to its first element.
    device : str
        Where it is.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    skew: int
    device: str

    @staticmethod
    def of(tensor: torch.Tensor) -> TensorLayout:
        """The layout of a tensor."""
        return TensorLayout(
            str(tensor.dtype).removeprefix("torch."),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.data_ptr() % ALIGNMENT,
            str(tensor.device),
        )

    def made_of(self, memory: torch.Tensor) -> torch.Tensor:
        """A new tensor like it, with a copy of these bytes."""
        dtype = getattr(torch, self.dtype)
        room = torch.empty(self.skew + memory.numel(), dtype=torch.uint8, device=self.device)
        room[self.skew :].copy_(memory)
        typed = room[self.skew :].view(dtype)
        return typed.as_strided(self.shape, self.stride, typed.storage_offset())


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes that a tensor reaches, as a view."""
    if not tensor.numel():
        return torch.empty(0, dtype=torch.uint8, device=tensor.device)
    reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((reach,), (1,), tensor.storage_offset()).view(torch.uint8)


def packed(inputs: Sequence[Any], share: bool) -> list[Parcel]:
    """Inputs as parcels.

    Parameters
    ----------
    share : bool
        Whether memory of a GPU is shared with the other process, by CUDA IPC. Else a copy of it
        goes through the pipe.
    """
    return [_packed(x.detach(), share) if _is_tensor(x) else {"number": x} for x in inputs]


def _is_tensor(given: Any) -> bool:
    return isinstance(given, torch.Tensor)


def _packed(tensor: torch.Tensor, share: bool) -> Parcel:
    layout, memory = TensorLayout.of(tensor), _memory(tensor)
    about = {name: getattr(layout, name) for name in TensorLayout.__annotations__}
    if share and tensor.is_cuda and memory.numel():
        return {"layout": about, "memory": memory}
    return {"layout": about, "copy": memory.cpu().numpy().tobytes()}


def unpacked(parcels: Sequence[Parcel]) -> list[Any]:
    """The inputs, in new memory of this process: no kernel writes into that of the other one."""
    return [_unpacked(parcel) for parcel in parcels]


def _unpacked(parcel: Parcel) -> Any:
    if "number" in parcel:
        return parcel["number"]
    memory = parcel.get("memory")
    if memory is None:
        memory = (
            torch.frombuffer(bytearray(parcel["copy"]), dtype=torch.uint8)
            if parcel["copy"]
            else torch.empty(0, dtype=torch.uint8)
        )
    return TensorLayout(**parcel["layout"]).made_of(memory)
