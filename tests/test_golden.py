"""A dozen kernels as text, one of each kind, to be read as code: ``tests/golden/NAME.py.txt``.

``pytest tests/test_golden.py --update-golden`` writes them anew. A change of more than a handful
is something to explain in the review.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.conftest import GOLDEN
from tritonfuser import DataType, FusionDefinition
from tritonfuser.ir import ScalarType

ARCH = "sm_90"
D = DataType


@dataclass(frozen=True)
class Kernel:
    """A definition for an H200, and the scheduler of its first kernel."""

    scheduler: str
    define: Callable[[FusionDefinition], None]


def _tensor(fd: FusionDefinition, shape: Sequence[int], dtype: DataType = D.BFloat16) -> Any:
    return fd.define_tensor(shape=list(shape), contiguity=True, dtype=dtype)


def _float(fd: FusionDefinition, shape: Sequence[int]) -> Any:
    return fd.ops.cast(_tensor(fd, shape), D.Float)


def _out(fd: FusionDefinition, value: Any) -> None:
    fd.add_output(fd.ops.cast(value, D.BFloat16))


def _softmax(fd: FusionDefinition, shape: Sequence[int] = (4096, 2048), dim: int = 1) -> None:
    x = _float(fd, shape)
    exps = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [dim], keepdim=True)))
    _out(fd, fd.ops.mul(exps, fd.ops.reciprocal(fd.ops.sum(exps, [dim], keepdim=True))))


def _long_softmax(fd: FusionDefinition) -> None:
    _softmax(fd, (2048, 73728))


def _softmax_of_columns(fd: FusionDefinition) -> None:
    _softmax(fd, (512, 4096), 0)


def _layernorm(fd: FusionDefinition) -> None:
    x, weight, bias = _float(fd, (4096, 1000)), _float(fd, (1000,)), _float(fd, (1000,))
    var, mean = fd.ops.var_mean(x, dims=[1], correction=0, keepdim=True)
    normal = fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))
    _out(fd, fd.ops.add(fd.ops.mul(normal, weight), bias))


def _long_rmsnorm_backward(fd: FusionDefinition) -> None:
    _rmsnorm_backward(fd, (2048, 32768))


def _rmsnorm_backward(fd: FusionDefinition, shape: tuple[int, int] = (8192, 2048)) -> None:
    grad, x, weight = _float(fd, shape), _float(fd, shape), _float(fd, shape[1:])
    rstd = _tensor(fd, (shape[0], 1), D.Float)
    normal, scaled = fd.ops.mul(x, rstd), fd.ops.mul(grad, weight)
    along = fd.ops.mul(fd.ops.sum(fd.ops.mul(scaled, normal), [1], keepdim=True), 1 / shape[1])
    _out(fd, fd.ops.mul(rstd, fd.ops.sub(scaled, fd.ops.mul(normal, along))))
    _out(fd, fd.ops.sum(fd.ops.mul(grad, normal), [0]))


def _outer_sum(fd: FusionDefinition) -> None:
    _out(fd, fd.ops.sum(_float(fd, (512, 65536)), [0]))


def _split_sum(fd: FusionDefinition) -> None:
    fd.add_output(fd.ops.sum(_tensor(fd, (2048, 4096), D.Float), [0, 1]))


def _transpose(fd: FusionDefinition) -> None:
    x, y = _float(fd, (2048, 4096)), _float(fd, (4096, 2048))
    _out(fd, fd.ops.add(fd.ops.permute(x, [1, 0]), y))


def _cumsum(fd: FusionDefinition) -> None:
    fd.add_output(fd.ops.cumsum(_tensor(fd, (512, 10000), D.Float), 1))


def _gelu(fd: FusionDefinition) -> None:
    x = fd.ops.add(_float(fd, (4096, 4096)), _float(fd, (4096,)))
    inner = fd.ops.mul(0.7978845608, fd.ops.add(x, fd.ops.mul(0.044715, fd.ops.pow(x, 3.0))))
    _out(fd, fd.ops.mul(fd.ops.mul(0.5, x), fd.ops.add(1.0, fd.ops.tanh(inner))))


def _index_select(fd: FusionDefinition) -> None:
    table, rows = _tensor(fd, (32000, 1024)), _tensor(fd, (4096,), D.Int)
    fd.add_output(fd.ops.mul(fd.ops.index_select(table, rows, 0), 2.0))


def _scatter(fd: FusionDefinition) -> None:
    """Rows of a cache replaced by new ones, which are computed on the way."""
    cache, new, scale = (_tensor(fd, shape) for shape in ((4096, 128), (512, 128), (512, 128)))
    index = _tensor(fd, (512, 128), D.Int)
    fd.add_output(fd.ops.scatter(cache, index, fd.ops.cast(fd.ops.mul(new, scale), D.BFloat16), 0))


def _rotate_half(fd: FusionDefinition) -> None:
    """What a rotary embedding does: slices of a row, one negated, joined the other way round."""
    x, cos, sin = _float(fd, (8, 1024, 128)), _float(fd, (1024, 128)), _float(fd, (1024, 128))
    first = fd.ops.slice(x, [0, 0, 0], [8, 1024, 64])
    second = fd.ops.slice(x, [0, 0, 64], [8, 1024, 128])
    turned = fd.ops.cat([fd.ops.neg(second), first], 2)
    _out(fd, fd.ops.add(fd.ops.mul(x, cos), fd.ops.mul(turned, sin)))


def _pad(fd: FusionDefinition) -> None:
    fd.add_output(fd.ops.add(fd.ops.pad(_tensor(fd, (1000, 1000), D.Float), [1, 2, 3, 0]), 1.0))


def _dropout(fd: FusionDefinition) -> None:
    x = _float(fd, (4096, 4096))
    keep = fd.ops.lt(fd.ops.uniform(0.0, 1.0, [4096, 4096]), 0.9)
    _out(fd, fd.ops.mul(fd.ops.mul(x, keep), 1 / 0.9))


def _linear_silu(fd: FusionDefinition) -> None:
    """A product with its bias, activation and residual."""
    x, weight, bias = (_tensor(fd, shape) for shape in ((4096, 1024), (4096, 1024), (4096,)))
    rest = _float(fd, (4096, 4096))
    y = fd.ops.cast(fd.ops.linear(x, weight, bias), D.Float)
    _out(fd, fd.ops.add(fd.ops.mul(y, fd.ops.sigmoid(y)), rest))


KERNELS: dict[str, Kernel] = {
    "linear_silu": Kernel("matmul", _linear_silu),
    "softmax": Kernel("inner_persistent", _softmax),
    "long_softmax": Kernel("inner_persistent", _long_softmax),
    "softmax_of_columns": Kernel("outer_persistent", _softmax_of_columns),
    "layernorm": Kernel("inner_persistent", _layernorm),
    "rmsnorm_backward": Kernel("inner_outer_persistent", _rmsnorm_backward),
    "long_rmsnorm_backward": Kernel("inner_outer_persistent", _long_rmsnorm_backward),
    "outer_sum": Kernel("reduction", _outer_sum),
    "split_sum": Kernel("reduction", _split_sum),
    "transpose": Kernel("transpose", _transpose),
    "cumsum": Kernel("scan", _cumsum),
    "gelu": Kernel("pointwise", _gelu),
    "index_select": Kernel("pointwise", _index_select),
    "scatter": Kernel("pointwise", _scatter),
    "rotate_half": Kernel("pointwise", _rotate_half),
    "pad": Kernel("pointwise", _pad),
    "dropout": Kernel("pointwise", _dropout),
}


def _meta_inputs(fd: FusionDefinition) -> list[Any]:
    """Tensors without numbers, of the sizes that the definition says."""
    found: list[Any] = []
    for value in fd.fusion.ir.inputs:
        assert not isinstance(value.type, ScalarType)
        found.append(torch.empty(value.type.shape, dtype=value.dtype.info.torch, device="meta"))
    return found


def _text(fd: FusionDefinition) -> str:
    """All kernels, without the comments that say which line of this file they are from."""
    kernels = fd.kernels(_meta_inputs(fd), arch=ARCH)
    text = "\n\n".join(kernel.text for kernel in kernels)
    return re.sub(r"(?m)^ *# test_golden\.py:\d+\n", "", text)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str, golden: Callable[[str, str], None]) -> None:
    with FusionDefinition() as fd:
        KERNELS[name].define(fd)
    first = fd.segments(_meta_inputs(fd), arch=ARCH).segments[0]
    assert first.scheduler == KERNELS[name].scheduler
    golden(f"{name}.py.txt", _text(fd))


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {f"{name}.py.txt" for name in KERNELS}
