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

from ...errors import calling_line

_warned = False


def warn_detached(inputs: Sequence[Any]) -> None:
    """Warn, once in a process, where autograd would record a run of these inputs and cannot."""
    global _warned
    if _warned or not torch.is_grad_enabled():
        return
    for place, given in enumerate(inputs):
        if isinstance(given, torch.Tensor) and given.requires_grad:
            _warned = True
            line = calling_line()
            warnings.warn_explicit(
                f"input {place} requires grad, and no gradient flows through a definition: its "
                "outputs are detached. Pass tensor.detach(), run it under torch.no_grad(), or call "
                "it in a torch.autograd.Function whose backward runs another definition.",
                UserWarning,
                "<unknown>" if line is None else line.file,
                0 if line is None else line.line,
            )
            return
