"""Rows of the matrix products of groups and of scaled operands: grouped_mm, scaled_mm."""

from __future__ import annotations

from ...dtypes import PACKED, Category, DataType
from ...ir import Dim, Extent, TensorType, Value
from ...shapes.equal_extents import assume_extents_equal, assume_extents_fit
from ..parameters import Kind, Param
from ..shape_rules import INDEX_DTYPES, check_inner, fail
from ..table import Call, Library, Op
from . import grouped_torch
from .narrow import quantized_types

_BLOCK_FORMATS = frozenset(
    {
        DataType.Float4_e2m1fn,
        DataType.Float4_e2m1fn_x2,
        DataType.Float8_e8m0fnu,
    }
)
"""Formats that come with a scale for each block of a few elements."""

_SCALED = (
    Param("alpha", Kind.TENSOR, None),
    Param("bias", Kind.TENSOR, None),
    Param("beta", Kind.TENSOR, None),
    Param("dtype", Kind.DTYPE, DataType.BFloat16),
    Param("output_block_scale_size", Kind.INT, 0),
    Param("output_block_scale_dtype", Kind.DTYPE, DataType.BFloat16),
    Param("output_gamma", Kind.BOOL, False),
)


def _capability(call: Call) -> int:
    """Scales of blocks, of operands or of the result, need Blackwell's instructions."""
    given = [arg for arg in call.args if isinstance(arg, Value)]
    scales = [call.arg(name) for name in ("scale1", "scale2")]
    narrow = any(v.dtype in _BLOCK_FORMATS for v in given)
    narrow |= any(isinstance(s, Value) and s.dtype is DataType.Float8_e4m3fn for s in scales)
    narrow |= bool(call.attrs["output_block_scale_size"])
    return 100 if narrow else 0


def _is_one(dim: Dim) -> bool:
    return assume_extents_equal(dim.size, 1)


def _check_scales(call: Call) -> None:
    """Factors of one element; what belongs to scaled or quantized results beside those."""
    for mat, name in (("mat1", "scale1"), ("mat2", "scale2")):
        scale = call.arg(name)
        if isinstance(scale, Value):
            _check_scale(call, scale.tensor, call.value(mat).tensor, name)
    for name in ("alpha", "beta"):
        factor = call.arg(name)
        if isinstance(factor, Value) and not all(_is_one(d) for d in factor.tensor.dims):
            raise fail(call.op.name, f"an {name} of one element", list(factor.tensor.shape))
    if call.arg("beta") is not None and call.arg("bias") is None:
        raise fail(call.op.name, "a bias beside beta", None)
    size, gamma = call.attrs["output_block_scale_size"], call.attrs["output_gamma"]
    if gamma and not size:
        raise fail(call.op.name, "an output_block_scale_size beside output_gamma", size)
    if size and call.arg("scale1") is None:
        raise fail(call.op.name, "scale1 and scale2 beside output_block_scale_size", None)


def _check_scale(call: Call, scale: TensorType, mat: TensorType, name: str) -> None:
    """A factor of all of a matrix, of its rows or columns, or of blocks of one size.

    The scales of block formats lie as the device's instructions want them.
    """
    if scale.dtype.info.category is not Category.FLOAT:
        raise fail(call.op.name, f"{name} of a floating-point dtype", scale.dtype)
    if mat.dtype in _BLOCK_FORMATS or scale.dtype in _BLOCK_FORMATS | {DataType.Float8_e4m3fn}:
        return
    pairs = zip(reversed(scale.shape[-2:]), reversed(mat.shape[-2:]), strict=False)
    wrong = [have for have, size in pairs if not _divides(have, size)]
    if scale.rank > 3 or wrong:
        raise fail(
            call.op.name,
            f"{name} of sizes that divide those of the matrix, {list(mat.shape)}",
            list(scale.shape),
        )


def _divides(part: Extent, whole: Extent) -> bool:
    """Whether blocks of one size may cut a dim; unknown sizes may turn out to fit."""
    if not isinstance(part, int) or not isinstance(whole, int):
        return True
    return part in (1, whole) or (part > 0 and whole % part == 0)


def _check_bias(call: Call, dims: tuple[Dim, ...]) -> None:
    """A bias that broadcasts to the product."""
    bias = call.arg("bias")
    if not isinstance(bias, Value):
        return
    if bias.dtype.info.category is not Category.FLOAT or bias.dtype in PACKED:
        raise fail(call.op.name, "a bias of a floating-point dtype", bias.dtype)
    pairs = zip(reversed(bias.tensor.dims), reversed(dims), strict=False)
    fits = all(_is_one(d) or assume_extents_fit(d.size, wanted.size) for d, wanted in pairs)
    if bias.tensor.rank > len(dims) or not fits:
        shape = [dim.size for dim in dims]
        raise fail(call.op.name, f"a bias that broadcasts to {shape}", list(bias.tensor.shape))


def _result_dtype(call: Call) -> DataType:
    """The dtype asked for where operands are scaled, else theirs."""
    asked = call.attrs["dtype"]
    assert isinstance(asked, DataType)
    if call.arg("scale1") is None:
        return call.value("mat1").dtype
    quantized = bool(call.attrs["output_block_scale_size"])
    if asked.info.category is not Category.FLOAT or (asked in PACKED and not quantized):
        raise fail(call.op.name, "a floating-point dtype of 8 bits and more", asked)
    return asked


def _results(call: Call, dims: tuple[Dim, ...]) -> tuple[TensorType, ...]:
    """The product; quantized with the scales of its blocks, and the factor of all, if asked for."""
    dtype = _result_dtype(call)
    _check_bias(call, dims)
    if not call.attrs["output_block_scale_size"]:
        return (TensorType(dims, dtype),)
    elements, scales = quantized_types(call, dims, "output_block_scale_size")
    if call.attrs["output_block_scale_dtype"] is not scales.dtype:
        raise fail(
            call.op.name,
            f"output_block_scale_dtype={scales.dtype} for {dtype}",
            call.attrs["output_block_scale_dtype"],
        )
    gamma = (TensorType((), DataType.Float),) if call.attrs["output_gamma"] else ()
    return (elements, scales, *gamma)


def _infer_scaled(call: Call) -> tuple[TensorType, ...]:
    left, right = call.value("mat1").tensor.dims, call.value("mat2").tensor.dims
    if len(left) != 2 or len(right) != 2:
        raise fail(call.op.name, "matrices", f"ranks {len(left)} and {len(right)}")
    check_inner(call, left[1], right[0])
    _check_scales(call)
    return _results(call, (Dim(left[0].size), Dim(right[1].size)))


def _infer_grouped(call: Call) -> tuple[TensorType, ...]:
    """Groups lie along the rows of mat1, the columns of mat2, or their inner extent."""
    left, right = call.value("mat1").tensor, call.value("mat2").tensor
    offsets = call.value("offsets").tensor
    if offsets.rank != 1 or offsets.dtype not in INDEX_DTYPES:
        raise fail(call.op.name, "a 1-dim Int32 tensor of offsets", offsets.dtype)
    if (call.arg("scale1") is None) is not (call.arg("scale2") is None):
        raise fail(call.op.name, "scale1 and scale2, or neither", "one of them")
    if left.dtype is not right.dtype and call.arg("scale1") is None:
        raise fail(call.op.name, f"operands of one dtype, {left.dtype}", right.dtype)
    if {left.rank, right.rank} not in ({2}, {2, 3}):
        raise fail(
            call.op.name,
            "matrices, one of which may have a leading dim of groups",
            f"ranks {left.rank} and {right.rank}",
        )
    _check_scales(call)
    groups, rows, columns = offsets.dims[0].size, left.dims[-2].size, right.dims[-1].size
    check_inner(call, left.dims[-1], right.dims[-2])
    for operand in (left, right):
        if operand.rank == 3 and not assume_extents_fit(operand.dims[0].size, groups):
            raise fail(call.op.name, f"{groups} groups, one an offset", operand.dims[0].size)
    dims = [rows, columns] if 3 in (left.rank, right.rank) else [groups, rows, columns]
    return _results(call, tuple(map(Dim, dims)))


def _ends(call: Call) -> int:
    """Where groups may end: at each element of the dim that they cut, and behind the last."""
    left, right = call.value("mat1").tensor, call.value("mat2").tensor
    cut = right.sizes[-1] if left.rank > right.rank else left.sizes[-1 if right.rank == 2 else 0]
    return cut + 1


def _grouped_results(call: Call) -> int:
    return 1 if call.arg("scale1") is None else 3


_MATRICES = (Param("mat1", Kind.TENSOR), Param("mat2", Kind.TENSOR))

ROWS: tuple[Op, ...] = (
    Op(
        "grouped_mm",
        (
            *_MATRICES,
            Param("offsets", Kind.TENSOR),
            Param("scale1", Kind.TENSOR, None),
            Param("scale2", Kind.TENSOR, None),
            *_SCALED,
        ),
        "Matrix products of groups of rows that end at offsets; (out, None, None) if scaled.",
        "contraction",
        Library(capability=_capability, indices=("offsets",), positions=_ends),
        _infer_grouped,
        grouped_torch.grouped_mm,
        returns=_grouped_results,
    ),
    Op(
        "scaled_mm",
        (*_MATRICES, Param("scale1", Kind.TENSOR), Param("scale2", Kind.TENSOR), *_SCALED),
        "``alpha * (mat1 * scale1) @ (mat2 * scale2) + beta * bias``, as (out, None, None).",
        "contraction",
        Library(capability=_capability),
        _infer_scaled,
        grouped_torch.scaled_mm,
        returns=lambda call: 3,
        results=("out", "block_scale", "gamma"),
    ),
)
