"""Which inputs indices are computed from, and which values those may have in a repro script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import Parameter

from ...cache.calls.diagnosis import explain_mismatch
from ...cache.keys.run_device import device_of
from ...cache.keys.signature import signature
from ...cache.keys.storage import is_abstract
from ...errors import TritonFuserError
from ...ir import Fusion
from ...lowering.access.index_dims import index_bounds
from ...lowering.passes.concretize import concretize
from ...lowering.passes.simplify import simplify

WRITTEN_OUT = 256
"""Integers that index are written out up to so many: ends of groups, of which most others would be
wrong."""


@dataclass(frozen=True)
class IndexValues:
    """The values of an input that indices are computed from.

    Attributes
    ----------
    least, most : int or float
        Their range, both ends included.
    all : list, optional
        The elements themselves, where they are few integers.
    """

    least: float
    most: float
    all: list[Any] | int | None = None


def index_values(fusion: Fusion, inputs: Sequence[Any]) -> dict[int, IndexValues]:
    """By the places of inputs: what is known of those that indices are computed from.

    A tensor on a GPU is read, which waits for it. Where a tensor has no data, or its stream is
    being captured, the dims that it indexes tell the range.
    """
    found = {place: _values(inputs[place], n) for place, n in _bounds(fusion, inputs).items()}
    return {place: values for place, values in found.items() if values is not None}


def _bounds(fusion: Fusion, inputs: Sequence[Any]) -> dict[int, int]:
    """The fewest positions that there are for each input; none for inputs that do not fit."""
    if explain_mismatch(fusion, inputs, abstract=True) is not None:
        return {}
    try:
        facts = signature(fusion, inputs, device_of(inputs))
        concrete = simplify(concretize(fusion, facts))
    except TritonFuserError:
        return {}  # The script ends with this error too.
    bounds = index_bounds(concrete)
    places = enumerate(concrete.inputs)
    return {place: bounds[value] for place, value in places if value.is_tensor and value in bounds}


def _values(given: torch.Tensor, positions: int) -> IndexValues | None:
    if not given.numel() or given.is_complex():
        return None
    if not _has_data(given):
        return IndexValues(0, max(positions - 1, 0))
    if not given.is_floating_point() and given.numel() <= WRITTEN_OUT and given.is_contiguous():
        return IndexValues(0, positions - 1, given.tolist())
    least, most = torch.stack(torch.aminmax(_with_order(given.detach()))).tolist()
    if not math.isfinite(least) or not math.isfinite(most):
        return None
    # What is given beyond them, such as labels that are left out, is not used as an index.
    low, high = max(least, 0), min(most, positions - 1)
    return IndexValues(low, high) if low <= high else IndexValues(least, most)


def _has_data(given: torch.Tensor) -> bool:
    """Whether its elements can be read now."""
    if is_abstract(given) or type(given) not in (torch.Tensor, Parameter):
        return False
    return not (given.is_cuda and torch.cuda.is_current_stream_capturing())


def _with_order(given: torch.Tensor) -> torch.Tensor:
    """The same numbers in a dtype whose least one torch finds."""
    if given.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return given.long()
    return given.float() if given.is_floating_point() and given.itemsize == 1 else given
