"""Formats with a scale for each block, in torch: NVFP4 (16 elements of 4 bits) and MXFP8 (32 of 8).

Scales for matrix products lie in tiles of 128 rows and 4 columns: 32 runs of 16 bytes, each with
the 4 columns of the rows r, r + 32, r + 64 and r + 96.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ...dtypes import DataType

Tensor = torch.Tensor
_LARGEST = 6.0
_STEPS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
"""Between the numbers of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6; ties go to the even code."""
_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


# --- elements of four bits -----------------------------------------------------------------------


def encode(x: Tensor) -> Tensor:
    """Floats rounded to 4 bits, two in a byte, the first in the low half."""
    size = x.float().abs()
    code = torch.zeros(x.shape, dtype=torch.uint8, device=x.device)
    for place, step in enumerate(_STEPS):
        code += size >= step if place % 2 else size > step
    code |= x.signbit().to(torch.uint8) << 3
    packed = code[..., 0::2] | (code[..., 1::2] << 4)
    return packed.view(torch.float4_e2m1fn_x2)


def decode(x: Tensor) -> Tensor:
    """The floats that pairs of 4 bits stand for."""
    packed = x.contiguous().view(torch.uint8)
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
    values = torch.tensor(_VALUES, device=x.device)[(codes & 7).long()]
    return torch.where(codes >= 8, -values, values)


# --- blocks --------------------------------------------------------------------------------------


def _blocks(input: Tensor, size: int) -> Tensor:
    return input.float().reshape(*input.shape[:-1], input.shape[-1] // size, size)


def _four_bits(input: Tensor, factor: Tensor | None, size: int) -> tuple[Tensor, Tensor]:
    blocks = _blocks(input, size)
    overall = torch.ones((), device=input.device) if factor is None else factor.float().reshape(())
    wanted = blocks.abs().amax(-1) * overall / _LARGEST
    scales = wanted.clamp(0.015625, 448.0).to(torch.float8_e4m3fn)
    scaled = blocks * (overall / scales.float()).unsqueeze(-1)
    return encode(scaled.flatten(-2)), scales


def _eight_bits(input: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Scales are powers of two, rounded up, so that nothing overflows."""
    blocks = _blocks(input, size)
    mantissa, exponent = torch.frexp(blocks.abs().amax(-1) / 448.0)
    exponent = torch.where(mantissa <= 0.5, exponent - 1, exponent).clamp(-127, 127)
    exponent = torch.where(mantissa == 0, -127, exponent)
    scales = (exponent + 127).to(torch.uint8).view(torch.float8_e8m0fnu)
    scaled = torch.ldexp(blocks, -exponent.unsqueeze(-1)).clamp(-448, 448)
    return scaled.flatten(-2).to(torch.float8_e4m3fn), scales


def overall_factor(input: Tensor, dtype: DataType) -> Tensor:
    """What to divide by so that the scale of the block with the largest number is 448; 0-dim.

    Scales of 8-bit elements have the range of float32: for them it is 1.
    """
    largest = input.float().abs().amax() / (448.0 * _LARGEST)
    one = torch.ones_like(largest)
    return torch.where((largest > 0) & (dtype is DataType.Float4_e2m1fn), largest, one)


def quantize(
    input: Tensor,
    global_scale: Tensor | None = None,
    swizzle_block_scales: bool = False,
    block_size: int = 16,
    dtype: DataType = DataType.Float4_e2m1fn,
) -> tuple[Tensor, Tensor]:
    """Elements and scales; scales in tiles, as one matrix, with ``swizzle_block_scales``."""
    if dtype is DataType.Float4_e2m1fn:
        elements, scales = _four_bits(input, global_scale, block_size)
    else:
        elements, scales = _eight_bits(input, block_size)
    return elements, tiles(scales.flatten(0, -2)) if swizzle_block_scales else scales


def grouped_quantize(
    input: Tensor,
    input_offsets: Tensor,
    output_offsets: Tensor,
    global_scale: Tensor | None = None,
    block_size: int = 16,
    dtype: DataType = DataType.Float4_e2m1fn,
) -> tuple[Tensor, Tensor]:
    elements, scales = quantize(input, global_scale, False, block_size, dtype)
    return elements, grouped_tiles(scales, input_offsets, output_offsets)


# --- tiles ---------------------------------------------------------------------------------------


def tiles(scales: Tensor) -> Tensor:
    """A matrix of scales in the order of tiles, filled up with zeros to whole ones."""
    rows, columns = scales.shape
    bytes_ = F.pad(scales.view(torch.uint8), [0, -columns % 4, 0, -rows % 128])
    shape = bytes_.shape
    split = bytes_.view(shape[0] // 128, 4, 32, shape[1] // 4, 4)
    return split.permute(0, 3, 2, 1, 4).reshape(shape).view(scales.dtype)


def untiled(scales: Tensor) -> Tensor:
    """Rows and columns of a matrix that is stored in tiles."""
    rows, columns = scales.shape
    split = scales.contiguous().view(torch.uint8).view(rows // 128, columns // 4, 32, 4, 4)
    return split.permute(0, 3, 2, 1, 4).reshape(rows, columns).view(scales.dtype)


def grouped_tiles(input: Tensor, input_offsets: Tensor, output_offsets: Tensor) -> Tensor:
    """Rows of scales moved to where their group's tiles start, and put in the order of tiles."""
    count = input.shape[0] + len(output_offsets) * 127
    place = torch.arange(input.shape[0], device=input.device)
    starts = input_offsets.long()
    group = torch.searchsorted(starts, place, right=True) - 1
    target = output_offsets.long()[group] + place - starts[group]
    columns = input.shape[1]
    room = torch.zeros(count + -count % 128, columns, dtype=torch.uint8, device=input.device)
    room[target] = input.contiguous().view(torch.uint8)
    return tiles(room)[:count].view(input.dtype)


# --- products ------------------------------------------------------------------------------------


def grouped_mm(
    mat1: Tensor,
    mat2: Tensor,
    scale1: Tensor,
    scale2: Tensor,
    alpha: Tensor,
    problem_sizes: Tensor,
    expert_offsets: Tensor,
    sf_offsets: Tensor,
    dtype: DataType = DataType.BFloat16,
) -> Tensor:
    """``alpha[g] * rows of group g @ mat2[g]``; offsets are where the rows and tiles start."""
    out = torch.zeros(mat1.shape[0], mat2.shape[2], device=mat1.device)
    left = decode(mat1)
    for group, (count, _, _) in enumerate(problem_sizes.tolist()):
        start, tile = int(expert_offsets[group]), int(sf_offsets[group])
        whole = count + -count % 128
        by_row = untiled(scale1[tile : tile + whole])[:count]
        columns = decode(mat2[group].transpose(0, 1))
        by_column = untiled(_whole_tiles(scale2[group]))[: columns.shape[0]]
        rows = _unscaled(left[start : start + count], by_row)
        product = rows @ _unscaled(columns, by_column).transpose(0, 1)
        out[start : start + count] = product * alpha[group].float()
    return out.to(dtype.info.torch)


def _whole_tiles(scales: Tensor) -> Tensor:
    missing = -scales.shape[0] % 128
    return F.pad(scales.view(torch.uint8), [0, 0, 0, missing]).view(scales.dtype)


def _unscaled(elements: Tensor, scales: Tensor) -> Tensor:
    wide = scales.float().repeat_interleave(16, -1)
    return elements * wide[:, : elements.shape[1]]
