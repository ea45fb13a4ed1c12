"""Long lines of kernels as several, which mean the same."""

from __future__ import annotations

import ast

import pytest

from tritonfuser.lowering.emit.long_lines import WIDTH, signature, wrapped

ADDRESS = "tv0_ptr + s * 2097152 + m * 32768 + r"
MASK = "mask=m_mask, other=0"
EACH = "lane_sum(near * near, 8)"
DIVIDED = "a = f(x) / (n * m).to(tl.float32)" + " * 1.0" * 12


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("    a = tl.load(p + x)", ["    a = tl.load(p + x)"]),
        (
            f"    tv0 = tl.load({ADDRESS}, {MASK}, eviction_policy='first', volatile=True)",
            [
                "    tv0 = tl.load(",
                f"        {ADDRESS}, {MASK}, eviction_policy='first',",
                "        volatile=True",
                "    )",
            ],
        ),
        (
            f"f({', '.join(['(first, second)'] * 7)})",
            [
                "f(",
                "    " + ", ".join(["(first, second)"] * 5) + ",",
                "    (first, second), (first, second)",
                ")",
            ],
        ),
        (
            f"total += {' - '.join([EACH] * 4)} + rest",
            ["total += (", f"    {EACH} - {EACH} - {EACH}", f"    - {EACH} + rest", ")"],
        ),
        (
            f"f({' + '.join(['p', *[EACH] * 4])}, mask=m)",
            ["f(", f"    p + {EACH} + {EACH} + {EACH}", f"    + {EACH}, mask=m", ")"],
        ),
        ('tl.device_assert(a, "' + "b, (c " * 20 + '")', None),
        (DIVIDED, [DIVIDED]),
    ],
)
def test_long_lines_are_several(line, lines):
    found = wrapped(line)
    assert lines is None or found == lines
    assert ast.dump(ast.parse("\n".join(found).strip())) == ast.dump(ast.parse(line.strip()))


def test_a_signature_has_a_parameter_a_line_where_it_is_long():
    assert signature("f", ["a", "b"]) == ["def f(a, b):"]
    assert signature("f", ["a" * WIDTH, "b"]) == ["def f(", f"    {'a' * WIDTH},", "    b,", "):"]
