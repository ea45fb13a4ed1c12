"""Rows of narrow precision, which Blackwell GPUs alone have instructions for.

Float4 elements lie in pairs: a Float4_e2m1fn_x2 tensor has half the width of what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import Category, DataType
from ...ir import Dim, Extent, TensorType
from ...symbolic.queries import assume_multiple
from ...symbolic.sizes import is_integer
from ..parameters import Kind, Param
from ..shape_rules import INDEX_DTYPES, fail
from ..table import Call, Library, Op
from . import narrow_torch

_FORMATS = {
    DataType.Float4_e2m1fn: (16, DataType.Float4_e2m1fn_x2, DataType.Float8_e4m3fn),
    DataType.Float8_e4m3fn: (32, DataType.Float8_e4m3fn, DataType.Float8_e8m0fnu),
}
"""Block size, dtype of the elements and of the scales, by the dtype asked for."""

_TILE_ROWS, _TILE_COLUMNS = 128, 4
"""Scales are stored by tiles of that many."""


def _part(size: Extent, count: int) -> Extent:
    return size // count


def _upto(size: Extent, count: int) -> Extent:
    """``size`` rounded up to a multiple of ``count``."""
    return (size + count - 1) // count * count


def _product(dims: tuple[Dim, ...]) -> Extent:
    total: Extent = 1
    for dim in dims:
        total = total * dim.size
    return total


def _quantized(call: Call) -> tuple[TensorType, TensorType]:
    """Elements, and scales row by row."""
    given = call.value("input").tensor
    if given.dtype.info.category is not Category.FLOAT or given.dtype.info.bits < 16:
        raise fail(call.op.name, "a tensor of Float, BFloat16 or Half", given.dtype)
    return quantized_types(call, given.dims, "block_size")


def quantized_types(
    call: Call, dims: Sequence[Dim], block_size: str
) -> tuple[TensorType, TensorType]:
    """Elements of the dtype asked for, and a scale for each block along the last dim.

    Parameters
    ----------
    block_size : str
        The parameter that says how many elements a block has.
    """
    asked, size = call.attrs["dtype"], call.attrs[block_size]
    if not isinstance(asked, DataType) or asked not in _FORMATS:
        raise fail(call.op.name, "Float4_e2m1fn or Float8_e4m3fn as dtype", asked)
    block, elements, scales = _FORMATS[asked]
    if size != block:
        raise fail(call.op.name, f"{block_size}={block} for {asked}", size)
    width = dims[-1].size if dims else 1
    if is_integer(width) and not assume_multiple(width, block):
        raise fail(call.op.name, f"a last dim that is a multiple of {block}", width)
    rows = tuple(Dim(dim.size) for dim in dims[:-1])
    narrow = _part(width, 2) if elements is DataType.Float4_e2m1fn_x2 else width
    return (
        TensorType((*rows, Dim(narrow)), elements),
        TensorType((*rows, Dim(_part(width, block))), scales),
    )


def _infer_quantize(call: Call) -> tuple[TensorType, ...]:
    elements, scales = _quantized(call)
    if not call.attrs["swizzle_block_scales"]:
        return elements, scales
    rows = _upto(_product(scales.dims[:-1]), _TILE_ROWS)
    columns = _upto(scales.dims[-1].size, _TILE_COLUMNS)
    return elements, TensorType((Dim(rows), Dim(columns)), scales.dtype)


def _check_offsets(call: Call, *names: str) -> None:
    for name in names:
        found = call.value(name).tensor
        if found.rank != 1 or found.dtype not in INDEX_DTYPES:
            raise fail(call.op.name, f"a 1-dim Int32 tensor of {name}", found.dtype)


def _in_tiles(call: Call, scales: TensorType) -> TensorType:
    """Scales whose groups start at a tile each: 127 rows more for each group at most."""
    _check_offsets(call, "input_offsets", "output_offsets")
    if scales.rank != 2:
        raise fail(call.op.name, "a matrix", f"rank {scales.rank}")
    groups = call.value("output_offsets").tensor.dims[0].size
    rows = scales.dims[0].size + groups * (_TILE_ROWS - 1)
    columns = _upto(scales.dims[1].size, _TILE_COLUMNS)
    return TensorType((Dim(rows), Dim(columns)), scales.dtype)


def _infer_grouped_quantize(call: Call) -> tuple[TensorType, ...]:
    elements, scales = _quantized(call)
    return elements, _in_tiles(call, scales)


def _infer_mm(call: Call) -> tuple[TensorType, ...]:
    left, right = call.value("mat1").tensor, call.value("mat2").tensor
    asked = call.attrs["dtype"]
    assert isinstance(asked, DataType)
    for operand, rank in ((left, 2), (right, 3)):
        if operand.rank != rank or operand.dtype is not DataType.Float4_e2m1fn_x2:
            raise fail(
                call.op.name,
                "mat1 [m, k] and mat2 [g, k, n] of Float4_e2m1fn_x2",
                f"{operand.dtype} of rank {operand.rank}",
            )
    _check_offsets(call, "expert_offsets", "sf_offsets")
    return (TensorType((Dim(left.dims[0].size), Dim(right.dims[2].size)), asked),)


def _tensors(names: str) -> tuple[Param, ...]:
    return tuple(Param(name, Kind.TENSOR) for name in names.split())


_OPTIONS = (
    Param("block_size", Kind.INT, 16),
    Param("dtype", Kind.DTYPE, DataType.Float4_e2m1fn),
)
_GLOBAL = Param("global_scale", Kind.TENSOR, None)


def _blackwell(indices: str = "") -> Library:
    return Library(capability=lambda call: 100, indices=tuple(indices.split()))


ROWS: tuple[Op, ...] = (
    Op(
        "nv_block_quantize",
        (*_tensors("input"), _GLOBAL, Param("swizzle_block_scales", Kind.BOOL, False), *_OPTIONS),
        "Quantizes to 4 or 8 bits: the elements, and a scale for each block along the last dim.",
        "narrow precision",
        _blackwell(),
        _infer_quantize,
        narrow_torch.quantize,
        results=("quantized", "block_scales"),
    ),
    Op(
        "nv_grouped_block_quantize",
        (*_tensors("input input_offsets output_offsets"), _GLOBAL, *_OPTIONS),
        "Like nv_block_quantize for groups of rows; the scales of each group start a new tile.",
        "narrow precision",
        _blackwell("input_offsets output_offsets"),
        _infer_grouped_quantize,
        narrow_torch.grouped_quantize,
        results=("quantized", "block_scales"),
    ),
    Op(
        "preprocess_grouped_matmul_input_sf",
        _tensors("input input_offsets output_offsets"),
        "Block scales rearranged into the tiles that a grouped matrix product expects.",
        "narrow precision",
        _blackwell("input_offsets output_offsets"),
        lambda call: (_in_tiles(call, call.value("input").tensor),),
        narrow_torch.grouped_tiles,
    ),
    Op(
        "cutlass_nvfp4_grouped_mm",
        (
            *_tensors("mat1 mat2 scale1 scale2 alpha problem_sizes expert_offsets sf_offsets"),
            Param("dtype", Kind.DTYPE, DataType.BFloat16),
        ),
        "Matrix products of groups of rows of 4-bit elements, with a scale for each block of 16.",
        "narrow precision",
        _blackwell("problem_sizes expert_offsets sf_offsets"),
        _infer_mm,
        narrow_torch.grouped_mm,
    ),
)
