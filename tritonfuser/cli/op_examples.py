"""An example of each op, as text. A test records them all."""

from __future__ import annotations

from ..dtypes import DataType
from ..errors import TritonFuserError
from ..frontend.definition import FusionDefinition
from ..ops.parameters import Kind
from ..ops.table import Op

_X = "x = fd.define_tensor([4, 8])"
_OFFSETS = "starts = fd.define_tensor([2], dtype=DataType.Int32)"
_HEADS = "q, k, v = (fd.define_tensor([2, 4, 16, 64], dtype=DataType.BFloat16) for _ in range(3))"
_ATTENTION = "out, logsumexp, seed, offset = fd.ops.sdpfa_fwd(q, k, v, is_causal=True)"
_INDEX = "index = fd.define_tensor([4, 2], dtype=DataType.Int)"
_PACKED = (
    "x = fd.define_tensor([64, 64], dtype=DataType.BFloat16)",
    "starts = fd.define_tensor([2], dtype=DataType.Int32)",
)

_WRITTEN: dict[str, tuple[str, ...]] = {
    "sum": (_X, "rows = fd.ops.sum(x, dims=[1])"),
    "prod": (_X, "rows = fd.ops.prod(x, dims=[1])"),
    "max": (_X, "rows = fd.ops.max(x, dims=[-1], keepdim=True)"),
    "min": (_X, "rows = fd.ops.min(x, dims=[-1], keepdim=True)"),
    "welford": (_X, "mean, squares, count = fd.ops.welford(x, dims=[1])"),
    "var": (_X, "rows = fd.ops.var(x, dims=[1], correction=0)"),
    "var_mean": (_X, "variance, mean = fd.ops.var_mean(x, dims=[1], keepdim=True)"),
    "cumsum": (_X, "sums = fd.ops.cumsum(x, dim=1)"),
    "cumprod": (_X, "products = fd.ops.cumprod(x, dim=1)"),
    "cummin": (_X, "least = fd.ops.cummin(x, dim=1)"),
    "cummax": (_X, "greatest = fd.ops.cummax(x, dim=1)"),
    "broadcast": (_X, "y = fd.ops.broadcast(x, [True, False, False])  # [1, 4, 8]"),
    "broadcast_in_dim": (_X, "y = fd.ops.broadcast_in_dim(x, [2, 4, 8], [1, 2])"),
    "expand": ("x = fd.define_tensor([1, 8])", "y = fd.ops.expand(x, [4, 8])"),
    "reshape": (_X, "y = fd.ops.reshape(x, [2, -1])  # [2, 16]"),
    "permute": (_X, "y = fd.ops.permute(x, [1, 0])"),
    "squeeze": ("x = fd.define_tensor([4, 1, 8])", "y = fd.ops.squeeze(x, dims=[1])"),
    "stride_order": (_X, "y = fd.ops.stride_order(x, [0, 1])  # columns are contiguous"),
    "size": ("x = fd.define_tensor([-1, 8])", "rows = fd.ops.size(x, 0)"),
    "shape": ("x = fd.define_tensor([-1, 8])", "rows, columns = fd.ops.shape(x)"),
    "slice": (_X, "y = fd.ops.slice(x, start_indices=[0, 2], end_indices=[4, 6])"),
    "pad": (_X, "y = fd.ops.pad(x, [1, 2])  # [4, 11]"),
    "cat": (_X, "y = fd.ops.cat([x, x], dim=1)"),
    "index_select": (
        _X,
        "index = fd.define_tensor([3], dtype=DataType.Int)",
        "rows = fd.ops.index_select(x, index, dim=0)",
    ),
    "select": (_X, "row = fd.ops.select(x, 2, dim=0)"),
    "gather": (_X, _INDEX, "y = fd.ops.gather(x, index, dim=1)"),
    "take_along_axis": (_X, _INDEX, "y = fd.ops.take_along_axis(x, index, dim=1)"),
    "scatter": (_X, _INDEX, "y = fd.ops.scatter(x, index, fd.define_scalar(0.0), dim=1)"),
    "embedding_fwd": (
        "tokens = fd.define_tensor([2, 16], dtype=DataType.Int)",
        "weight = fd.define_tensor([1000, 64])",
        "rows = fd.ops.embedding_fwd(tokens, weight)",
    ),
    "iota": ("steps = fd.ops.iota(10, 0, 2, dtype=DataType.Int)",),
    "full": ("zeros = fd.ops.full([4, 8], 0.0, dtype=DataType.Float)",),
    "triu": (_X, "y = fd.ops.triu(x, diagonal=1)"),
    "uniform": ("noise = fd.ops.uniform(0.0, 1.0, [4, 8], dtype=DataType.Float)",),
    "normal": ("noise = fd.ops.normal(0.0, 1.0, [4, 8], dtype=DataType.Float)",),
    "matmul": (_X, "w = fd.define_tensor([8, 16])", "y = fd.ops.matmul(x, w)"),
    "linear": (
        _X,
        "w, bias = fd.define_tensor([16, 8]), fd.define_tensor([16])",
        "y = fd.ops.linear(x, w, bias)",
    ),
    "sdpfa_fwd": (
        _HEADS,
        "out, logsumexp, seed, offset = fd.ops.sdpfa_fwd(q, k, v, is_causal=True)",
    ),
    "sdpfa_bwd": (
        _HEADS,
        "out, logsumexp, seed, offset = fd.ops.sdpfa_fwd(q, k, v, is_causal=True)",
        "grads = fd.ops.sdpfa_bwd(q, q, k, v, out, logsumexp, 0.0, True, seed, offset)",
    ),
    "topk": (_X, "values, indices = fd.ops.topk(x, 2, dim=1)"),
    "argsort": (_X, "order = fd.ops.argsort(x, dim=1, descending=True)"),
    "index_put_accumulate": (
        "table = fd.define_tensor([100, 8])",
        "index = fd.define_tensor([16], dtype=DataType.Int)",
        "rows = fd.define_tensor([16, 8])",
        "y = fd.ops.index_put_accumulate(table, index, rows)",
    ),
    "grouped_mm": (
        "x = fd.define_tensor([64, 32], dtype=DataType.BFloat16)",
        "w = fd.define_tensor([2, 32, 16], dtype=DataType.BFloat16)",
        "ends = fd.define_tensor([2], dtype=DataType.Int32)",
        "y = fd.ops.grouped_mm(x, w, ends)",
    ),
    "scaled_mm": (
        "x = fd.define_tensor([16, 32], dtype=DataType.Float8_e4m3fn)",
        "w = fd.define_tensor([32, 16], dtype=DataType.Float8_e4m3fn, stride_order=[0, 1])",
        "a, b = fd.define_tensor([1, 1]), fd.define_tensor([1, 1])",
        "y, _, _ = fd.ops.scaled_mm(x, w, a, b)",
    ),
    "nv_block_quantize": (_PACKED[0], "elements, scales = fd.ops.nv_block_quantize(x)"),
    "nv_grouped_block_quantize": (
        *_PACKED,
        "elements, scales = fd.ops.nv_grouped_block_quantize(x, starts, starts)",
    ),
    "preprocess_grouped_matmul_input_sf": (
        "scales = fd.define_tensor([64, 4], dtype=DataType.Float8_e4m3fn)",
        _OFFSETS,
        "tiles = fd.ops.preprocess_grouped_matmul_input_sf(scales, starts, starts)",
    ),
    "cutlass_nvfp4_grouped_mm": (
        "x = fd.define_tensor([64, 32], dtype=DataType.Float4_e2m1fn_x2)",
        "w = fd.define_tensor([2, 16, 32], dtype=DataType.Float4_e2m1fn_x2)",
        "a = fd.define_tensor([64, 4], dtype=DataType.Float8_e4m3fn)",
        "b = fd.define_tensor([2, 16, 4], dtype=DataType.Float8_e4m3fn)",
        "alpha = fd.define_tensor([2])",
        "sizes = fd.define_tensor([2, 3], dtype=DataType.Int32)",
        _OFFSETS,
        "y = fd.ops.cutlass_nvfp4_grouped_mm(x, w, a, b, alpha, sizes, starts, starts)",
    ),
    "cast": (_X, "y = fd.ops.cast(x, DataType.Half)"),
    "clamp": (_X, "y = fd.ops.clamp(x, -1.0, 1.0)"),
    "threshold": (_X, "y = fd.ops.threshold(x, 0.5, 0.0)"),
    "where": (_X, "y = fd.ops.where(fd.ops.gt(x, 0.0), x, 0.0)"),
}

_TRIED = (DataType.Float, DataType.Int, DataType.Bool, DataType.ComplexFloat)
"""The dtypes of operands of an op that takes no other arguments: the first that it takes."""


def example_of(op: Op) -> str:
    """A ``with`` block that records the op."""
    lines = _WRITTEN.get(op.name) or _of_tensors(op)
    return "\n".join(["with FusionDefinition() as fd:", *(f"    {line}" for line in lines)])


def _of_tensors(op: Op) -> tuple[str, ...]:
    """The op on tensors, and a number for a scalar, of one dtype, which is tried out."""
    dtype = next(dtype for dtype in _TRIED if _takes(op, dtype))
    given = "" if dtype is DataType.Float else f", dtype=DataType.{dtype.name}"
    tensors = [p.name for p in op.params if p.kind is not Kind.SCALAR]
    made = (f"{name} = fd.define_tensor([4, 8]{given})" for name in tensors)
    operands = ("0.5" if p.kind is Kind.SCALAR else p.name for p in op.params)
    return (*made, f"result = fd.ops.{op.name}({', '.join(operands)})")


def _takes(op: Op, dtype: DataType) -> bool:
    try:
        with FusionDefinition() as fd:
            operands = [
                0.5 if p.kind is Kind.SCALAR else fd.define_tensor([4, 8], dtype=dtype)
                for p in op.params
            ]
            getattr(fd.ops, op.name)(*operands)
    except TritonFuserError:
        return False
    return True
