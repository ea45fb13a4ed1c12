"""Index expressions: every rewrite keeps the value, and equal indices compare equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.evaluate import Env, value
from tritonfuser.symbolic.index_expr import Affine, Axis, Digit, constant, digit
from tritonfuser.symbolic.loaded_index import LoadedIndex
from tritonfuser.symbolic.row_major import linear, unravel
from tritonfuser.symbolic.substitution import substitute

Meaning = Callable[[Env], int]


def _axes(*extents: int) -> list[Axis]:
    return [Axis(f"x{i}", extent) for i, extent in enumerate(extents)]


def _points(axes: list[Axis]) -> list[Env]:
    ranges = [range(axis.extent) for axis in axes]
    names = [axis.name for axis in axes]
    return [dict(zip(names, place, strict=True)) for place in itertools.product(*ranges)]


# --- arithmetic --------------------------------------------------------------------------------

Step = tuple[str, int, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from("+-*/%c"), st.integers(0, 30), st.integers(0, 30), st.integers(-6, 12)
    ),
    min_size=1,
    max_size=10,
)


def _grow(exprs: list[tuple[Affine, Meaning]], step: Step) -> None:
    """Append ``a op b`` or ``a op number``, with what it means."""
    op, first, second, number = step
    (a, f), (b, g) = exprs[first % len(exprs)], exprs[second % len(exprs)]
    divisor = max(number, 1)
    made: dict[str, tuple[Callable[[], Affine], Meaning]] = {
        "+": (lambda: a + b, lambda env: f(env) + g(env)),
        "-": (lambda: a - b, lambda env: f(env) - g(env)),
        "*": (lambda: a * number, lambda env: f(env) * number),
        "/": (lambda: a // divisor, lambda env: f(env) // divisor),
        "%": (lambda: a % divisor, lambda env: f(env) % divisor),
        "c": (lambda: a + number, lambda env: f(env) + number),
    }
    expr, meaning = made[op]
    exprs.append((expr(), meaning))


@settings(max_examples=300)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), STEPS)
def test_rewrites_keep_the_value(
    extents: list[int], steps: list[tuple[str, int, int, int]]
) -> None:
    axes = _axes(*extents)
    exprs: list[tuple[Affine, Meaning]] = [
        (digit(axis), lambda env, name=axis.name: env[name]) for axis in axes
    ]
    exprs.append((digit(LoadedIndex("read")), lambda env: env["read"]))
    for step in steps:
        _grow(exprs, step)
    for env, read in itertools.product(_points(axes), (-3, 0, 5, 13)):
        here = {**env, "read": read}
        for expr, meaning in exprs:
            found = value(expr, here)
            assert found == meaning(here)
            if expr.range is not None:
                assert expr.range[0] <= found <= expr.range[1]


@given(st.integers(1, 60), st.integers(1, 20))
def test_quotient_and_remainder_join_again(extent: int, n: int) -> None:
    x = digit(Axis("x", extent))
    assert (x // n) * n + x % n == x


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.lists(st.integers(1, 30)))
def test_sums_join_again(extents: list[int], divisors: list[int]) -> None:
    axes = _axes(*extents)
    p = linear(tuple(digit(a) for a in axes), tuple(extents))
    for n in divisors:
        assert (p // n) * n + p % n == p


def test_a_digit_is_no_longer_than_its_axis() -> None:
    x = Axis("x", 10)
    assert digit(x, 1, 99) == digit(x) == Affine(((Digit(x, 1, 10), 1),))
    assert digit(x, 4) == digit(x, 4, 3)
    assert digit(x, 10) == constant(0) == digit(Axis("y", 1)) == digit(Axis("z", 0))


def test_low_terms_that_cannot_carry_drop_out() -> None:
    x, y = (digit(a) for a in _axes(6, 4))
    assert (x * 8 + y + 3) // 16 == x // 2
    assert (x * 4 + y) // 4 == x
    assert (x * 4 + y) % 4 == y
    assert (x * 4 + y) % 8 == (x % 2) * 4 + y
    assert (x * 12 + y * 3) // 6 == x * 2 + y // 2


def test_a_sum_that_carries_stays_whole() -> None:
    x, y = (digit(a) for a in _axes(6, 4))
    (item, factor), *rest = ((x * 3 + y) // 2).terms
    assert (item, factor, rest) == (Digit(x * 3 + y, 2), 1, [])


def test_a_sum_that_may_be_negative_is_divided_as_one_that_is_not() -> None:
    """Triton's ``//`` truncates; Python's, which these rules follow, floors."""
    x, y = (digit(a) for a in _axes(6, 4))
    for expr in ((x * 3 - y) // 2, (x * 3 - y - 7) % 5, (x - 3) // 4):
        for item, _ in expr.terms:
            if isinstance(item.base, Affine):
                assert item.base.range is not None and item.base.range[0] >= 0


def test_axes_and_loaded_are_found_inside_digits() -> None:
    a, b = _axes(5, 7)
    inner = (digit(a) * 3 + digit(LoadedIndex("k")) + digit(b)) // 4
    assert inner.axes() == {a, b} and inner.loaded() == (LoadedIndex("k"),)


# --- shapes ------------------------------------------------------------------------------------

SHAPES = st.lists(st.integers(1, 6), max_size=4).map(tuple).filter(lambda s: prod(s) <= 200)


def _reshapes(numel: int) -> list[tuple[int, ...]]:
    if numel == 1:
        return [(), (1,)]
    found: list[tuple[int, ...]] = [(numel,)]
    for n in range(2, numel):
        if numel % n == 0:
            found += [(n, *rest) for rest in _reshapes(numel // n)]
    return found


@given(SHAPES)
def test_unravel_undoes_linear(shape: tuple[int, ...]) -> None:
    index = tuple(digit(a) for a in _axes(*shape))
    assert unravel(linear(index, shape), shape) == index


@pytest.mark.parametrize("numel", [12, 30, 36])
def test_reshape_and_back_is_nothing(numel: int) -> None:
    for shape, other in itertools.product(_reshapes(numel), repeat=2):
        index = tuple(digit(a) for a in _axes(*shape))
        between = unravel(linear(index, shape), other)
        assert unravel(linear(between, other), shape) == index, (shape, other)


def test_shapes_without_elements_can_be_unravelled() -> None:
    index = tuple(digit(a) for a in _axes(0, 3))
    assert len(unravel(linear(index, (0, 3)), (3, 0, 2))) == 3


@given(st.data())
def test_chains_of_views_find_the_element(data: st.DataObject) -> None:
    """Reshape, permute and slice in any order, against the same done to row-major positions."""
    shape = data.draw(SHAPES)
    assume(prod(shape) > 0)
    steps: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    sizes = shape
    for kind in data.draw(st.lists(st.sampled_from(["reshape", "permute", "slice"]), max_size=4)):
        arg, after = _draw_view(data, kind, sizes)
        steps.append((kind, arg, sizes))
        sizes = after
    axes = _axes(*sizes)
    index = tuple(digit(a) for a in axes)
    places = [tuple(env[a.name] for a in axes) for env in _points(axes)]
    for kind, arg, before in reversed(steps):
        index = _pull(kind, arg, before, index, sizes)
        places = [_moved(kind, arg, before, place, sizes) for place in places]
        sizes = before
    for env, place in zip(_points(axes), places, strict=True):
        assert tuple(value(item, env) for item in index) == place


def _draw_view(
    data: st.DataObject, kind: str, sizes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if kind == "reshape":
        other = data.draw(st.sampled_from(_reshapes(prod(sizes))))
        return other, other
    if kind == "permute":
        dims = tuple(data.draw(st.permutations(range(len(sizes)))))
        return dims, tuple(sizes[d] for d in dims)
    starts = tuple(data.draw(st.integers(0, n - 1)) for n in sizes)
    return starts, tuple(n - s for n, s in zip(sizes, starts, strict=True))


def _pull(
    kind: str,
    arg: tuple[int, ...],
    before: tuple[int, ...],
    index: tuple[Affine, ...],
    sizes: tuple[int, ...],
) -> tuple[Affine, ...]:
    if kind == "reshape":
        return unravel(linear(index, sizes), before)
    if kind == "permute":
        return tuple(index[arg.index(d)] for d in range(len(arg)))
    return tuple(item + start for item, start in zip(index, arg, strict=True))


def _moved(
    kind: str,
    arg: tuple[int, ...],
    before: tuple[int, ...],
    place: tuple[int, ...],
    sizes: tuple[int, ...],
) -> tuple[int, ...]:
    if kind == "reshape":
        position = 0
        for item, size in zip(place, sizes, strict=True):
            position = position * size + item
        found: list[int] = []
        for size in reversed(before):
            found.append(position % size)
            position //= size
        return tuple(reversed(found))
    if kind == "permute":
        return tuple(place[arg.index(d)] for d in range(len(arg)))
    return tuple(item + start for item, start in zip(place, arg, strict=True))


@given(st.lists(st.integers(1, 6), min_size=2, max_size=2), STEPS)
def test_substituted_axes(extents: list[int], steps: list[Step]) -> None:
    """``x`` replaced by ``2 * y + 1`` is what it is at that value."""
    x, y = Axis("x", 2 * extents[0]), Axis("y", extents[0])
    exprs: list[tuple[Affine, Meaning]] = [(digit(x), lambda env: env["x"])]
    for step in steps:
        _grow(exprs, step)
    for expr, _ in exprs:
        changed = substitute(expr, {x: digit(y) * 2 + 1})
        for at in range(extents[0]):
            assert value(changed, {"y": at}) == value(expr, {"x": 2 * at + 1})
