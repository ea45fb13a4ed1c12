"""Products of groups and of scaled matrices by torch: its kernels where they fit, else formulas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...dtypes import DataType
from ...errors import IndexRangeError
from . import narrow_torch

Tensor = torch.Tensor
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def scaled_mm(
    mat1: Tensor,
    mat2: Tensor,
    scale1: Tensor,
    scale2: Tensor,
    alpha: Tensor | None = None,
    bias: Tensor | None = None,
    beta: Tensor | None = None,
    dtype: DataType = DataType.BFloat16,
    output_block_scale_size: int = 0,
    output_gamma: bool = False,
    **_: Any,
) -> Tensor | tuple[Tensor, ...]:
    """``alpha * (mat1 * scale1) @ (mat2 * scale2) + beta * bias``, summed in float32."""
    if output_block_scale_size:
        operands = (mat1, mat2, scale1, scale2, alpha, bias, beta)
        product = scaled_mm(*operands, DataType.Float)
        return _quantized(product, dtype, output_block_scale_size, output_gamma)
    plain = alpha is None and bias is None
    if plain and _has_blocks(mat1, scale1):
        return torch._scaled_mm(mat1, mat2, scale1, scale2, out_dtype=dtype.info.torch)
    if plain and _by_kernel(mat1, mat2):
        scales = _kernel_scales(mat1, mat2, scale1, scale2, dtype)
        if scales is not None:
            return torch._scaled_mm(mat1, mat2, *scales, out_dtype=dtype.info.torch)
    product = _scaled(mat1, scale1) @ _scaled(mat2, scale2)
    return _finished(product, alpha, bias, beta, dtype)


def grouped_mm(
    mat1: Tensor,
    mat2: Tensor,
    offsets: Tensor,
    scale1: Tensor | None = None,
    scale2: Tensor | None = None,
    alpha: Tensor | None = None,
    bias: Tensor | None = None,
    beta: Tensor | None = None,
    dtype: DataType = DataType.BFloat16,
    output_block_scale_size: int = 0,
    output_gamma: bool = False,
    **_: Any,
) -> Tensor | tuple[Tensor, ...]:
    """A product for each group: of rows, of columns, or of parts of the inner extent.

    Raises
    ------
    IndexRangeError
        Of offsets on a CPU, and where torch has no kernel: a group ends before it starts, or behind
        the last row.
    """
    if not offsets.is_cuda:
        _check_ends(offsets, mat1, mat2)
    if output_block_scale_size:
        operands = (mat1, mat2, offsets, scale1, scale2, alpha, bias, beta)
        product = grouped_mm(*operands, DataType.Float)
        return _quantized(product, dtype, output_block_scale_size, output_gamma)
    if scale1 is None or scale2 is None:
        if _is_aligned(mat1) and _is_aligned(mat2) and mat1.dtype is torch.bfloat16:
            return torch._grouped_mm(mat1, mat2, offs=offsets.int())
        return _by_group(mat1, mat2, offsets)
    scales = _grouped_scales(mat1, mat2, scale1, scale2, dtype)
    if scales is not None and alpha is None and bias is None:
        return torch._scaled_grouped_mm(
            mat1, mat2, *scales, offs=offsets.int(), out_dtype=dtype.info.torch
        )
    if mat1.dim() == mat2.dim() == 2:
        wide = _by_part(mat1, scale1, offsets, 1), _by_part(mat2, scale2, offsets, 0)
    else:
        wide = _scaled(mat1, scale1), _scaled(mat2, scale2)
    return _finished(_by_group(*wide, offsets), alpha, bias, beta, dtype)


def _finished(
    product: Tensor,
    alpha: Tensor | None,
    bias: Tensor | None,
    beta: Tensor | None,
    dtype: DataType,
) -> Tensor:
    if alpha is not None:
        product = product * alpha.reshape(())
    if bias is not None:
        added = bias.float() if beta is None else bias.float() * beta.reshape(())
        product = product + added
    return product.to(dtype.info.torch)


def _quantized(
    product: Any, dtype: DataType, block_size: int, with_factor: bool
) -> tuple[Tensor, ...]:
    """Elements and the scales of their blocks; with the factor of all, times which they stand for

    the product: it makes the largest scale the largest of its type.
    """
    if not with_factor:
        return narrow_torch.quantize(product, None, False, block_size, dtype)
    factor = narrow_torch.overall_factor(product, dtype)
    return *narrow_torch.quantize(product / factor, None, False, block_size, dtype), factor


# --- groups --------------------------------------------------------------------------------------


def _check_ends(offsets: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    size = mat2.shape[-1] if mat1.dim() > mat2.dim() else mat1.shape[-1 if mat2.dim() == 2 else 0]
    for start, end in _ranges(offsets):
        if not start <= end <= size:
            raise IndexRangeError(
                f"grouped_mm: a group from {start} to {end} is out of range for a dim of {size} "
                "elements",
                hint="Offsets are the ends of groups, in ascending order.",
            )


def _ranges(offsets: Tensor) -> Iterator[tuple[int, int]]:
    start = 0
    for end in offsets.tolist():
        yield start, end
        start = end


def _by_group(mat1: Tensor, mat2: Tensor, offsets: Tensor) -> Tensor:
    """One product after another; what is in no group is 0."""
    _check_ends(offsets, mat1, mat2)
    rows, columns = mat1.shape[-2], mat2.shape[-1]
    if mat1.dim() == mat2.dim():
        out = mat1.new_zeros(len(offsets), rows, columns)
        for group, (start, end) in enumerate(_ranges(offsets)):
            out[group] = mat1[:, start:end] @ mat2[start:end]
        return out
    out = mat1.new_zeros(rows, columns)
    for group, (start, end) in enumerate(_ranges(offsets)):
        if mat1.dim() == 2:
            out[start:end] = mat1[start:end] @ mat2[group]
        else:
            out[:, start:end] = mat1[group] @ mat2[:, start:end]
    return out


# --- scales --------------------------------------------------------------------------------------


def _by_part(mat: Tensor, scale: Tensor, offsets: Tensor, inner: int) -> Tensor:
    """As ``_scaled``; a scale with a leading dim is one for each group along ``inner``."""
    if scale.dim() == 2:
        return _scaled(mat, scale)
    wide = mat.float()
    for group, (start, end) in enumerate(_ranges(offsets)):
        part = wide.narrow(inner, start, end - start)
        part.copy_(_scaled(part, scale[group]))
    return wide


def _scaled(mat: Tensor, scale: Tensor) -> Tensor:
    """A matrix in float32 times its scale: of all, of rows, of columns, or of blocks."""
    factor = scale.float()
    for back in range(1, min(factor.dim(), mat.dim()) + 1):
        size, have = mat.shape[-back], factor.shape[-back]
        if have not in (1, size):
            factor = factor.repeat_interleave(size // have, -back)
    return mat.float() * factor


def _has_blocks(mat: Tensor, scale: Tensor) -> bool:
    """Whether scales are in the order that Blackwell's instructions want them in."""
    narrow = mat.dtype is torch.float4_e2m1fn_x2
    return narrow or scale.dtype in (torch.float8_e8m0fnu, torch.float8_e4m3fn)


# --- torch's kernels -----------------------------------------------------------------------------


def _is_aligned(mat: Tensor) -> bool:
    """Whether a bfloat16 matrix on a Hopper GPU lies as torch's grouped kernel wants it."""
    if not mat.is_cuda or torch.cuda.get_device_capability(mat.device) < (9, 0):
        return False
    inner, outer = sorted(mat.stride()[-2:])
    starts = mat.data_ptr() % 16 == 0 and mat.numel() > 0
    return starts and inner == 1 and outer * mat.element_size() % 16 == 0


def _by_kernel(mat1: Tensor, mat2: Tensor) -> bool:
    """Whether torch's kernel for 8-bit floats takes the matrices."""
    if not mat1.is_cuda or torch.cuda.get_device_capability(mat1.device) < (8, 9):
        return False
    eights = mat1.dtype in _FLOAT8 and mat2.dtype in _FLOAT8
    laid = mat1.stride(1) == 1 and mat2.stride(0) == 1
    whole = all(size % 16 == 0 and size for size in (*mat1.shape, *mat2.shape))
    both_wide = mat1.dtype is mat2.dtype is torch.float8_e5m2
    return eights and laid and whole and not both_wide


def _kernel_scales(
    mat1: Tensor, mat2: Tensor, scale1: Tensor, scale2: Tensor, dtype: DataType
) -> tuple[Tensor, Tensor] | None:
    """The scales as torch's kernel wants them: of all, or of rows and columns."""
    if scale1.numel() == scale2.numel() == 1:
        return scale1.float().reshape(()), scale2.float().reshape(())
    rows, columns = (mat1.shape[0], 1), (1, mat2.shape[1])
    by_row = scale1.shape == rows and scale2.shape == columns and dtype is DataType.BFloat16
    return (scale1.float().contiguous(), scale2.float().contiguous()) if by_row else None


def _grouped_scales(
    mat1: Tensor, mat2: Tensor, scale1: Tensor, scale2: Tensor, dtype: DataType
) -> tuple[Tensor, Tensor] | None:
    """The scales as torch's grouped kernel wants them, where it takes the matrices.

    On Hopper: rows of mat1 in groups, a scale for each row and for each column of each group.
    """
    if _has_blocks(mat1, scale1):
        return scale1, scale2
    if not mat1.is_cuda or torch.cuda.get_device_capability(mat1.device) != (9, 0):
        return None
    by_row = mat1.dim() == 2 and mat2.dim() == 3 and dtype is DataType.BFloat16
    eights = mat1.dtype is mat2.dtype is torch.float8_e4m3fn
    if not (by_row and eights and mat1.stride(1) == 1 and mat2.stride(1) == 1):
        return None
    groups, inner, columns = mat2.shape
    whole = inner % 16 == 0 and columns % 16 == 0 and mat1.numel() > 0
    wanted = (mat1.shape[0], 1), (groups, 1, columns)
    if not whole or (scale1.shape, scale2.shape) != wanted:
        return None
    return scale1.float().flatten().contiguous(), scale2.float().squeeze(1).contiguous()
