"""Integer terms of kernels near 2**31 elements and above stay in range, or have 64 bits.

Nothing is allocated: inputs are on the meta device, and texts alone are looked at.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
import torch

from bench.cases import BY_NAME
from bench.recorded.definitions import (
    RecordedDefinition,
    TensorInput,
    load,
    make_inputs,
    record,
)
from tests.e2e.checking import CPU, gpu
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.opened import open_signature
from tests.lowering.emit.integer_terms import faults
from tests.lowering.graphs import meta
from tests.lowering.harness import H200
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.errors import TritonFuserError
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.emit.indexing.term_bounds import TermBounds
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.product_policy import ProductPolicy
from tritonfuser.lowering.run_options import DEFAULT, RunOptions
from tritonfuser.symbolic.guards import Relation
from tritonfuser.symbolic.polynomials import value_at
from tritonfuser.symbolic.shape_env import ShapeEnv

LIMIT = 2**31
LARGEST = 2**38
"""Elements of the largest tensor that is looked at: no memory has more."""

PRODUCTS = RunOptions(products=ProductPolicy.KERNELS)


def kernels(fd, inputs, device=H200, options=DEFAULT) -> list[KernelSource]:
    facts = signature(fd.fusion.ir, inputs, CPU)
    found = lower(fd.fusion.ir, facts, device, options)
    return [source for source in found.sources if source is not None]


def recorded(define, *inputs):
    with FusionDefinition() as fd:
        define(fd, *map(fd.from_pytorch, inputs))
    return fd


# --- by hand --------------------------------------------------------------------------------------


def exponential(fd, x):
    fd.add_output(fd.ops.exp(x))


def total(fd, x):
    fd.add_output(fd.ops.sum(x, [-1]))


def softmax(fd, x):
    shifted = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [-1], keepdim=True)))
    fd.add_output(fd.ops.div(shifted, fd.ops.sum(shifted, [-1], keepdim=True)))


def running(fd, x):
    fd.add_output(fd.ops.cumsum(x, 0))


def columns(fd, x):
    fd.add_output(fd.ops.sum(x, [0]))


def turned(fd, x):
    fd.add_output(fd.ops.neg(fd.ops.permute(x, [1, 0])))


def counted(fd, x):
    """Numbers of more elements than any tensor in memory has."""
    numbers = fd.ops.reshape(fd.ops.iota(2**33, 0, 1, dtype=DataType.Int), [2**18, 2**15])
    fd.add_output(fd.ops.sum(fd.ops.mul(fd.ops.cast(numbers, DataType.Double), x), [1]))


def drawn(fd, x):
    """Random numbers of the same kind, one at a time and by neighbours."""
    for columns in (2**18, 2**18 + 1):
        unit = fd.ops.uniform(0.0, 1.0, [2**18, columns], rng_seed=5, rng_offset=3)
        fd.add_output(fd.ops.sum(fd.ops.mul(unit, x), [1]))


def padded(fd, x):
    fd.add_output(fd.ops.exp(fd.ops.pad(x, [3, 5])))


def joined(fd, x):
    """More elements along a row than any input has."""
    fd.add_output(fd.ops.sum(fd.ops.exp(fd.ops.cat([x, x], 0)), [0]))


ROWS = ((3, LIMIT - 2), (2**16, 2**15), (2**16 + 1, 2**15 - 3), (LIMIT // 3, 3), (40000, 53687))
LENGTHS = (LIMIT - 5, LIMIT - 1, LIMIT - 1024, LIMIT - 4096, LIMIT // 2, LIMIT, LIMIT + 7)


@pytest.mark.covering
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("define", [exponential, total, softmax, running, padded, joined])
def test_of_one_dim(define, length):
    for dtype in (torch.float16, torch.float64):
        x = meta(length, dtype=dtype)
        for source in kernels(recorded(define, x), [x]):
            assert not faults(source)


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("define", [exponential, softmax, columns, turned, padded, joined])
def test_of_rows(define, shape):
    x = meta(*shape, dtype=torch.bfloat16)
    for source in kernels(recorded(define, x), [x]):
        assert not faults(source)


@pytest.mark.parametrize(
    "shape", [(2**20, 2305), (2**20 + 7, 2307), (2**16 + 1, 2**16 - 32)], ids=str
)
def test_of_loops_over_single_rows(shape):
    """The rows of a share lie far apart: the number of a row times the step is a whole tensor's."""
    case = BY_NAME["rmsnorm_bwd"]
    x = case.inputs(shape, torch.bfloat16, "meta")
    first, *others = kernels(case.record(shape, torch.bfloat16), x)
    assert "inner_outer" in first.text and re.search(r"\bfor m in ", first.text)
    for source in (first, *others):
        assert not faults(source)
    compile_kernel(first, "sm_90", (True,) * len(first.args))


@pytest.mark.parametrize("define", [counted, drawn])
def test_of_what_no_memory_has(define):
    x = meta(2**18, 1, dtype=torch.float64 if define is counted else torch.float32)
    for source in kernels(recorded(define, x), [x]):
        assert not faults(source)
        assert "tl.int64" in source.text


@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(LIMIT - 1, 16, 16), (16, LIMIT - 3, 16), (16, 16, LIMIT - 5), (17, LIMIT + 9, 5)],
)
def test_of_products(rows, columns, depth):
    def define(fd, a, b):
        fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))

    a, b = (meta(*shape, dtype=torch.bfloat16) for shape in ((rows, depth), (depth, columns)))
    for source in kernels(recorded(define, a, b), [a, b], options=PRODUCTS):
        assert not faults(source)


@pytest.mark.parametrize("define", [exponential, running])
def test_they_compile(define):
    x = meta(LIMIT - 1, dtype=torch.bfloat16)
    for source in kernels(recorded(define, x), [x]):
        assert compile_kernel(source, "sm_90", (True,) * len(source.args)).asm["ptx"]


def test_loops_of_more_than_31_bits_have_steps():
    """To be compiled is not enough: of a loop that ends at a negative number nothing is left."""

    def define(fd, x):
        fd.add_output(fd.ops.cumsum(x, 1))

    x = meta(1, LIMIT + 7, dtype=torch.bfloat16)
    (source,) = kernels(recorded(define, x), [x], options=RunOptions(two_steps=False))
    compiled = compile_kernel(source, "sm_90", (True,) * len(source.args))
    assert re.search(r"\bbra\b", compiled.asm["ptx"])


def test_parts_of_a_scan_of_more_than_31_bits():
    def define(fd, x):
        fd.add_output(fd.ops.cumsum(x, 1))

    x = meta(1, LIMIT + 7, dtype=torch.bfloat16)
    found = kernels(recorded(define, x), [x])
    assert len(found) == 3 and not any(map(faults, found))
    for source in found:
        compile_kernel(source, "sm_90", (True,) * len(source.args))


def test_offsets_behind_a_guard_are_as_large_as_it_lets_them_be():
    """The zeros behind 24 blocks: of ``x // 392`` 24 positions are stored, not 452118 as of x.

    H200, 177 million elements: 64-bit positions took 517 us in place of 192.
    """

    def define(fd, x):
        fd.add_output(fd.ops.pad(fd.ops.permute(x, [1, 0, 2]), [0, 0, 0, 8, 0, 0]))

    x = meta(150706, 24, 49, dtype=torch.bfloat16)
    found = kernels(recorded(define, x), [x])
    assert found and not any("int64" in source.text for source in found)
    assert any(re.search(r"// 392", source.text) for source in found)
    assert not any(map(faults, found))
    for source in found:
        wide = source.text.replace("inside0 = x < 9408", "inside0 = x < 9408000")
        assert bool(faults(dataclasses.replace(source, text=wide))) == (wide != source.text)


def test_masks_that_later_lines_narrow():
    """Of the vectors and the edges of a row."""

    def define(fd, x):
        less = fd.ops.sub(x, fd.ops.sum(x, [1], keepdim=True))
        fd.add_output(fd.ops.exp(less))
        fd.add_output(fd.ops.sum(less, [0]))

    x = meta(100_003, 64_422, dtype=torch.bfloat16)
    found = kernels(recorded(define, x), [x])
    narrowed = r"(\w+mask\w*) = \1 &"
    assert any(re.search(narrowed, source.text) for source in found)
    assert not any(map(faults, found))


def test_the_stride_of_a_dim_of_one_position():
    """It is in the text, where the only index of that dim is read."""
    x = torch.empty_strided([1, 4], [LIMIT + 3, 1], dtype=torch.float32, device="meta")
    index = meta(5, dtype=torch.int32)

    def define(fd, x, index):
        fd.add_output(fd.ops.neg(fd.ops.index_select(x, index, 0)))

    (source,) = kernels(recorded(define, x, index), [x, index])
    assert compile_kernel(source, "sm_90", (True,) * len(source.args)).asm["ptx"]


def test_products_compile():
    def define(fd, a, b):
        fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))

    a, b = (meta(*shape, dtype=torch.bfloat16) for shape in ((LIMIT - 1, 16), (16, 16)))
    for source in kernels(recorded(define, a, b), [a, b], options=PRODUCTS):
        assert compile_kernel(source, "sm_90", (True,) * len(source.args)).asm["ptx"]


def test_the_check_finds_what_is_not_asked():
    x = meta(LIMIT - 1)
    with mock.patch.object(TermBounds, "assume_long", lambda terms: False):
        (source,) = kernels(recorded(exponential, x), [x])
    assert any("XBLOCK" in fault for fault in faults(source))


# --- definitions at sizes that they were not made for ---------------------------------------------


def grown_text(entry: RecordedDefinition, size: int, times: int, all_of: bool) -> Any:
    """A recorded definition with a size in its text and its inputs so many times larger."""

    def scaled(n: int) -> int:
        return n * times if n == size or (all_of and n > 0 and n % size == 0) else n

    text = re.sub(r"(?<![\w.])\d+(?![\w.])", lambda m: str(scaled(int(m[0]))), entry.text)
    inputs = tuple(
        TensorInput(shape := tuple(map(scaled, x.shape)), packed(shape, x.stride), x.dtype)
        if isinstance(x, TensorInput)
        else x
        for x in entry.inputs
    )
    return dataclasses.replace(entry, text=text, inputs=inputs)


def packed(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Strides without gaps, in the order of others; 0 stays 0."""
    found, step = [0] * len(shape), 1
    for dim in sorted(range(len(shape)), key=lambda d: (strides[d], -d)):
        if strides[dim]:
            found[dim] = step
            step *= shape[dim]
    return tuple(found)


def at_large_sizes(entry: RecordedDefinition, rng: random.Random) -> Iterator[Any]:
    """A definition with its inputs on the meta device, at a few sizes around 2**31 elements."""
    tensors = [x for x in entry.inputs if isinstance(x, TensorInput)]
    sizes = sorted({n for x in tensors for n in x.shape if n > 1})
    most = max(math.prod(x.shape) for x in tensors)
    times = (LIMIT // 4 // most, LIMIT // most, LIMIT // most + 1, 8 * LIMIT // most)
    tries = [(s, n, whole) for s in sizes for n in times for whole in (False, True) if n > 1]
    for size, count, whole in rng.sample(tries, min(8, len(tries))):
        try:
            other = grown_text(entry, size, count, whole)
            fd = record(other)
            inputs = make_inputs(other, fd.fusion.ir, "meta")
        except (TritonFuserError, RuntimeError):
            continue
        if all(x.numel() < LARGEST for x in inputs if isinstance(x, torch.Tensor)):
            yield fd, inputs


@pytest.mark.slow
@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_of_recorded_definitions(entry):
    for fd, inputs in at_large_sizes(entry, random.Random(entry.name)):
        try:
            found = kernels(fd, inputs)
        except TritonFuserError:
            continue
        for source in found:
            assert not faults(source), source.text


def regrown(inputs: Sequence[Any], size: int, other: int) -> list[Any]:
    """Inputs with one extent in the place of another."""

    def made(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        shape = [other if n == size else n for n in x.shape]
        return torch.empty_strided(shape, packed(shape, x.stride()), dtype=x.dtype, device="meta")

    return [made(x) for x in inputs]


def check_random(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    grown = KINDS[kind].grow(rng)
    tensors = [x for x in grown.inputs if isinstance(x, torch.Tensor) and x.numel()]
    for size in sorted({n for x in tensors for n in x.shape if n > 1}):
        most = max(x.numel() // size ** list(x.shape).count(size) for x in tensors)
        target = rng.choice((LIMIT // 8, LIMIT // 2, LIMIT - 1, LIMIT, 4 * LIMIT))
        try:
            inputs = regrown(grown.inputs, size, target // most)
            if any(x.numel() > LARGEST for x in inputs if isinstance(x, torch.Tensor)):
                continue
            found = kernels(grown.fd, inputs, rng.choice((H200, gpu(4))))
        except (TritonFuserError, RuntimeError, TypeError):  # torch has no such tensors
            continue
        for source in found:
            assert not faults(source), f"{size} -> {target // most}\n{source.text}"


@pytest.mark.covering
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["dynamic views", "dynamic reductions", "products"])
def test_of_random_definitions(kind, seed):
    check_random(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_of_many_random_definitions(kind, seed):
    check_random(kind, 1000 + seed)


# --- sizes that vary ------------------------------------------------------------------------------


def holds(env: ShapeEnv, atoms: Sequence[int]) -> bool:
    """Whether all guards do at these values of atoms."""
    signs = {
        Relation.AT_LEAST_ZERO: lambda n: n >= 0,
        Relation.ZERO: lambda n: n == 0,
        Relation.NOT_ZERO: lambda n: n != 0,
    }
    return all(signs[g.relation](value_at(dict(g.terms), atoms.__getitem__)) for g in env.guards)


def at_most(env: ShapeEnv, rng: random.Random) -> list[int] | None:
    """Values of atoms where one more step of some size breaks a guard; as large as chance finds."""
    symbols = [atom.hint * atom.multiple for atom in env.atoms if atom.parts is None]
    chosen = [atom.chosen is not None for atom in env.atoms if atom.parts is None]
    symbols = [n for n, skip in zip(symbols, chosen, strict=True) if not skip]
    steps = [a.multiple for a in env.atoms if a.is_symbol]
    if not holds(env, env.symbols.values(symbols)):
        return None
    for scale in (2**26, 2**20, 2**14, 2**8, 2**4, 1):
        for _ in range(40):
            place = rng.randrange(len(symbols))
            other = [*symbols]
            other[place] += rng.randint(1, 4) * scale * steps[place]
            if holds(env, env.symbols.values(other)):
                symbols = other
    return env.symbols.values(symbols)


def check_open(kind: str, seed: int) -> bool:
    """Whether a definition had open sizes; its texts hold at the largest."""
    rng = random.Random(f"{kind} {seed}")
    grown = KINDS[kind].grow(rng)
    several = sorted({n for table in grown.sizes for n in table})
    tables = [{n: rng.randint(3, 17) for n in several} for _ in range(4)]
    given = [[made.resized(table) for made in grown.made] for table in tables]
    try:
        opened = open_signature(grown.fd, given[0], given[1:])
        if opened is None:
            return False
        ir = grown.fd.fusion.ir
        found = lower(ir, opened.signature, rng.choice((H200, gpu(4))), env=opened.env)
    except TritonFuserError:
        return False
    for _ in range(3):
        atoms = at_most(opened.env, rng)
        if atoms is None:
            return False
        pairs = zip(opened.env.atoms, atoms, strict=True)
        sizes = {atom.name: value * atom.multiple for atom, value in pairs}
        for source in filter(None, found.sources):
            assert not faults(source, sizes), f"{sizes}\n{source.text}"
    return True


@pytest.mark.parametrize("kind", ["dynamic", "dynamic views", "dynamic reductions"])
def test_at_open_sizes(kind):
    assert sum(check_open(kind, seed) for seed in range(12)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1200, 20))
@pytest.mark.parametrize("kind", ["dynamic", "dynamic views", "dynamic reductions"])
def test_at_many_open_sizes(kind, first):
    assert sum(check_open(kind, seed) for seed in range(first, first + 20)) >= 4
