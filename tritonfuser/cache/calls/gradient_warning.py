"""Warns once that autograd does not record a run.

It is asked for where a call is checked in full: a first one, and one that makes a guard. torch's
guards refuse tensors that require grad where those that they were made for did not, so calls that
pass a guard are not asked, which costs nothing. What was first run on such tensors under
``torch.no_grad()`` gets no warning later.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ...errors import calling_line

_warned = False


def warn_detached(inputs: Sequence[Any]) -> None:
    """Warn, once in a process, where autograd would record a run of these inputs and cannot."""
    global _warned
    if _warned:
        return
    for place, given in enumerate(inputs):
        text = _lost(given) if isinstance(given, torch.Tensor) else None
        if text is not None:
            _warned = True
            _warn(f"input {place} {text}")
            return


def _lost(given: torch.Tensor) -> str | None:
    """What autograd would follow of an input, and what to do."""
    if forward_ad._current_level >= 0 and _has_tangent(given):
        return (
            "has a tangent, and none flows through a definition: its outputs have none. Pass "
            "tensor.detach(), or call it in a torch.autograd.Function whose jvp runs another "
            "definition."
        )
    if given.requires_grad and torch.is_grad_enabled():
        return (
            "requires grad, and no gradient flows through a definition: its outputs are detached. "
            "Pass tensor.detach(), run it under torch.no_grad(), or call it in a "
            "torch.autograd.Function whose backward runs another definition."
        )
    return None


def _has_tangent(given: torch.Tensor) -> bool:
    return forward_ad.unpack_dual(given).tangent is not None  # type: ignore[no-untyped-call]


def _warn(text: str) -> None:
    line = calling_line()
    file, number = ("<unknown>", 0) if line is None else (line.file, line.line)
    warnings.warn_explicit(text, UserWarning, file, number)
