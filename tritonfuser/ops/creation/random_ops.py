"""Rows of the random numbers: uniform, normal, and rand_like, randn_like written in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from ...dtypes import Category, DataType
from ...errors import DefinitionError
from ...ir import Arg, Const, Dim, TensorType, Value
from ..forms import Composite, Random
from ..parameters import Kind, Param
from ..shape_rules import fail, tensor, with_operands
from ..table import Call, Op
from . import philox
from .fills import as_class, dtype_attr, infer_shaped

_RANDOM_DTYPES = (DataType.Double, DataType.Float, DataType.Half, DataType.BFloat16)
_SEEDS = (Param("rng_seed", Kind.SCALAR, None, True), Param("rng_offset", Kind.SCALAR, None, True))


def _random_params(first: str, second: str) -> tuple[Param, ...]:
    return (
        Param(first, Kind.SCALAR),
        Param(second, Kind.SCALAR),
        Param("shape", Kind.EXTENTS),
        *_SEEDS,
        Param("dtype", Kind.DTYPE, DataType.Float, True),
    )


def _record_random(builder: Any, call: Call) -> Any:
    name = call.op.name
    if dtype_attr(call) not in _RANDOM_DTYPES:
        raise fail(name, "one of Double, Float, Half, BFloat16", dtype_attr(call))
    seeds = [call.arg("rng_seed"), call.arg("rng_offset")]
    if seeds.count(None) == 1:
        raise DefinitionError(
            f"{name}: rng_seed and rng_offset must be provided together",
            hint="Give both to fix the numbers, or neither to draw from torch's generator.",
        )
    for seed in seeds:
        _check_seed(name, seed)
    bounds = {p.name: call.operand(p.name) for p in call.op.params[:2]}
    fixed = {key: as_class(builder, call, key, value) for key, value in bounds.items()}
    return builder.append(with_operands(call, **fixed))


def _check_seed(name: str, seed: Arg) -> None:
    if isinstance(seed, Value | Const) and seed.dtype.info.category is not Category.INT:
        raise fail(name, "an integer rng_seed and rng_offset", seed.dtype)


Draw = Callable[..., torch.Tensor]


def _drawn(
    draw: Draw, stateful: Draw, shape: Sequence[int], seed: Any, offset: Any, dtype: DataType
) -> torch.Tensor:
    """Numbers of the given seed and offset, or of torch's own generator."""
    kind = torch.float64 if dtype is DataType.Double else torch.float32
    if seed is None:
        return stateful(tuple(shape), dtype=kind)
    return draw(tuple(shape), int(seed), int(offset), kind, torch.get_default_device())


def _uniform(
    minval: float,
    maxval: float,
    shape: Sequence[int],
    rng_seed: int | None = None,
    rng_offset: int | None = None,
    dtype: DataType = DataType.Float,
) -> torch.Tensor:
    unit = _drawn(philox.uniform, torch.rand, shape, rng_seed, rng_offset, dtype)
    target = dtype.info.torch
    assert target is not None
    return philox.spread(unit, float(minval), float(maxval), target)


def _normal(
    mean: float,
    std: float,
    shape: Sequence[int],
    rng_seed: int | None = None,
    rng_offset: int | None = None,
    dtype: DataType = DataType.Float,
) -> torch.Tensor:
    unit = _drawn(philox.normal, torch.randn, shape, rng_seed, rng_offset, dtype)
    return (mean + unit * std).to(dtype.info.torch)


def _word(
    shape: Sequence[int], rng_seed: int, rng_offset: int, dtype: DataType = DataType.Int32
) -> torch.Tensor:
    """The bits of which ``uniform`` makes its numbers."""
    count = math.prod(shape)
    bits = philox.words(-(-count // 4), int(rng_seed), int(rng_offset), torch.get_default_device())
    signed = torch.where(bits < 1 << 31, bits, bits - (1 << 32))
    return signed.reshape(-1)[:count].reshape(tuple(shape)).to(dtype.info.torch)


# --- rand_like, randn_like -----------------------------------------------------------------------


def _infer_like(call: Call) -> tuple[TensorType, ...]:
    like = call.value("x")
    if not like.is_tensor or like.dtype not in _RANDOM_DTYPES:
        raise fail(
            call.op.name, "a tensor of Double, Float, Half or BFloat16", f"one of {like.dtype}"
        )
    return (tensor([Dim(dim.size) for dim in like.tensor.dims], like.dtype),)


def _record_like(builder: Any, call: Call, *, draw: str) -> Any:
    """``rand_like(x)`` -> ``uniform(0.0, 1.0, shape(x), dtype=x.dtype)``."""
    _infer_like(call)
    like = call.value("x")
    return builder.call(draw, 0.0, 1.0, builder.call("shape", like), dtype=like.dtype)


def _expand_like(ops: Any, x: Value, *, draw: str) -> Any:
    return getattr(ops, draw)(0.0, 1.0, ops.shape(x), dtype=x.dtype)


def _like(name: str, doc: str, draw: str, oracle: Draw) -> Op:
    return Op(
        name,
        (Param("x", Kind.TENSOR),),
        doc,
        "random",
        Composite(partial(_expand_like, draw=draw)),
        _infer_like,
        oracle,
        partial(_record_like, draw=draw),
    )


ROWS: tuple[Op, ...] = (
    Op(
        "uniform",
        _random_params("minval", "maxval"),
        "Random numbers, uniform in [minval, maxval); both are rounded to dtype first.",
        "random",
        Random("philox_uniform", bounded=True),
        infer_shaped,
        _uniform,
        _record_random,
    ),
    Op(
        "normal",
        _random_params("mean", "std"),
        "Random numbers, normally distributed.",
        "random",
        Random("philox_normal"),
        infer_shaped,
        _normal,
        _record_random,
    ),
    _like(
        "rand_like",
        "Random numbers, uniform in [0, 1), in the shape of x.",
        "uniform",
        torch.rand_like,
    ),
    _like(
        "randn_like",
        "Random numbers of the standard normal distribution, in the shape of x.",
        "normal",
        torch.randn_like,
    ),
)

INTERNAL: tuple[Op, ...] = (
    Op(
        "random_word",
        (Param("shape", Kind.EXTENTS), *_SEEDS, Param("dtype", Kind.DTYPE, DataType.Int32, True)),
        "The 32 random bits that uniform converts to a number.",
        "random",
        Random("philox_word", scaled=False),
        infer_shaped,
        _word,
    ),
)
"""Rows that only passes write: ``fd.ops`` does not have them."""
