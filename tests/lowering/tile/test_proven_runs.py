"""What is said to be a run of neighbours is what Triton takes for one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tritonfuser.lowering.tile import proven_runs
from tritonfuser.lowering.tile.proven_runs import proven_run
from tritonfuser.lowering.tile.tile import Tile
from tritonfuser.symbolic.index_expr import Affine, Axis, digit

WIDTH = 32
X, Y = Axis("x", 4096), Axis("y", 512)
TILE = Tile(X, "XBLOCK", False, WIDTH, place=1)

OFFSETS = (
    digit(X),
    digit(X) * 2,
    digit(X, 1, 12),
    digit(X, 1, 305),
    digit(X, 1, 48) + digit(X, 48) * 1000,
    digit(X, 1, 305) + digit(X, 305) * 1000,
    digit(X, 7),
    digit(X, 16) + digit(X, 1, 16) * 8,
    digit(Affine(digit(X).terms, 3), 1, 64),
    digit(Affine(digit(X).terms, 4), 1, 64),
)


@triton.jit
def kernel(p, q, NUMBER: tl.constexpr, XBLOCK: tl.constexpr):
    x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[None, :]
    y = tl.program_id(1) * 32 + tl.arange(0, 32)[:, None]
    if NUMBER == 0:
        place = x
    elif NUMBER == 1:
        place = x * 2
    elif NUMBER == 2:
        place = x % 12
    elif NUMBER == 3:
        place = x % 305
    elif NUMBER == 4:
        place = x % 48 + x // 48 * 1000
    elif NUMBER == 5:
        place = x % 305 + x // 305 * 1000
    elif NUMBER == 6:
        place = x // 7
    elif NUMBER == 7:
        place = x // 16 + x % 16 * 8
    elif NUMBER == 8:
        place = (x + 3) % 64
    else:
        place = (x + 4) % 64
    tl.store(q + y * 4096 + x, tl.load(p + y * 5000 + place))


@pytest.mark.parametrize("number", range(len(OFFSETS)))
def test_threads_are_neighbours_along_runs(number: int) -> None:
    """Of a load whose other dim has no run either, the layout tells whether there is one."""
    types = {"p": "*fp32", "q": "*fp32", "NUMBER": "constexpr", "XBLOCK": "constexpr"}
    aligned = {(n,): [["tt.divisibility", 16]] for n in range(2)}
    source = ASTSource(kernel, types, {"NUMBER": number, "XBLOCK": WIDTH}, aligned)
    text = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttgir"]
    (name,) = re.findall(r"tt\.load .*tensor<32x32x!tt\.ptr<f32>, (#\w+)>", text)
    (order,) = re.findall(rf"{name} = #ttg\.blocked<.*order = \[(\d), \d\]", text)
    run = proven_run(OFFSETS[number] + digit(Y) * 5000, TILE)
    assert (run > 1) == (order == "1"), (run, order)


@pytest.mark.parametrize(
    ("offset", "run"),
    [
        (digit(X), WIDTH),
        (digit(X, 1, 12), 4),
        (digit(X, 1, 48) + digit(X, 48) * 1000, 16),
        (digit(X, 2), 1),
        (digit(Y), 1),
    ],
)
def test_lengths_of_runs(offset: Affine, run: int) -> None:
    assert proven_run(offset, TILE) == run


def test_a_limit_of_neighbours_is_none_of_runs() -> None:
    """It is told of addresses, where the runs that it cuts are known."""
    limited = Tile(X, "XBLOCK", False, WIDTH, place=1, neighbours=4)
    assert proven_run(digit(X, 1, 48) + digit(X, 48) * 1000, limited) == 16


def test_parts_that_begin_anywhere_are_not_divided_evenly() -> None:
    part = Tile(X, "XBLOCK", False, WIDTH, place=1, part=digit(Y) * 33)
    assert proven_run(digit(X), part) == WIDTH
    assert proven_run(digit(X, 1, 48), part) == 1


def value(expr: Affine, x: int) -> int:
    """An expression of one axis at a position."""
    total = expr.const
    for item, step in expr.terms:
        base = value(item.base, x) if isinstance(item.base, Affine) else x
        place = base // item.div
        total += step * (place if item.mod is None else place % item.mod)
    return total


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("width", [8, 32, 256])
def test_neighbours_in_a_run_are_consecutive(offset: Affine, width: int) -> None:
    """A limit on neighbours tells Triton that they are: a run that is none gives wrong elements."""
    run = proven_run(offset, replace(TILE, width=width))
    for x in range(0, X.extent, run):
        found = [value(offset, x + n) for n in range(run)]
        assert found == list(range(found[0], found[0] + run)), (x, run)


def test_what_nested_digits_have_in_common_is_followed_once(monkeypatch):
    offset, levels = digit(X), 12
    for number in range(3, 3 + levels):
        sum_of = Affine(offset.terms, 1)
        offset = digit(sum_of, 1, number) + digit(sum_of, number) * 1000
    asked, follow = [], proven_runs._of_digit
    monkeypatch.setattr(proven_runs, "_of_digit", lambda *given: asked.append(1) or follow(*given))
    assert proven_run(offset, TILE) == 1
    assert len(asked) <= 2 * levels + 1
