"""What is given to a run: lists flattened, the device found, refusals given their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ..cache.diagnose import InputMismatch
from ..errors import ArgumentError, InputError, UnsupportedDeviceError
from ..ir import Fusion
from .recording import Recording

Inputs = Sequence[Any]

CPU_TEXT = "Found unsupported device cpu, only scalar CPU or CUDA tensors are supported"


def flat(inputs: Any) -> Inputs:
    """The inputs with nested lists and tuples opened up; the same object where there are none.

    Raises
    ------
    ArgumentError
        ``inputs`` is neither a list nor a tuple.
    """
    if not isinstance(inputs, list | tuple):
        raise ArgumentError(
            f"inputs must be a list or a tuple, got {type(inputs).__name__}",
            hint="A single input is given as run([x]).",
        )
    if any(isinstance(item, list | tuple) for item in inputs):
        return list(_opened(inputs))
    return inputs


def _opened(inputs: Inputs) -> Iterator[Any]:
    for item in inputs:
        if isinstance(item, list | tuple):
            yield from _opened(item)
        else:
            yield item


def device_for(
    fusion: Fusion, inputs: Inputs, device: torch.device | str | int | None
) -> torch.device | None:
    """The device to ask the executor for: none where tensors say it already.

    Raises
    ------
    InputError
        The tensors are on another device.
    """
    if device is None:
        return None
    wanted = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    found = {x.device for x in inputs if isinstance(x, torch.Tensor)}
    found = {d for d in found if d.type != "cpu"} or found
    for other in found:
        if other.type != wanted.type or wanted.index not in (None, other.index):
            raise InputError(
                f"device={str(wanted)!r} was asked for, but inputs are on {other}",
                hint="A definition runs on the device of its inputs.",
            )
    return None if any(v.is_tensor for v in fusion.inputs) else wanted


def refuse_cpu(inputs: Inputs) -> None:
    """Refuse CPU tensors that are no scalars, as nvFuser has to."""
    for place, given in enumerate(inputs):
        if isinstance(given, torch.Tensor) and given.is_cpu and given.dim():
            raise UnsupportedDeviceError(
                CPU_TEXT,
                hint=f"Input {place} is on the CPU; NVF_CPU_AS_CUDA=1 lets such tensors in.",
            )


@contextmanager
def placing(recording: Recording) -> Iterator[None]:
    """Give errors about an input the line that defined it."""
    try:
        yield
    except InputMismatch as error:
        raise error.located(recording.line_of(recording.ir.inputs[error.place])) from None
