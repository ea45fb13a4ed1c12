"""Values that an argument may wrongly have: of other types, out of range, from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tritonfuser import DataType, FusionDefinition

HUGE = 2**63


def endless() -> list[Any]:
    """A list that contains itself."""
    found: list[Any] = []
    found.append(found)
    return found


NUMBERS: Mapping[str, Any] = {
    "True": True,
    "0": 0,
    "1": 1,
    "-1": -1,
    "-5": -5,
    "99": 99,
    "2**40": 2**40,
    "2**63": HUGE,
    "-2**63 - 1": -HUGE - 1,
    "2**100": 2**100,
    "10**400": 10**400,
    "0.0": 0.0,
    "1.5": 1.5,
    "nan": math.nan,
    "inf": math.inf,
    "1j": 1j,
    "np.int64(1)": np.int64(1),
    "np.uint64(2**63)": np.uint64(HUGE),
    "np.float32(1.5)": np.float32(1.5),
    "np.bool_(True)": np.bool_(True),
}
SEQUENCES: Mapping[str, Any] = {
    "[]": [],
    "()": (),
    "[0]": [0],
    "(0,)": (0,),
    "[-1]": [-1],
    "[0, 0]": [0, 0],
    "[0, 1]": [0, 1],
    "[1, -1]": [1, -1],
    "[7]": [7],
    "[-7]": [-7],
    "[0, 1, 2, 3, 4]": [0, 1, 2, 3, 4],
    "[1] * 40": [1] * 40,
    "[2**63]": [HUGE],
    "[2**40, 2**40]": [2**40, 2**40],
    "[True]": [True],
    "[True, False]": [True, False],
    "[1.0]": [1.0],
    "[nan]": [math.nan],
    "[None]": [None],
    "['a']": ["a"],
    "[[0]]": [[0]],
    "[1j]": [1j],
    "[np.int64(1)]": [np.int64(1)],
    "torch.Size([2])": torch.Size([2]),
    "np.array([0])": np.array([0]),
    "range(2)": range(2),
    "{0}": {0},
    "{0: 1}": {0: 1},
    "a list in itself": endless(),
}
OBJECTS: Mapping[str, Any] = {
    "None": None,
    "'1'": "1",
    "b'1'": b"1",
    "object()": object(),
    "...": ...,
    "a type": int,
    "slice(0, 1)": slice(0, 1),
    "torch.tensor(1)": torch.tensor(1),
    "torch.ones(2)": torch.ones(2),
    "torch.float32": torch.float32,
    "DataType.Float": DataType.Float,
    "DataType.Null": DataType.Null,
    "DataType.Index": DataType.Index,
    "DataType.Float4_e2m1fn": DataType.Float4_e2m1fn,
    "DataType.Int": DataType.Int,
}
PLAIN: Mapping[str, Any] = {**NUMBERS, **SEQUENCES, **OBJECTS}
"""Wrong values that belong to no definition, by what they are."""


def foreign() -> Any:
    """A tensor of another definition."""
    with FusionDefinition() as fd:
        found = fd.define_tensor([3, 4])
        fd.add_output(found)
    return found


def foreign_scalar() -> Any:
    """A scalar of another definition."""
    with FusionDefinition() as fd:
        found = fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.add(fd.define_tensor([3]), found))
    return found


@dataclass(frozen=True)
class OfDefinition:
    """A value that a definition makes: ``make(fd)``."""

    make: Callable[[FusionDefinition], Any]


def _tensor(shape: list[int], dtype: DataType = DataType.Float) -> OfDefinition:
    return OfDefinition(lambda fd: fd.define_tensor(shape, dtype=dtype))


def _scalar(*args: Any, **kwargs: Any) -> OfDefinition:
    return OfDefinition(lambda fd: fd.define_scalar(*args, **kwargs))


HANDLES: Mapping[str, Any] = {
    "a 0-dim tensor": _tensor([]),
    "a tensor [7]": _tensor([7]),
    "a tensor [3, 4]": _tensor([3, 4]),
    "a tensor [2, 3, 5, 7]": _tensor([2, 3, 5, 7]),
    "a tensor of no elements": _tensor([3, 0]),
    "a tensor of open sizes": _tensor([-1, -1]),
    "an Int tensor": _tensor([3, 4], DataType.Int),
    "a Bool tensor": _tensor([3, 4], DataType.Bool),
    "a Half tensor": _tensor([3, 4], DataType.Half),
    "a complex tensor": _tensor([3, 4], DataType.ComplexFloat),
    "a float8 tensor": _tensor([3, 4], DataType.Float8_e5m2),
    "a float4 tensor": _tensor([3, 4], DataType.Float4_e2m1fn_x2),
    "a UInt64 tensor": _tensor([3, 4], DataType.UInt64),
    "a list of a tensor": OfDefinition(lambda fd: [fd.define_tensor([3, 4])]),
    "a scalar": _scalar(),
    "an Int scalar": _scalar(DataType.Int),
    "a Bool scalar": _scalar(DataType.Bool),
    "a complex scalar": _scalar(DataType.ComplexDouble),
    "a list of scalars": OfDefinition(lambda fd: [fd.define_scalar(DataType.Int)]),
    "a constant 3": _scalar(3),
    "a constant 2.5": _scalar(2.5),
    "a constant nan": _scalar(math.nan),
    "a tensor of another definition": OfDefinition(lambda fd: foreign()),
    "a scalar of another definition": OfDefinition(lambda fd: foreign_scalar()),
    "a list of foreign tensors": OfDefinition(lambda fd: [foreign()]),
}
"""Wrong values that the definition makes itself, or that another one made."""

WRONG: Mapping[str, Any] = {**PLAIN, **HANDLES}


def made(value: Any, fd: FusionDefinition) -> Any:
    """The value for a definition."""
    return value.make(fd) if isinstance(value, OfDefinition) else value
