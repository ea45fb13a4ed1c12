"""Definitions compiled once with their sizes open, and run at others through the guards."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.e2e.checking import CPU, gpu
from tests.e2e.graphs.test_random_graphs import CHUNK, FIRST, GRAPHS, KINDS
from tests.e2e.opened import check_grown_open, check_open, compile_open
from tests.e2e.ops.every_op import calls_of
from tests.e2e.ops.samples import Call
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.open_sizes import KeyReader
from tritonfuser.cache.keys.signature import is_aligned, key_maker
from tritonfuser.device import DeviceProperties
from tritonfuser.devices import of
from tritonfuser.ops.registry import OPS

D = DataType
DYNAMIC = tuple(name for name, kind in KINDS.items() if kind.dynamic)
DEVICES = (of(CPU), gpu(4))


# --- random definitions --------------------------------------------------------------------------


def check_all(kind: str, numbers: Sequence[int]) -> None:
    """A definition for each number; all that fail are named, and most are open."""
    failed: dict[str, Exception] = {}
    ran = were_open = 0
    for number in numbers:
        seed = f"{kind} {number}"
        rng = random.Random(seed)
        try:
            count, is_open = check_grown_open(KINDS[kind].grow(rng), rng)
        except Exception as error:
            failed[seed] = error
            continue
        ran += count
        were_open += is_open
    if failed:
        texts = [f"seed {seed!r}: {type(e).__name__}: {e}" for seed, e in failed.items()]
        raise AssertionError("\n".join(texts)) from next(iter(failed.values()))
    assert were_open >= len(numbers) // 2 and ran >= 2 * len(numbers), (were_open, ran)


@pytest.mark.parametrize("kind", DYNAMIC)
def test_graphs(kind: str) -> None:
    """Always the same few, of those of the slow test."""
    check_all(kind, range(4))


def test_a_product_with_tensors_of_which_either_may_be_larger() -> None:
    """Whether most bytes lie along rows is decided by the sizes of the run."""
    rng = random.Random("dynamic 18")
    ran, is_open = check_grown_open(KINDS["dynamic"].grow(rng), rng)
    assert ran and is_open


@pytest.mark.slow
@pytest.mark.parametrize("kind", DYNAMIC)
@pytest.mark.parametrize("start", range(FIRST, FIRST + GRAPHS, CHUNK))
def test_many_graphs(kind: str, start: int) -> None:
    check_all(kind, range(start, min(start + CHUNK, FIRST + GRAPHS)))


# --- every row of the op table -------------------------------------------------------------------


def longer(x: Any, by: int = 2) -> Any:
    """A tensor with each dim of 2 and more ``by`` times as long: the same elements again.

    Dims lie in memory in the order they did, as far apart, and aligned as they were.
    """
    if isinstance(x, list):
        return [longer(item, by) for item in x]
    if not isinstance(x, torch.Tensor):
        return x
    dims = sorted(range(x.dim()), key=lambda d: (x.stride(d), x.shape[d]), reverse=True)
    bits = x.view(torch.uint8) if x.itemsize == 1 else x
    bits = bits.permute(dims)
    for dim, size in enumerate(bits.shape):
        if size > 1:
            bits = torch.cat([bits] * by, dim)
    apart = min((st for n, st in zip(x.shape, x.stride(), strict=True) if n > 1), default=1)
    room = bits.new_empty(bits.numel() * apart + 1)[1 - is_aligned(x) :][: bits.numel() * apart]
    bits = room.view(*bits.shape, apart)[..., 0].copy_(bits) if apart else bits
    return bits.permute([dims.index(d) for d in range(x.dim())]).view(x.dtype)


def recorded(name: str, call: Call) -> tuple[FusionDefinition, list[Any]]:
    """The call in a definition of symbolic sizes."""
    inputs: list[Any] = []
    with FusionDefinition() as fd:

        def handle(arg: Any) -> Any:
            if isinstance(arg, torch.Tensor):
                inputs.append(arg)
                return fd.from_pytorch(arg)
            if isinstance(arg, list) and arg and isinstance(arg[0], torch.Tensor):
                return [handle(item) for item in arg]
            return arg

        made = getattr(fd.ops, name)(*(handle(a) for a in call.args), **call.kwargs)
        for result in made if isinstance(made, tuple | list) else (made,):
            if result is not None and hasattr(result, "ndim"):
                fd.add_output(result)
    return fd, inputs


WRITTEN_OUT = {"reshape", "expand", "broadcast_in_dim"}
"""Calls with the sizes of their results among their arguments."""

CLAMPED = {("slice", "past the end")}
"""Calls that are other ones at half the size."""

NARROW = {
    "cutlass_nvfp4_grouped_mm",
    "nv_block_quantize",
    "nv_grouped_block_quantize",
    "preprocess_grouped_matmul_input_sf",
}
"""Ops that only some GPUs have the instructions of."""


@pytest.mark.parametrize("name", sorted(OPS.keys() - WRITTEN_OUT - NARROW))
def test_every_op(name: str) -> None:
    """Compiled with its sizes open, run at those and at half of them."""
    for call in calls_of(name)[:4]:
        fd, inputs = recorded(name, call)
        ran, _ = check_open(fd, [[longer(x) for x in inputs], inputs], of(CPU))
        sizes = {n for x in inputs if isinstance(x, torch.Tensor) for n in x.shape}
        assert ran or sizes <= {0, 1} or (name, call.what) in CLAMPED, call.what


# --- chosen definitions --------------------------------------------------------------------------


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def define(body: Callable[[Any], None]) -> FusionDefinition:
    with FusionDefinition() as fd:
        body(fd)
    return fd


def matrix(fd: Any) -> Any:
    return fd.define_tensor(shape=[-1, -1], contiguity=True)


def _softmax(fd: Any) -> None:
    x = matrix(fd)
    exps = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, dims=[1], keepdim=True)))
    fd.add_output(fd.ops.truediv(exps, fd.ops.sum(exps, dims=[1], keepdim=True)))


def _moments(fd: Any) -> None:
    """Over the rows, over the columns and over all."""
    x = matrix(fd)
    for dims in ([0], [1], [0, 1]):
        var, mean = fd.ops.var_mean(x, dims=dims, correction=1)
        fd.add_output(var)
        fd.add_output(mean)


def _backward(fd: Any) -> None:
    x, g = matrix(fd), matrix(fd)
    both = fd.ops.mul(x, g)
    along = fd.ops.sum(both, dims=[1], keepdim=True)
    fd.add_output(fd.ops.sub(g, fd.ops.mul(x, along)))
    fd.add_output(fd.ops.sum(both, dims=[0]))


def _grouped(fd: Any) -> None:
    """Sums of all channels' pixels, and of each channel's pixels in all images."""
    x = fd.define_tensor(shape=[-1, -1, -1], contiguity=True)
    along = fd.ops.sum(x, dims=[1, 2], keepdim=True)
    fd.add_output(fd.ops.sub(x, along))
    fd.add_output(fd.ops.sum(x, dims=[0, 2]))


def _joined(fd: Any) -> None:
    x, y = matrix(fd), matrix(fd)
    fd.add_output(fd.ops.relu(fd.ops.cat([x, y, x], 0)))
    fd.add_output(fd.ops.pad(x, [1, 2, 0, 3], 5.0))
    fd.add_output(fd.ops.slice(y, [1, 0], [y.size(0), 3]))


def _regrouped(fd: Any) -> None:
    x = fd.define_tensor(shape=[-1, -1, -1], contiguity=True)
    b, t, d = x.size(0), x.size(1), x.size(2)
    flat = fd.ops.reshape(x, [fd.ops.mul(b, t), d])
    fd.add_output(fd.ops.neg(fd.ops.permute(flat, [1, 0])))
    fd.add_output(fd.ops.sum(fd.ops.reshape(fd.ops.permute(x, [1, 0, 2]), [t, -1]), dims=[1]))
    fd.add_output(fd.ops.mul(fd.ops.full([t, b], 2.0, dtype=D.Float), 3.0))
    fd.add_output(fd.ops.iota(fd.ops.add(t, b), dtype=D.Int))


def _scanned(fd: Any) -> None:
    x = matrix(fd)
    fd.add_output(fd.ops.cumsum(x, 1))
    fd.add_output(fd.ops.cumsum(x, 0))


def _spread(fd: Any) -> None:
    row = fd.define_tensor(shape=[-1], contiguity=True)
    x = matrix(fd)
    fd.add_output(fd.ops.add(x, row))
    fd.add_output(fd.ops.mul(fd.ops.broadcast(row, [False, True]), row))


CHOSEN: dict[str, tuple[Callable[[Any], None], list[list[tuple[int, ...]]]]] = {
    "softmax": (_softmax, [[(6, 40)], [(9, 33)], [(60, 64)]]),
    "long rows": (_softmax, [[(1, 20000)], [(1, 17001)], [(1, 19003)]]),
    "moments": (_moments, [[(40, 24)], [(33, 17)], [(44, 23)]]),
    "many rows": (_moments, [[(4096, 3)], [(3700, 3)], [(3900, 3)]]),
    "backward": (_backward, [[(100, 24)] * 2, [(98, 20)] * 2, [(96, 17)] * 2]),
    "grouped": (_grouped, [[(64, 3, 70)], [(50, 3, 66)], [(49, 3, 79)]]),
    "grouped channels": (_grouped, [[(40, 9, 60)], [(40, 10, 60)], [(40, 11, 60)]]),
    "joined": (_joined, [[(4, 5), (9, 5)], [(5, 6), (11, 6)], [(4, 6), (9, 6)]]),
    "regrouped": (_regrouped, [[(4, 16, 24)], [(2, 48, 45)], [(7, 3, 13)]]),
    "scanned": (_scanned, [[(5, 40)], [(8, 33)], [(2, 47)]]),
    "spread": (_spread, [[(7,), (5, 7)], [(60,), (3, 60)], [(50,), (12, 50)]]),
}


@pytest.mark.covering
@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.arch)
@pytest.mark.parametrize("name", CHOSEN)
def test_chosen(name: str, device: DeviceProperties) -> None:
    """Compiled at the first shapes, which serve the others."""
    body, shapes = CHOSEN[name]
    given = [[noise(*shape, seed=n) for n, shape in enumerate(case)] for case in shapes]
    ran, is_open = check_open(define(body), given, device)
    assert is_open and ran == len(shapes) - 1


@pytest.mark.parametrize("columns", [24, 40, 515, 1032])
def test_rows_are_shared_out_whatever_their_number(columns: int) -> None:
    """Where the last share has fewer, one row or none; rows that begin inside vectors in turn."""
    fd = define(_backward)
    given = [[noise(n, columns, seed=m) for m in (0, 1)] for n in (103, 105, 106, 102, 99)]
    made = compile_open(fd, given[0], given[1:], gpu(4))
    assert made is not None
    (first, *_) = (step.source.text for step in made.plan.steps if step.source is not None)
    assert "m_stop" in first
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    for x, g in given:
        plan = made.at(split := reader.split(key([x, g])))
        assert plan is not None, made.conditions.failing(split.numbers)
        both = x.double() * g
        wanted = g - x * both.sum(1, keepdim=True), both.sum(0)
        for found, right in zip(plan.run([x, g]), wanted, strict=True):
            torch.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)


def test_sizes_of_none_and_one_are_others() -> None:
    """They broadcast, or there is nothing to do: no variant for larger ones takes them."""
    fd = define(_spread)
    made = compile_open(fd, [noise(7), noise(5, 7)], [[noise(9), noise(4, 9)]], of(CPU))
    assert made is not None
    for row, matrix_ in (((1,), (5, 1)), ((7,), (0, 7)), ((7,), (1, 7)), ((1,), (5, 7))):
        found = fd.run([noise(*row), noise(*matrix_)])
        assert torch.equal(found[0], noise(*row) + noise(*matrix_))
        assert made.conditions.bind((*row, 1, *matrix_, matrix_[1], 1)) is None


def test_what_is_equal_stays_equal() -> None:
    """One symbol for what was the same in all: others go elsewhere."""
    fd = define(_backward)
    made = compile_open(fd, [noise(8, 4)] * 2, [[noise(9, 5)] * 2], of(CPU))
    assert made is not None and set(made.conditions.symbols) == {"size0", "size1"}
    assert made.conditions.bind((6, 3, 3, 1) * 2)
    assert made.conditions.bind((6, 3, 3, 1, 7, 3, 3, 1)) is None
    assert made.conditions.failing((6, 3, 3, 1, 7, 3, 3, 1)) == "tv1.shape[0] was 6 (size0), now 7"


def test_strides_that_are_no_products() -> None:
    """Rows of a wider matrix: how far they are apart is a symbol of its own."""

    def body(fd: Any) -> None:
        fd.add_output(fd.ops.neg(fd.define_tensor(shape=[-1, -1], contiguity=[False, True])))

    given = [[noise(6, 40)[:, :24]], [noise(9, 64)[:, :17]], [noise(3, 90)[:, :85]]]
    assert check_open(define(body), given, of(CPU)) == (2, True)


PARTED: dict[str, tuple[Callable[[Any, Any], Any], list[tuple[int, int]]]] = {
    "column sums": (lambda fd, x: fd.ops.sum(x, [0]), [(2001, 33), (1850, 33), (2047, 33)]),
    "column maxima": (lambda fd, x: fd.ops.max(x, [0]), [(2001, 33), (1999, 33), (1800, 33)]),
    "row sums": (lambda fd, x: fd.ops.sum(x, [1]), [(2, 50_001), (2, 52_021), (2, 50_301)]),
    "a sum of all": (lambda fd, x: fd.ops.sum(x, [0, 1]), [(2001, 33), (1999, 33), (2010, 33)]),
}


@pytest.mark.parametrize("name", PARTED)
def test_parts_that_are_chosen_at_each_size(name: str) -> None:
    """Their number is no size of the inputs, and divides no row."""
    body, shapes = PARTED[name]
    fd = define(lambda fd: fd.add_output(body(fd, matrix(fd))))
    given = [[noise(*shape)] for shape in shapes]
    made = compile_open(fd, given[0], given[1:], gpu(4))
    assert made is not None
    assert "parts of a reduction" in made.conditions.symbols.values()
    assert check_open(fd, given, gpu(4)) == (2, True)


@pytest.mark.parametrize("row", [3000, 5120, 6000])
def test_a_row_that_varies_fits_its_block(row: int) -> None:
    """One that is written out may be cut into pieces: blocks of what they are made for."""
    fd = define(_backward)
    given = [[torch.empty(1024, n)] * 2 for n in (row, row + 8)]
    made = compile_open(fd, given[0], given[1:], gpu())
    assert made is not None and made.conditions.is_open
    first = made.plan.steps[0]
    assert first.source is not None
    if first.segment.scheduler == "inner_outer_persistent":
        assert sum(side for _, side in first.source.constants) >= row
        assert any(guard.startswith("size0 <= ") for guard in made.conditions.guards)
