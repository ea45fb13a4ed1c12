"""DataType as nvFuser names it, and what each one is to torch, to Triton and to promotion."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum

import torch

from .errors import DefinitionError


class Category(Enum):
    """PyTorch's three promotion categories, and bool below them; higher wins."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3

    def __lt__(self, other: Category) -> bool:
        return self.value < other.value


class DataType(Enum):
    """Element types, with nvFuser's names."""

    Double = "double"
    Float = "float"
    Half = "__half"
    BFloat16 = "__bfloat"
    Int = "int64_t"
    Int32 = "int"
    UInt64 = "uint64_t"
    Index = "nvfuser_index_t"
    Bool = "bool"
    Float8_e4m3fn = "__e4m3"
    Float8_e5m2 = "__e5m2"
    Float8_e8m0fnu = "__e8m0"
    Float4_e2m1fn = "__e2m1"
    Float4_e2m1fn_x2 = "__e2m1_x2"
    ComplexFloat = "std::complex<float>"
    ComplexDouble = "std::complex<double>"
    Null = "null_type"

    def __repr__(self) -> str:
        return f"DataType.{self.name}"

    __str__ = __repr__

    # Members are one of a kind: by identity, and in C.
    __hash__ = object.__hash__

    @property
    def info(self) -> DTypeInfo:
        return _INFO[self]


@dataclass(frozen=True, slots=True)
class DTypeInfo:
    """Facts of one DataType.

    Attributes
    ----------
    category : Category
        The promotion category.
    bits : int
        Width of one element. Bool takes a whole byte; an unpacked fp4 has 4 bits, Null none.
    torch : torch.dtype or None
        The torch dtype; None where torch has none.
    triton : str
        The name under ``tl``.
    signature : str
        Triton's name in a kernel signature: ``*fp32`` without the star.
    letter : str
        nvFuser's one-letter mark of a scalar's type, as in ``d2``.
    """

    category: Category
    bits: int
    torch: torch.dtype | None
    triton: str
    signature: str
    letter: str

    @property
    def bytes(self) -> int:
        """Bytes that one element takes in memory, rounded up to whole ones."""
        return (self.bits + 7) // 8


_C = Category
_INFO: dict[DataType, DTypeInfo] = {
    DataType.Double: DTypeInfo(_C.FLOAT, 64, torch.float64, "float64", "fp64", "d"),
    DataType.Float: DTypeInfo(_C.FLOAT, 32, torch.float32, "float32", "fp32", "f"),
    DataType.Half: DTypeInfo(_C.FLOAT, 16, torch.float16, "float16", "fp16", "h"),
    DataType.BFloat16: DTypeInfo(_C.FLOAT, 16, torch.bfloat16, "bfloat16", "bf16", "bf"),
    DataType.Int: DTypeInfo(_C.INT, 64, torch.int64, "int64", "i64", "i"),
    DataType.Int32: DTypeInfo(_C.INT, 32, torch.int32, "int32", "i32", "i"),
    DataType.UInt64: DTypeInfo(_C.INT, 64, torch.uint64, "uint64", "u64", "u"),
    DataType.Index: DTypeInfo(_C.INT, 64, torch.int64, "int64", "i64", "i"),
    DataType.Bool: DTypeInfo(_C.BOOL, 8, torch.bool, "int1", "i1", "b"),
    DataType.Float8_e4m3fn: DTypeInfo(_C.FLOAT, 8, torch.float8_e4m3fn, "uint8", "u8", "e4m3"),
    DataType.Float8_e5m2: DTypeInfo(_C.FLOAT, 8, torch.float8_e5m2, "uint8", "u8", "e5m2"),
    DataType.Float8_e8m0fnu: DTypeInfo(_C.FLOAT, 8, torch.float8_e8m0fnu, "uint8", "u8", "e8m0"),
    DataType.Float4_e2m1fn: DTypeInfo(_C.FLOAT, 4, None, "uint8", "u8", "e2m1"),
    DataType.Float4_e2m1fn_x2: DTypeInfo(
        _C.FLOAT, 8, torch.float4_e2m1fn_x2, "uint8", "u8", "e2m1x2"
    ),
    DataType.ComplexFloat: DTypeInfo(_C.COMPLEX, 64, torch.complex64, "float32", "fp32", "cf"),
    DataType.ComplexDouble: DTypeInfo(_C.COMPLEX, 128, torch.complex128, "float64", "fp64", "cd"),
    DataType.Null: DTypeInfo(_C.BOOL, 0, None, "void", "void", "n"),
}

_FROM_TORCH = {
    info.torch: dtype
    for dtype, info in _INFO.items()
    if info.torch is not None and dtype is not DataType.Index
}

REDUCED_FLOATS = frozenset(
    {DataType.Half, DataType.BFloat16, DataType.Float8_e4m3fn, DataType.Float8_e5m2}
)
"""Float types that arithmetic widens to Float, in registers and in the result."""

PACKED = frozenset(
    {
        DataType.Float8_e8m0fnu,
        DataType.Float4_e2m1fn,
        DataType.Float4_e2m1fn_x2,
        DataType.Null,
    }
)
"""Types that only views and library ops take: nothing computes with single elements of them."""

EIGHT_BIT_FLOATS = frozenset({DataType.Float8_e4m3fn, DataType.Float8_e5m2})
"""Float types that kernels move as bytes: GPUs differ in which they have, and in how they round."""


def from_torch(dtype: torch.dtype) -> DataType:
    """The DataType of a torch dtype; KeyError where there is none."""
    return _FROM_TORCH[dtype]


DTYPE_TEXT = "a DataType or a torch.dtype"
"""What errors say is expected where ``data_type`` gives None."""


def data_type(given: object) -> DataType | None:
    """The DataType that a user means by a DataType or a torch dtype; None by anything else."""
    if isinstance(given, torch.dtype):
        return _FROM_TORCH.get(given)
    return given if isinstance(given, DataType) else None


def dtype_advice(given: object) -> str:
    """The hint for a torch dtype that ``data_type`` gives None for; nothing for other objects."""
    if not isinstance(given, torch.dtype):
        return ""
    known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _FROM_TORCH)
    return f"Of torch's dtypes there are {known}: convert to one of these."


def of_python(value: bool | int | float | complex) -> DataType:
    """The DataType of a Python number: Bool, Int, Double or ComplexDouble."""
    if isinstance(value, bool):
        return DataType.Bool
    if isinstance(value, int):
        return DataType.Int
    if isinstance(value, float):
        return DataType.Double
    return DataType.ComplexDouble


def plain_number(value: bool | int | float | complex) -> bool | int | float | complex:
    """A number of Python's own class, for one of a derived class, as a member of an IntEnum."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else complex(value)


def holding(value: bool | int | float | complex) -> DataType:
    """The DataType of a Python number, UInt64 where Int does not hold it."""
    is_unsigned = isinstance(value, int) and 2**63 <= value < 2**64
    return DataType.UInt64 if is_unsigned else of_python(value)


@functools.cache
def e4m3_saturates() -> bool:
    """Whether this torch takes what is too large for e4m3 as 448; before 2.12 it gave nan."""
    large = torch.tensor(1e4, device="cpu").to(torch.float8_e4m3fn)
    return not large.float().isnan().item()


def compute_dtype(dtype: DataType) -> DataType:
    """The type arithmetic on ``dtype`` runs in: Float for the reduced floats, else itself."""
    return DataType.Float if dtype in REDUCED_FLOATS else dtype


def real_dtype(dtype: DataType) -> DataType:
    """Float for ComplexFloat, Double for ComplexDouble, else ``dtype``."""
    return {
        DataType.ComplexFloat: DataType.Float,
        DataType.ComplexDouble: DataType.Double,
    }.get(dtype, dtype)


def int_range(dtype: DataType) -> range:
    """The Python ints that can stand for a scalar of ``dtype``: its own, or those of an int64."""
    if dtype is DataType.UInt64:
        return range(2**64)
    bits = dtype.info.bits if dtype.info.category is Category.INT else 64
    return range(-(2 ** (bits - 1)), 2 ** (bits - 1))


def holds_int(dtype: DataType, number: int) -> bool:
    """Whether an int can stand for a scalar of ``dtype``."""
    # Python looks for ints of derived classes number by number in a range.
    held = int_range(dtype)
    return held.start <= number < held.stop


_RANK = {
    DataType.Bool: 0,
    DataType.Int32: 1,
    DataType.Index: 2,
    DataType.Int: 3,
    DataType.UInt64: 4,
    DataType.Float8_e4m3fn: 5,
    DataType.Float8_e5m2: 5,
    DataType.Half: 6,
    DataType.BFloat16: 6,
    DataType.Float: 7,
    DataType.Double: 8,
    DataType.ComplexFloat: 9,
    DataType.ComplexDouble: 10,
}


def wider(a: DataType, b: DataType) -> DataType:
    """torch.promote_types, by rank; two different floats of one width meet in Float."""
    if a is b:
        return a
    if {a, b} == {DataType.Double, DataType.ComplexFloat}:
        return DataType.ComplexDouble
    unranked = next((dtype for dtype in (a, b) if dtype not in _RANK), None)
    if unranked is not None:
        raise DefinitionError(
            f"expected operands of which one has a common type, got {a} and {b}",
            hint=f"Cast {unranked} in torch first: nothing computes with it.",
        )
    if _RANK[a] == _RANK[b]:
        return DataType.Float
    return a if _RANK[a] > _RANK[b] else b


def complex_dtype(dtype: DataType) -> DataType:
    """The complex type whose parts hold a float type."""
    return DataType.ComplexDouble if dtype is DataType.Double else DataType.ComplexFloat


def _raised(dtype: DataType, above: DataType) -> DataType:
    """A type in the category of a number that is weaker but of a higher one."""
    if dtype.info.category is Category.FLOAT and above.info.category is Category.COMPLEX:
        return complex_dtype(dtype)
    return wider(dtype, above)


def promote(*tiers: list[DataType]) -> DataType:
    """The common type of operands in tiers: dimensional ones, then 0-dim tensors, then scalars.

    A tier counts only where its category is above that of the tiers before it; its own type is
    then the result, so Int with a Double scalar is Double (torch would say float32). A complex
    number makes floats complex, but no wider.
    """
    result: DataType | None = None
    for tier in filter(None, tiers):
        own = functools.reduce(wider, tier)
        if result is None:
            result = own
        elif result.info.category < own.info.category:
            result = _raised(result, own)
    if result is None:
        raise ValueError("promotion of no operands")
    return result
