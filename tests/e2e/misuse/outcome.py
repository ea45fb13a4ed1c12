"""What came of a misuse: refused as it should be, still right, or wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tests.e2e.checking import copied
from tritonfuser import FusionDefinition

LARGEST = 1 << 20
"""Elements of a tensor at most that a changed program is run with."""


class Wrong(AssertionError):
    """A misuse that was not refused as it should be; the text says what it was."""


@dataclass(frozen=True)
class Program:
    """A right program: how to record it, and what to run it on."""

    make: Callable[[], FusionDefinition]
    inputs: Sequence[Any]
    outputs: Sequence[torch.Tensor]


@dataclass(frozen=True)
class Misuse:
    """One wrong call.

    Attributes
    ----------
    what : str
        The call, for reports.
    names : tuple of str
        One of them has to be in the message.
    call : callable
        Makes it; what it returns is checked by ``legal``.
    legal : callable, optional
        Checks what came of a call that was not refused; None where it has to be refused.
    """

    what: str
    names: tuple[str, ...]
    call: Callable[[], Any]
    legal: Callable[[Any], None] | None = None


Maker = Callable[[random.Random, Program], Misuse]


def same(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], what: str) -> None:
    """Equal outputs, nans at the same places."""
    if len(found) != len(wanted):
        raise Wrong(f"{what}: {len(found)} outputs in place of {len(wanted)}")
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        try:
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
        except AssertionError as error:
            raise Wrong(f"{what}: output {place} differs: {error}") from None


def is_small(fd: FusionDefinition) -> bool:
    """Whether it can be run here."""
    for value in (*fd.fusion.ir.inputs, *(o for n in fd.fusion.ir.nodes for o in n.outs)):
        size = 1
        for extent in value.tensor.shape if value.is_tensor else ():
            size *= extent if isinstance(extent, int) else 1
        if size > LARGEST:
            return False
    return True


def fresh(inputs: Sequence[Any]) -> list[Any]:
    """Inputs with memory of their own."""
    return copied(inputs)
