"""Operands for every row of the op table, made from what the row says of itself.

Pointwise rows are sampled from their params and ranges alone; a row of another form names its
calls in ``CALLS``. Each comes in the layouts that go wrong easily.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from _pytest.mark.structures import ParameterSet

from tests.ops.pointwise_harness import EIGHTS, operand_dtypes, samples, specials, typing_of
from tritonfuser.dtypes import Category, DataType
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.parameters import Kind
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import Op

D = DataType
SIDE = 16
"""Operands have SIDE * SIDE elements: each pair of special values once."""


@dataclass(frozen=True)
class Call:
    """Operands and static arguments of one call of an op; ``what`` for messages."""

    what: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def on_devices(
    cases: Iterable[tuple[str, DataType]], on_gpu: Container[DataType]
) -> list[ParameterSet]:
    """(name, dtype, device) for each case: here all, on a GPU those of some dtypes.

    There each case costs a compilation, and tests/gpu has the numbers of every row and dtype.
    """
    found: list[ParameterSet] = []
    for name, dtype in cases:
        found.append(pytest.param(name, dtype, "cpu", id=f"{name}-{dtype.name}-cpu"))
        if dtype in on_gpu:
            case = f"{name}-{dtype.name}-cuda"
            found.append(pytest.param(name, dtype, "cuda", id=case, marks=pytest.mark.gpu))
    return found


# --- layouts -------------------------------------------------------------------------------------


def transposed(x: torch.Tensor) -> torch.Tensor:
    """The same matrix, column by column in memory."""
    return x.t().contiguous().t()


def misaligned(x: torch.Tensor) -> torch.Tensor:
    """The same numbers one element behind an aligned address."""
    room = torch.empty(x.numel() + 1, dtype=x.dtype, device=x.device)
    return room[1:].view(x.shape).copy_(x)


def strided(x: torch.Tensor) -> torch.Tensor:
    """The same matrix as every other column of a wider one."""
    room = torch.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype, device=x.device)
    return room[..., ::2].copy_(x)


# --- pointwise -----------------------------------------------------------------------------------


def pointwise_rows() -> list[Op]:
    """The rows with a Triton expression."""
    return [op for op in OPS.values() if isinstance(op.form, Pointwise) and op.form.variants]


def takes(op: Op, dtype: DataType) -> bool:
    """Whether a pointwise row takes tensors of a dtype."""
    return typing_of(op, dtype) is not None


def pointwise_calls(op: Op, dtype: DataType, device: str) -> list[Call]:
    """The row on tensors of a dtype, laid out in each of the ways."""
    count = SIDE * SIDE
    drawn = [x.view(SIDE, SIDE) for x in samples(op, dtype, count)]
    edges = [x.view(SIDE, SIDE) for x in _edges(op, dtype)]
    found = {
        "dense": drawn,
        "specials": edges,
        "transposed": [transposed(x) for x in drawn],
        "strided": [strided(x) for x in drawn],
        "misaligned": [misaligned(x) for x in drawn],
        "broadcast": [_thin(x, place) for place, x in enumerate(drawn)],
        "expanded": [_thin(x, place + 1).expand(SIDE, SIDE) for place, x in enumerate(drawn)],
        "0-dim": [x[1, 2] for x in drawn],
        "0-dim beside dense": [x if place == 0 else x[1, 2] for place, x in enumerate(drawn)],
        "empty": [x.new_empty(0, 2, 1) for x in drawn],
        "empty inside": [x.new_empty(5, 0, 3) for x in drawn],
        "one element": [x[:1, :1] for x in drawn],
    }
    calls = [
        Call(what, tuple(_numbers(op, [x.to(device) for x in operands])))
        for what, operands in found.items()
    ]
    return calls + _beside_numbers(op, calls[0])


def _beside_numbers(op: Op, call: Call) -> list[Call]:
    """The same call with a Python number in the place of each operand in turn."""
    found: list[Call] = []
    tensors = [place for place, x in enumerate(call.args) if isinstance(x, torch.Tensor)]
    numbers = {place: call.args[place][3, 5].item() for place in tensors}
    for place in tensors if len(tensors) > 1 and op.params[0].name != "condition" else ():
        args = [numbers[d] if d == place else x for d, x in enumerate(call.args)]
        found.append(Call(f"a number as operand {place}", tuple(args)))
    return found


def _edges(op: Op, dtype: DataType) -> list[torch.Tensor]:
    """Each special value beside each other one; a third operand runs along with them."""
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    places = (rows, columns, (5 * rows + 3 * columns) % SIDE, (rows + columns) % SIDE)
    kinds = operand_dtypes(op, dtype)
    return [specials(kind)[place] for kind, place in zip(kinds, places, strict=False)]


def _thin(x: torch.Tensor, place: int) -> torch.Tensor:
    """One row of a matrix, one column, or all of it."""
    return (x, x[:1], x[:, :1])[place % 3]


def _numbers(op: Op, operands: Sequence[torch.Tensor]) -> Iterator[Any]:
    """Operands, as Python numbers where the op takes nothing else."""
    params = [p for p in op.params if p.kind.is_operand]
    for param, x in zip(params, operands, strict=True):
        if param.kind is not Kind.SCALAR:
            yield x
            continue
        finite = x[x.double().isfinite()].flatten()
        yield finite[len(finite) // 2].item() if len(finite) else 1


# --- reductions and scans ------------------------------------------------------------------------

ROWS, LENGTH = 8, 33


def reduced_rows() -> list[Op]:
    return [op for op in OPS.values() if op.category == "reduction"]


def scanned_rows() -> list[Op]:
    return [op for op in OPS.values() if op.category == "scan"]


def reduction_calls(op: Op, dtype: DataType, device: str) -> list[Call]:
    """Along memory, across it, over all; over nothing, one element, a stretched one."""
    x = numbers((ROWS, LENGTH), dtype, device)
    cube = numbers((3, 4, 5), dtype, device)
    simple = any(p.name == "dtype" for p in op.params)
    calls = [
        Call("inner", (x, [1])),
        Call("inner misaligned", (misaligned(x), [-1])),
        Call("inner strided", (strided(x), [1])),
        Call("inner specials", (special_rows(dtype, device, moments=not simple), [1])),
        Call("outer", (x, [0])),
        Call("inner in memory alone", (transposed(x.t().contiguous()), [1])),
        Call("all", (x, [0, 1])),
        Call("two of three", (cube, [0, 2])),
        Call("empty result", (x[:0], [1])),
        Call("one element", (x[:, :1], [1])),
        Call("stretched", (x[:, :1].expand(ROWS, 4), [1])),
    ]
    if op.name != "welford":
        calls += [
            Call("keepdim", (x, [0]), {"keepdim": True}),
            Call("keepdim of all", (cube, [0, 1, 2]), {"keepdim": True}),
        ]
    if simple:
        calls += [Call("no dims", (x,)), Call("0-dim", (x[0, 0],)), Call("last", (x, [-1]))]
        calls.append(Call("nothing", (x[:, :0], [1])))
    if any(p.name == "correction" for p in op.params):
        calls += [Call("biased", (x, [1]), {"correction": 0})]
    return calls


def scan_calls(op: Op, dtype: DataType, device: str) -> list[Call]:
    x = numbers((ROWS, LENGTH), dtype, device)
    return [
        Call("inner", (x,), {"dim": 1}),
        Call("outer", (x,), {"dim": -2}),
        Call("misaligned", (misaligned(x),), {"dim": 1}),
        Call("transposed", (transposed(x),), {"dim": 1}),
        Call("specials", (special_rows(dtype, device),), {"dim": 1}),
        Call("one element", (x[:, :1],), {"dim": 1}),
        Call("empty", (x[:0],), {"dim": 1}),
        Call("init", (x,), {"dim": 1, "init": _init(dtype)}),
    ]


def _init(dtype: DataType) -> bool | int | float:
    kind = dtype.info.category
    return 2.0 if kind is Category.FLOAT else (True if kind is Category.BOOL else 2)


def numbers(shape: Sequence[int], dtype: DataType, device: str) -> torch.Tensor:
    """Small numbers with quarters: what is summed and multiplied is exact, or nearly so."""
    generator = torch.Generator().manual_seed(math.prod(shape) + 1)
    found = torch.randint(-8, 9, tuple(shape), generator=generator)
    if dtype is D.Bool:
        return (found > 0).to(device)
    if dtype.info.category is Category.INT:
        return found.to(dtype.info.torch).to(device)
    if dtype.info.category is Category.COMPLEX:
        other = torch.randint(-8, 9, tuple(shape), generator=generator)
        return torch.complex(found / 4, other / 4).to(dtype.info.torch).to(device)
    return (found / 4).to(dtype.info.torch).to(device)


def special_rows(dtype: DataType, device: str, moments: bool = False) -> torch.Tensor:
    """A row each with nan, infinities of one sign and of both, zeros of both signs, ones.

    For ``moments`` without infinities of one sign: torch's mean of them is infinite or nan,
    by the place of the infinity.
    """
    x = numbers((ROWS, LENGTH), dtype, device)
    if dtype.info.category is not Category.FLOAT:
        return x
    x[0, 5] = math.nan
    if not moments:
        x[1, 7] = math.inf
        x[2, 31] = -math.inf
    x[3, 2], x[3, 9] = math.inf, -math.inf
    x[4] = -0.0
    x[5] = 1.0
    x[6] = math.nan
    return x


# --- what is declared by hand --------------------------------------------------------------------

Maker = Callable[[DataType, str], list[Call]]


def _index(values: Any, device: str, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


def _view_calls(*rest: tuple[str, tuple[int, ...], tuple[Any, ...]]) -> Maker:
    """Calls of a view on a tensor of each shape, with the arguments behind it."""

    def make(dtype: DataType, device: str) -> list[Call]:
        return [Call(what, (numbers(shape, dtype, device), *args)) for what, shape, args in rest]

    return make


def _index_select(dtype: DataType, device: str) -> list[Call]:
    x = numbers((5, 7), dtype, device)
    return [
        Call("rows", (x, _index([4, 0, 0, 2], device), 0)),
        Call("columns", (x, _index([6, 1], device, torch.int32), -1)),
        Call("one", (x, _index(3, device), 1)),
        Call("none", (x, _index([], device), 0)),
        Call("of a transposed one", (transposed(x), _index([1, 3], device), 0)),
    ]


def _gather(dtype: DataType, device: str) -> list[Call]:
    x = numbers((4, 6), dtype, device)
    return [
        Call("rows", (x, _index([[3, 0, 1, 1, 2, 0]], device), 0)),
        Call("columns", (x, _index([[5, 0], [1, 1], [2, 4]], device, torch.int32), 1)),
        Call("1-dim", (x[0], _index([5, 5, 0], device), 0)),
    ]


def _take_along_axis(dtype: DataType, device: str) -> list[Call]:
    x = numbers((4, 6), dtype, device)
    return [
        Call("rows", (x, _index([[3, 0, 1, 1, 2, 0]], device), 0)),
        Call("index stretched", (x, _index([[5, 0, 1]], device), 1)),
        Call("tensor stretched", (x[:1], _index([[5], [0], [1]], device), -1)),
    ]


def _scatter(dtype: DataType, device: str) -> list[Call]:
    x, src = numbers((4, 6), dtype, device), numbers((5, 7), dtype, device)
    return [
        Call("rows", (x, _index([[3, 0, 1, 1, 2, 0], [0, 1, 2, 3, 0, 2]], device), src, 0)),
        Call("columns", (x, _index([[5, 0], [1, 4]], device, torch.int32), src, -1)),
        Call("none", (x, _index([[]] * 4, device), src, 1)),
        Call("1-dim", (x[0], _index([5, 1, 0], device), src[1], 0)),
    ]


def _embedding(dtype: DataType, device: str) -> list[Call]:
    if dtype.info.category is not Category.FLOAT:
        return []
    weight = numbers((10, 6), dtype, device)
    rows = _index([[1, 0, 9], [9, 4, 4]], device)
    return [
        Call("rows", (rows, weight)),
        Call("int32, and options", (rows.int(), weight), {"padding_idx": 4, "sparse": False}),
        Call("short rows", (rows, weight), {"max_norm": 2.0, "norm_type": 2.0}),
    ]


def _matmul(dtype: DataType, device: str) -> list[Call]:
    if dtype.info.category is not Category.FLOAT or dtype in EIGHTS:
        return []
    a, b = numbers((5, 8), dtype, device), numbers((8, 3), dtype, device)
    batch = numbers((2, 5, 8), dtype, device)
    return [
        Call("matrices", (a, b)),
        Call("transposed", (transposed(a), transposed(b))),
        Call("batch", (batch, b)),
        Call("vectors", (a[0], b[:, 1])),
        Call("row", (a[0], b)),
    ]


def _linear(dtype: DataType, device: str) -> list[Call]:
    if dtype.info.category is not Category.FLOAT or dtype in EIGHTS:
        return []
    a, weight = numbers((2, 5, 8), dtype, device), numbers((3, 8), dtype, device)
    return [
        Call("plain", (a, weight)),
        Call("bias", (a, weight, numbers((3,), dtype, device))),
        Call("row", (a[0, 0], weight)),
    ]


def _cat(dtype: DataType, device: str) -> list[Call]:
    a, b = numbers((3, 4), dtype, device), numbers((2, 4), dtype, device)
    wide = numbers((3, 9), dtype, device)
    return [
        Call("rows", ([a, b, a],)),
        Call("columns", ([a, transposed(wide), wide], -1)),
        Call("with none", ([a, a[:0], b], 0)),
        Call("one", ([a], 1)),
    ]


def _iota(dtype: DataType, device: str) -> list[Call]:
    if dtype is D.Bool:
        return []
    kind = float if dtype.info.category is Category.FLOAT else int
    return [
        Call("plain", (9,), {"dtype": dtype}),
        Call("from 3 by -2", (17, kind(3), kind(-2)), {"dtype": dtype}),
        Call("none", (0,), {"dtype": dtype}),
    ]


def _full(dtype: DataType, device: str) -> list[Call]:
    return [Call("3", ([3, 4], 3), {"dtype": dtype}), Call("0-dim", ([], 1), {"dtype": dtype})]


def _drawn(first: float, second: float) -> Maker:
    def make(dtype: DataType, device: str) -> list[Call]:
        if dtype.info.category is not Category.FLOAT or dtype in EIGHTS:
            return []
        seeds = {"rng_seed": 7, "rng_offset": 3, "dtype": dtype}
        return [
            Call("flat", (first, second, [64]), seeds),
            Call("2-dim", (0.0, 1.0, [3, 5]), seeds),
            Call("empty", (0.0, 1.0, [3, 0]), seeds),
        ]

    return make


CALLS: dict[str, Maker] = {
    "broadcast": _view_calls(
        ("between", (3, 4), ([False, True, False],)),
        ("around", (5,), ([True, False, True],)),
        ("of 0-dim", (), ([True, True],)),
    ),
    "broadcast_in_dim": _view_calls(
        ("new dims", (4,), ([3, 4, 2], [1])),
        ("stretched", (1, 4), ([3, 5, 4], [1, -1])),
        ("as it is", (3, 4), ([3, 4], [0, 1])),
    ),
    "expand": _view_calls(
        ("one dim", (3, 1), ([3, 5],)),
        ("kept and new", (1, 4), ([2, 3, -1],)),
        ("to nothing", (1, 4), ([0, 4],)),
    ),
    "reshape": _view_calls(
        ("joined", (3, 4, 5), ([12, 5],)),
        ("cut", (6, 4), ([2, 3, 2, 2],)),
        ("regrouped", (4, 6), ([3, 8],)),
        ("flat", (3, 1, 4), ([-1],)),
        ("of one", (1, 1), ([],)),
        ("empty", (0, 2, 1), ([1, 0],)),
    ),
    "permute": _view_calls(
        ("turned", (3, 4, 5), ([2, 0, 1],)),
        ("negative", (3, 4), ([-1, 0],)),
        ("of 0-dim", (), ([],)),
    ),
    "squeeze": _view_calls(("two", (1, 4, 1), ([0, -1],)), ("to 0-dim", (1,), ([0],))),
    "stride_order": _view_calls(
        ("column-major", (3, 4), ([0, 1],)), ("channels last", (2, 3, 2, 2), ([3, 0, 2, 1],))
    ),
    "slice": _view_calls(
        ("middle", (6, 7), ([1, 2], [5, 6])),
        ("past the end", (6, 7), ([0, 3], [9, 9])),
        ("nothing", (6, 7), ([2, 2], [2, 7])),
        ("strides", (6,), ([1], [4], [1])),
    ),
    "pad": _view_calls(
        ("zeros", (3, 4), ([1, 2],)),
        ("both dims", (3, 4), ([1, 0, 0, 2],)),
        ("cut off", (5, 4), ([-1, 1, -2, 0],)),
        ("nothing around nothing", (0, 4), ([1, 1],)),
    ),
    "select": _view_calls(("a row", (3, 4), (1, 0)), ("a column", (3, 4), (-1, -1))),
    "triu": _view_calls(
        ("whole", (4, 5), ()),
        ("above", (2, 5, 4), (1,)),
        ("below", (4, 4), (-2,)),
        ("far", (3, 3), (7,)),
    ),
    "index_select": _index_select,
    "gather": _gather,
    "take_along_axis": _take_along_axis,
    "scatter": _scatter,
    "embedding_fwd": _embedding,
    "cat": _cat,
    "matmul": _matmul,
    "linear": _linear,
    "iota": _iota,
    "full": _full,
    "uniform": _drawn(-2.0, 3.0),
    "normal": _drawn(1.0, 0.5),
}
"""Rows that neither ranges nor dims describe."""

SCALARS = frozenset({"size", "shape"})
"""Rows that give numbers: test_dynamic_shapes runs them."""

DRAWN = frozenset({"rand_like", "randn_like"})
"""Rows of numbers that nobody can foretell: test_random_numbers runs them."""
