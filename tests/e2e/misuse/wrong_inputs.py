"""Inputs of a run with one of them wrong: missing, of another type, rank, size, device, layout."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from tests.e2e.misuse.wrong_values import endless, foreign


class Renamed(torch.Tensor):
    """A subclass without behaviour of its own."""


class Lying(torch.Tensor):
    """A subclass that computes by itself and has no memory."""

    @staticmethod
    def __new__(cls, like: torch.Tensor) -> torch.Tensor:
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


def _fake(x: torch.Tensor) -> torch.Tensor:
    mode = torch._subclasses.FakeTensorMode()
    return mode.from_tensor(x)


def _other_dtype(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float64 if x.dtype is torch.float32 else torch.float32)


def _longer(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x[..., :1]], -1) if x.dim() and x.shape[-1] else torch.ones(2)


def _freed(x: torch.Tensor) -> torch.Tensor:
    found = x.clone(memory_format=torch.contiguous_format)
    found.untyped_storage().resize_(0)
    return found


def _overlapping(x: torch.Tensor) -> torch.Tensor:
    """Every row begins one element behind the row before."""
    room = torch.zeros(sum(x.shape) + 1, dtype=x.dtype)
    return room.as_strided(x.shape, (1,) * x.dim())


def _grad(x: torch.Tensor) -> torch.Tensor:
    return x.clone().requires_grad_() if x.is_floating_point() else x


def _nested(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


TENSORS: Mapping[str, Callable[[torch.Tensor], Any]] = {
    "None": lambda x: None,
    "a str": lambda x: "x",
    "a number": lambda x: 1.5,
    "nan": lambda x: math.nan,
    "an int beyond int64": lambda x: 2**63,
    "an array": lambda x: x.float().numpy() if x.itemsize > 1 else np.ones(3),
    "nested lists": lambda x: x.tolist(),
    "a list in itself": lambda x: endless(),
    "a dict": lambda x: {"x": x},
    "a handle": lambda x: foreign(),
    "another dtype": _other_dtype,
    "another rank": lambda x: x.unsqueeze(0),
    "one rank less": lambda x: x[0] if x.dim() and x.shape[0] else torch.ones(()),
    "one longer": _longer,
    "no elements": lambda x: x[..., :0] if x.dim() else x,
    "turned": lambda x: x.transpose(0, -1) if x.dim() > 1 else x,
    "expanded": lambda x: x[:1].expand(x.shape) if x.dim() and x.shape[0] else x,
    "overlapping": _overlapping,
    "on meta": lambda x: x.to("meta"),
    "fake": _fake,
    "sparse": lambda x: x.to_sparse() if x.itemsize > 1 and x.dim() else torch.ones(3).to_sparse(),
    "quantised": lambda x: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "nested": _nested,
    "freed": _freed,
    "with a gradient": _grad,
    "a parameter": lambda x: torch.nn.Parameter(x, x.is_floating_point()),
    "a subclass": lambda x: x.clone().as_subclass(Renamed),
    "a subclass without memory": Lying,
    "complex": lambda x: torch.ones(x.shape, dtype=torch.complex64),
    "conjugated": lambda x: torch.ones(x.shape, dtype=torch.complex64).conj(),
    "negated by a bit": lambda x: torch._neg_view(x) if x.is_floating_point() else x,
    "an inference tensor": lambda x: _inference(x),
    "a buffer": lambda x: memoryview(b"1234"),
    "an iterator": lambda x: iter([x]),
}


def _inference(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return x.clone()


SCALARS: Mapping[str, Any] = {
    "None": None,
    "a str": "1",
    "nan": math.nan,
    "inf": math.inf,
    "2**63": 2**63,
    "10**400": 10**400,
    "-1": -1,
    "1.5": 1.5,
    "1j": 1j,
    "True": True,
    "a 0-dim tensor": torch.tensor(1.0),
    "a tensor": torch.ones(3),
    "an array": np.ones(3),
    "np.float16": np.float16(1.5),
    "np.int8": np.int8(3),
    "a list in itself": endless(),
    "object()": object(),
}

WHOLE: Mapping[str, Callable[[list[Any]], Any]] = {
    "none": lambda given: [],
    "one less": lambda given: given[:-1],
    "one more": lambda given: [*given, torch.ones(3)],
    "a number more": lambda given: [*given, 1],
    "None": lambda given: None,
    "a tensor": lambda given: torch.ones(3),
    "an iterator": lambda given: iter(given),
    "a dict": lambda given: dict(enumerate(given)),
    "a str": lambda given: "inputs",
    "backwards": lambda given: given[::-1],
    "a set": lambda given: set(range(3)),
    "a list in itself": lambda given: endless(),
    "nested": lambda given: [given[:1], tuple(given[1:])],
    "deep": lambda given: _deep(given, 3000),
    "an int": lambda given: 3,
}


def _deep(given: Any, depth: int) -> list[Any]:
    for _ in range(depth):
        given = [given]
    return given


def changed(rng: random.Random, inputs: list[Any]) -> tuple[str, Any]:
    """The inputs with something wrong, and what."""
    if not inputs or rng.random() < 0.25:
        what = rng.choice(sorted(WHOLE))
        return f"inputs: {what}", WHOLE[what](inputs)
    place = rng.randrange(len(inputs))
    given = list(inputs)
    if not isinstance(given[place], torch.Tensor):
        what = rng.choice(sorted(SCALARS))
        given[place] = SCALARS[what]
        return f"scalar input {place}: {what}", given
    what = rng.choice(sorted(TENSORS))
    if rng.random() < 0.1:
        return f"all inputs: {what}", [
            TENSORS[what](x) if isinstance(x, torch.Tensor) else x for x in given
        ]
    given[place] = TENSORS[what](given[place])
    return f"input {place}: {what}", given
