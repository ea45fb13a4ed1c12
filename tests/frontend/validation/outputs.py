"""Definitions whose runs give other outputs, and the limits that validate has for outputs."""

from __future__ import annotations

import math

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.frontend.inspect.expectation import Check, expected

BF16, FLOAT = DataType.BFloat16, DataType.Float


def giving(fd, monkeypatch, *outputs):
    """The definition, whose runs give these outputs."""
    monkeypatch.setattr(fd, "run", lambda inputs, **kwargs: list(outputs))
    return fd


def limit(fd, inputs, place=0):
    """How far each element of an output may be off."""
    return expected(fd.fusion.ir, inputs, Check()).limits[place].values


def next_up(x):
    """The next larger numbers."""
    return torch.nextafter(x, torch.full_like(x, math.inf))


def softmax(dtype=BF16):
    """Over the rows of a matrix, in Float."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        wide = fd.ops.cast(x, FLOAT)
        top = fd.ops.broadcast(fd.ops.max(wide, [1]), [False, True])
        powers = fd.ops.exp(fd.ops.sub(wide, top))
        total = fd.ops.broadcast(fd.ops.sum(powers, [1]), [False, True])
        fd.add_output(fd.ops.cast(fd.ops.div(powers, total), dtype))
    return fd
