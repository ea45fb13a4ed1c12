"""Values that a kernel's text computes once, and lines that nobody needs."""

from __future__ import annotations

import ast
from typing import Any

from tests.lowering.graphs import noise
from tests.lowering.harness import check, texts
from tritonfuser.lowering.emit.common_values import without_repeats
from tritonfuser.lowering.emit.line_passes import without_unused
from tritonfuser.lowering.emit.lines import Line


def tidy(*given: str) -> list[str]:
    """Lines without repeats, indented by four blanks a block."""
    lines = [Line(text.strip(), depth=(len(text) - len(text.lstrip())) // 4) for text in given]
    return ["    " * line.depth + line.text for line in without_repeats(lines)]


def test_a_value_has_the_first_name():
    assert tidy("a = x - y", "b = x - y", "c = x - a", "d = x - b", "f(b, c, d)") == [
        "a = x - y",
        "c = x - a",
        "f(a, c, c)",
    ]


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
    assert [line.text for line in without_unused(lines)] == [
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
