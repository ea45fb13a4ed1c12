"""An entry of the corpus: a program with inputs, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bench.recorded.definitions import Input, ScalarInput

Spec = dict[str, Any]
"""An input: ``{"shape", "stride", "dtype", "offset"}``, ``{"scalar"}`` or ``{"complex"}``."""

GPUS = ("sm_90", "sm_80", "gfx942")
CPU = "cpu"
EVERYWHERE = (*GPUS, CPU)

PLAIN = "plain"
"""Lowered as ``fd.run`` would."""
OPEN = "open"
"""Lowered with dynamic sizes, after runs at other sizes."""
GIVEN = "given"
"""Planned once for each change of one field of the params."""
FUSED = "fused"
"""Planned with ``fuse_matmul``."""


@dataclass(frozen=True)
class Entry:
    """A program with inputs.

    Attributes
    ----------
    part : str
        The part of the corpus.
    name : str
        Unique within the part.
    text : str
        The program, as ``repr(fd)`` prints it.
    inputs : tuple of Spec
        One for each input, in order.
    archs : tuple of str
        The architectures to lower for.
    mode : str
        ``PLAIN``, ``OPEN``, ``GIVEN`` or ``FUSED``.
    varying : tuple of tuple of Spec
        Inputs of earlier runs, for mode ``OPEN``.
    """

    part: str
    name: str
    text: str
    inputs: tuple[Spec, ...]
    archs: tuple[str, ...] = EVERYWHERE
    mode: str = PLAIN
    varying: tuple[tuple[Spec, ...], ...] = ()


def specs_of(inputs: Iterable[Any]) -> tuple[Spec, ...]:
    """Specs of tensors and numbers, without the tensors' values."""
    return tuple(_spec(given) for given in inputs)


def _spec(given: Any) -> Spec:
    if isinstance(given, torch.Tensor):
        return _tensor(given.shape, given.stride(), given.dtype, int(given.storage_offset()))
    if isinstance(given, complex):
        return {"complex": [given.real, given.imag]}
    return {"scalar": given}


def recorded_specs(inputs: Iterable[Input]) -> tuple[Spec, ...]:
    """Specs of the inputs of a recorded definition."""
    return tuple(
        {"scalar": item.value}
        if isinstance(item, ScalarInput)
        else _tensor(item.shape, item.stride, item.dtype)
        for item in inputs
    )


def _tensor(
    shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype, offset: int = 0
) -> Spec:
    name = str(dtype).removeprefix("torch.")
    return {"shape": [*shape], "stride": [*stride], "dtype": name, "offset": offset}
