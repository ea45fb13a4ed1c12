"""Values that a kernel's text computes once, and lines that nobody needs."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, texts
from tritonfuser import DataType as D
from tritonfuser.lowering.emit.common_subexpressions import eliminate_common_subexpressions
from tritonfuser.lowering.emit.line_passes import eliminate_dead_lines
from tritonfuser.lowering.emit.lines import Line
from tritonfuser.lowering.product_policy import ProductPolicy


def tidy(*given: str) -> list[str]:
    """Lines without repeats, indented by four blanks a block."""
    lines = [Line(text.strip(), depth=(len(text) - len(text.lstrip())) // 4) for text in given]
    return ["    " * line.depth + line.text for line in eliminate_common_subexpressions(lines)]


def test_a_value_has_the_first_name():
    assert tidy("a = x - y", "b = x - y", "c = x - a", "d = x - b", "f(b, c, d)") == [
        "a = x - y",
        "c = x - a",
        "f(a, c, c)",
    ]


def test_copies_of_lines_before_are_read_as_these():
    assert tidy("a = f(x)", "b = a", "c = b + 1", "g(b, c)") == ["a = f(x)", "c = a + 1", "g(a, c)"]
    kept = ["x = program", "a = f(x)", "for i in range(4):", "    b = a", "    a = f(b)", "g(a)"]
    assert tidy(*kept) == kept


def test_what_changes_is_another_value():
    changing = ["a = x + n", "n = n + 1", "b = x + n", "f(a, b)"]
    assert tidy(*changing) == changing
    counting = ["a = x + n", "for n in range(4):", "    b = x + n", "    f(a, b)"]
    assert tidy(*counting) == counting
    adding = ["a = x + n", "for i in range(4):", "    b = x + n", "    n += 1", "f(a)"]
    assert tidy(*adding) == adding


def test_loops_know_what_comes_before_them_and_forget_what_is_inside():
    loops = [
        "a = x - y",
        *("for i in range(4):", "    b = x - y", "    r = b * i", "    s = b * i", "    f(s)"),
        *("for i in range(4):", "    t = a * i", "    f(t)"),
    ]
    assert tidy(*loops) == [
        "a = x - y",
        *("for i in range(4):", "    r = a * i", "    f(r)"),
        *("for i in range(4):", "    t = a * i", "    f(t)"),
    ]


def test_accumulators_loads_and_texts_stay():
    lines = [
        *("a = tl.full([], 0.0, tl.float32)", "b = tl.full([], 0.0, tl.float32)"),
        *("a += x", "b += x", "c = tl.load(p)", "tl.store(p, a)", "d = tl.load(p)"),
        *("m = x > 0", "n = x > 0", 'tl.device_assert(n, "n of m")', "f(b, c, d)"),
    ]
    assert tidy(*lines) == [*lines[:8], 'tl.device_assert(m, "n of m")', lines[-1]]


def test_running_results_that_nobody_reads_are_dropped():
    lines = [
        *(Line(f"{name} = tl.full([], 0.0, tl.float32)") for name in "abc"),
        Line("for i in range(4):"),
        *(Line(text, depth=1) for text in ("a = a + 1", "b += a", "c = c + b", "f(a)")),
    ]
    assert [line.text for line in eliminate_dead_lines(lines)] == [
        *("a = tl.full([], 0.0, tl.float32)", "for i in range(4):", "a = a + 1", "f(a)")
    ]


def test_a_norm_takes_the_difference_of_its_moments():
    def body(fd: Any, x: Any) -> Any:
        var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
        return fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))

    (text,) = texts(check(body, noise(16, 64)))
    assert text.count(" - ") == 1


def test_functions_take_what_they_use():
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.sum(x, [0]), fd.ops.cumsum(fd.ops.exp(y), 1)

    (text,) = texts(check(body, noise(16), noise(17, 2)))
    functions = [f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)]
    assert any(f.name.endswith("_and_s1") for f in functions)
    for function in functions:
        read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        assert {given.arg for given in function.args.args} <= read
    assert " - 1," in text


@pytest.mark.parametrize(
    ("op", "number", "dtype", "is_written"),
    [
        ("mul", 1.0, torch.float32, False),
        ("sub", 0.0, torch.float32, False),
        ("add", 0, torch.int64, False),
        ("mul", 1, torch.int32, False),
        ("add", 0.0, torch.float32, True),  # makes 0.0 of -0.0
        ("mul", -1.0, torch.float32, True),
        ("sub", -0.0, torch.float32, True),
    ],
)
def test_a_number_that_changes_nothing_is_not_written(op, number, dtype, is_written):
    def body(fd, x):
        return getattr(fd.ops, op)(fd.ops.mul(x, 3), number)

    (text,) = texts(check(body, torch.tensor([0.0, -0.0, 3.0, -5.0]).to(dtype)))
    assert text.count("tv2 =") == is_written


# --- expressions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "written"),
    [(-3, "tv0 - 3"), (3, "tv0 + 3"), (-(2**31), "tv0 + -2147483648")],
)
def test_negative_integers_are_subtracted(number, written):
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.add(x, number)

    assert written in texts(check(body, torch.arange(4)))[0]


def test_positions_of_32_bits_are_not_cast():
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.add(x, fd.ops.iota(64, 0, 1, D.Int32))

    (text,) = texts(check(body, torch.arange(320, dtype=torch.int32).reshape(5, 64)))
    assert "tl.cast" not in text and "tv1 = x + " in text


def test_a_product_of_one_tile_has_no_rows_and_columns_of_tiles():
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.matmul(x, y)

    given = [noise(8, 4, 7).half(), noise(8, 7, 16).half()]
    (text,) = texts(lowered(body, given, products=ProductPolicy.KERNELS))
    loop = text[text.index("tile = ") : text.index("    for k_start")]
    assert not re.search(r"row|column|start|% 1\b|// 1\b", loop)
