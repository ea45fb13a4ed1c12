"""A definition through ``to_dict``, JSON and back, and what has to be the same then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch

from tests.e2e.checking import copied
from tritonfuser import Fusion, FusionDefinition


def through_json(fd: FusionDefinition) -> FusionDefinition:
    """The definition that its text in JSON describes, which is the same one."""
    text = json.dumps(fd.to_dict(), allow_nan=False)
    again = FusionDefinition.from_dict(json.loads(text))
    same(fd.fusion, again.fusion)
    assert repr(again) == repr(fd)
    assert json.dumps(again.to_dict(), allow_nan=False) == text
    return again


def same(one: Fusion, other: Fusion) -> None:
    """Equal down to the numbers of values, how dims are split, and the user's lines."""
    assert one is not other
    assert one == other
    assert one.ir.fingerprint == other.ir.fingerprint
    assert [node.loc for node in one.ir.nodes] == [node.loc for node in other.ir.nodes]
    assert [repr(value) for value in one.vals()] == [repr(value) for value in other.vals()]
    assert one.written_axes == other.written_axes
    assert one.shardings == other.shardings


def run(fd: Any, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs on copies of the inputs, and the inputs that were written, behind them."""
    torch.manual_seed(0)
    given = copied(inputs)
    outputs = list(fd.run(given))
    return [*outputs, *(x for x in given if isinstance(x, torch.Tensor))]


def same_bits(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> None:
    """Equal tensors, nans by their bits."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)
        assert torch.equal(_bits(a), _bits(b))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    dense = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return dense.contiguous().flatten().view(torch.uint8)
