"""What is given to a run: lists flattened, the device found, refusals given their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ... import options
from ...cache.calls.diagnosis import InputMismatch, explain_cpu_scalars, explain_mismatch
from ...cache.keys.signature import default_device
from ...errors import ArgumentError, InputError, UnsupportedDeviceError
from ...ir import Fusion
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
    fusion: Fusion,
    inputs: Inputs,
    device: torch.device | str | int | None,
    *,
    gpu_only: bool = False,
) -> torch.device | None:
    """The device to ask the executor for: none where tensors say it already.

    CPU scalars say nothing of where a definition that runs on GPUs only does.

    Raises
    ------
    InputError
        The tensors are on another device, or there is no such device.
    """
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    if device is None:
        on_cpu = all(x.is_cpu for x in tensors)
        return default_device() if gpu_only and tensors and on_cpu else None
    wanted = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    there = wanted.type != "cuda" or torch.cuda.is_available()
    if not there and options.current().cpu_as_cuda:
        wanted, there = torch.device("cpu"), True
    found = {x.device for x in tensors if x.dim() or not x.is_cpu}
    for other in found:
        if other.type != wanted.type or wanted.index not in (None, other.index):
            raise InputError(
                f"device={str(wanted)!r} was asked for, but inputs are on {other}",
                hint="A definition runs on the device of its inputs.",
            )
    if found:
        return None
    if not there:
        raise InputError(f"device={str(wanted)!r} was asked for, but there is no CUDA device")
    return wanted


def run_opened(
    execute: Callable[[Inputs], list[torch.Tensor]], recording: Recording, inputs: Inputs
) -> list[torch.Tensor]:
    """Run; nested lists are opened only where inputs do not fit as they are."""
    try:
        return execute(inputs)
    except InputError as error:
        given = flat(inputs)
        with placing(recording):
            if given is inputs:
                raise error
            return execute(given)


def refuse_cpu(fusion: Fusion, inputs: Inputs) -> None:
    """Refuse CPU tensors that are no scalars, and outputs of CPU scalars alone, as nvFuser does.

    Raises
    ------
    UnsupportedDeviceError
        A CPU tensor with dims.
    InputError
        An output that would be computed of CPU scalars alone.
    """
    for place, given in enumerate(inputs):
        if isinstance(given, torch.Tensor) and given.is_cpu and given.dim():
            raise UnsupportedDeviceError(
                CPU_TEXT,
                hint=f"Input {place} is on the CPU; NVF_CPU_AS_CUDA=1 lets such tensors in.",
            )
    # Inputs that do not fit are for the executor to refuse.
    if explain_mismatch(fusion, inputs) is None:
        error = explain_cpu_scalars(fusion, inputs)
        if error is not None:
            raise error


@contextmanager
def placing(recording: Recording) -> Iterator[None]:
    """Give errors about an input the line that defined it."""
    try:
        yield
    except InputMismatch as error:
        raise error.located(recording.line_of(recording.ir.inputs[error.place])) from None
