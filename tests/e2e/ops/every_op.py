"""Calls of every op of the contract, one list a name: what is run must exist for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.e2e.ops.samples import (
    CALLS,
    DRAWN,
    SCALARS,
    Call,
    numbers,
    pointwise_calls,
    reduced_rows,
    reduction_calls,
    scan_calls,
    scanned_rows,
    takes,
)
from tritonfuser.dtypes import DataType
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.parameters import Kind
from tritonfuser.ops.registry import OPS

D = DataType
TRIED = (D.Float, D.Int, D.Bool)
"""The first of them that an op takes is what it is called on."""


def _drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def _complex(*shape: int) -> torch.Tensor:
    return torch.complex(_drawn(*shape), _drawn(*shape, seed=1))


def _heads(count: int) -> list[torch.Tensor]:
    return [_drawn(2, 3, 7, 16, seed=place) for place in range(count)]


def _attention() -> list[Call]:
    mask = _drawn(2, 1, 7, 7, seed=5) > -1
    return [
        Call("plain", tuple(_heads(3))),
        Call("causal", tuple(_heads(3)), {"dropout_p": 0.0, "is_causal": True, "scale": 0.3}),
        Call("bias and mask", (*_heads(3), _drawn(2, 3, 7, 7, seed=4), mask)),
    ]


def _attention_backward() -> list[Call]:
    query, key, value, grad = _heads(4)
    saved = OPS["sdpfa_fwd"].oracle(query, key, value, None, None, 0.0, True, None)
    before = (grad, query, key, value, *saved[:2])
    return [Call("causal", (*before, 0.0, True, *saved[2:], None))]


def _grouped() -> list[Call]:
    a, b = _drawn(7, 16), _drawn(3, 16, 8, seed=1)
    return [Call("rows", (a, b, torch.tensor([2, 2, 7], dtype=torch.int32)))]


def _scaled() -> list[Call]:
    a, b = (_drawn(*shape).to(torch.float8_e4m3fn) for shape in ((32, 64), (48, 64)))
    return [Call("one scale", (a, b.t(), torch.tensor(0.5), torch.tensor(2.0)))]


def _casts() -> list[Call]:
    x = _drawn(16, 16) * 4
    kinds = (D.Double, D.Half, D.BFloat16, D.Int, D.Int32, D.Bool, D.Float)
    return [Call(kind.name, (x, kind)) for kind in kinds]


BY_HAND: dict[str, Callable[[], list[Call]]] = {
    "cast": _casts,
    "complex": lambda: [Call("parts", (_drawn(5, 4), _drawn(5, 4, seed=1)))],
    "real": lambda: [Call("dense", (_complex(5, 4),)), Call("of a real one", (_drawn(5),))],
    "imag": lambda: [Call("dense", (_complex(5, 4),))],
    "topk": lambda: [Call("largest", (_drawn(4, 9), 3)), Call("rows", (_drawn(4, 9), 2, 0, False))],
    "argsort": lambda: [Call("down", (_drawn(4, 9), 1, True)), Call("rows", (_drawn(4, 9), 0))],
    "index_put_accumulate": lambda: [
        Call("rows", (_drawn(5, 6), torch.tensor([3, 0, 3, 3]), _drawn(4, 6, seed=1))),
        Call("numbers", (_drawn(5), torch.tensor([1, 1], dtype=torch.int32), _drawn(2))),
    ],
    "sdpfa_fwd": _attention,
    "sdpfa_bwd": _attention_backward,
    "grouped_mm": _grouped,
    "scaled_mm": _scaled,
}


def calls_of(name: str) -> list[Call]:
    """Calls of an op on tensors of the first dtype that it takes.

    Raises
    ------
    KeyError
        Nobody said how to call it.
    """
    if name in BY_HAND:
        return BY_HAND[name]()
    op = OPS[name]
    if op in reduced_rows():
        return reduction_calls(op, D.Float, "cpu")
    if op in scanned_rows():
        return scan_calls(op, D.Float, "cpu")
    if isinstance(op.form, Pointwise) and op.form.variants:
        return pointwise_calls(op, next(d for d in TRIED if takes(op, d)), "cpu")
    if name in SCALARS | DRAWN:
        args: tuple[Any, ...] = (numbers((3, 4), D.Float, "cpu"),)
        dim = (1,) if any(p.kind is Kind.INT for p in op.params) else ()
        return [Call("plain", (*args, *dim))]
    return CALLS[name](D.Float, "cpu")
