"""The inputs of a run: lists flattened, numbers converted, CPU tensors refused, errors located."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ...cache.calls.diagnosis import (
    InputMismatch,
    explain_cpu_scalars,
    explain_mismatch,
    refuse_unlisted,
)
from ...errors import ArgumentError, InputError, UnsupportedDeviceError
from ...ir import Fusion
from .nvfuser_names import input_names
from .recording import Recording

Inputs = Sequence[Any]
"""Tensors and Python numbers in the order of the definition, in lists or tuples."""

CPU_TEXT = "Found unsupported device cpu, only scalar CPU or CUDA tensors are supported"


def flatten_inputs(inputs: Any) -> Inputs:
    """The inputs without nested lists and tuples, and numbers of NumPy as those of Python.

    The same object where there are none of these.

    Raises
    ------
    ArgumentError
        ``inputs`` is neither a list nor a tuple, or nested endlessly.
    """
    refuse_unlisted(inputs)
    given: Inputs = inputs
    if any(isinstance(item, _CONVERTED) for item in given):
        return list(_leaves(given, 0))
    return given


_OF_NUMPY = (np.integer, np.bool_, np.float16, np.float32, np.complex64)
"""Numbers of NumPy, other than those that are a float or a complex of Python too."""

_CONVERTED = (list, tuple, *_OF_NUMPY)


def flat_runs(varying: Any) -> list[Inputs]:
    """The inputs of earlier runs, each without nested lists.

    Raises
    ------
    ArgumentError
        They are no list of inputs.
    """
    if not isinstance(varying, list | tuple):
        raise ArgumentError(
            f"varying must be a list of the inputs of runs, got {type(varying).__name__}",
            hint="Those of one run are given as varying=[[x]].",
        )
    for inputs in varying:
        if not isinstance(inputs, list | tuple):
            raise ArgumentError(
                "varying must be a list of the inputs of runs, each a list or a tuple, got one of "
                f"{type(inputs).__name__}",
                hint="The inputs of one run are given as varying=[[x]].",
            )
    return [flatten_inputs(inputs) for inputs in varying]


MOST_NESTED = 100
"""Lists in lists that inputs may be."""


def _leaves(inputs: Inputs, depth: int) -> Iterator[Any]:
    if depth > MOST_NESTED:
        raise ArgumentError(
            f"inputs are lists in lists, more than {MOST_NESTED} deep",
            hint="Does one of them hold itself?",
        )
    for item in inputs:
        if isinstance(item, list | tuple):
            yield from _leaves(item, depth + 1)
        else:
            yield item.item() if isinstance(item, _OF_NUMPY) else item


def run_or_flatten(
    execute: Callable[[Inputs], list[torch.Tensor]], recording: Recording, inputs: Inputs
) -> list[torch.Tensor]:
    """Run, and once more with flattened inputs where they do not fit as they are.

    So a call with flat inputs, the usual one, does not look for nested lists, and none for numbers
    of NumPy.
    """
    try:
        return execute(inputs)
    except InputError as error:
        given = flatten_inputs(inputs)
        with locate_errors(recording):
            if given is inputs:
                raise error
            return execute(given)


def refuse_cpu(fusion: Fusion, inputs: Inputs) -> None:
    """Refuse CPU tensors with dims, and outputs computed from CPU scalars alone, as nvFuser does.

    Raises
    ------
    UnsupportedDeviceError
        A CPU tensor with dims.
    InputError
        An output computed from CPU scalars alone.
    """
    on_cpu = [n for n, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.is_cpu]
    if not on_cpu:
        return
    for place in on_cpu:
        if inputs[place].dim():
            raise UnsupportedDeviceError(
                CPU_TEXT,
                hint=f"Input {place} is on the CPU; NVF_CPU_AS_CUDA=1 lets such tensors in.",
            )
    # The executor refuses inputs that do not fit.
    if explain_mismatch(fusion, inputs, abstract=True) is None:
        error = explain_cpu_scalars(fusion, inputs)
        if error is not None:
            raise error


@contextmanager
def locate_errors(recording: Recording) -> Iterator[None]:
    """Give an error about one input the line that defined that input.

    In programs that import nvFuser's modules the input has the name that nvFuser gives it.
    """
    try:
        yield
    except InputMismatch as error:
        line = recording.line_of(recording.ir.inputs[error.place])
        if recording.uses_nvfuser_names:
            error = error.renamed(input_names(recording.ir)[error.place])
        raise error.located(line) from None
