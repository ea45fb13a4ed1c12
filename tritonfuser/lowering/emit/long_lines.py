"""Long lines of a kernel as several, of 100 columns where their parts allow that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

WIDTH = 100

_PIECES = re.compile(r'"[^"]*"|[()\[\]]|, | [-+&] |.', re.DOTALL)
"""What a line is made of: strings, brackets, commas, operators, single characters."""

_ASSIGNMENT = re.compile(r"(\w+ [-+*]?= )(.*)", re.DOTALL)


def wrapped(line: str) -> list[str]:
    """A statement as lines: the arguments of its call below it, or the terms of its sum.

    ::

        tv0 = tl.load(
            tv0_ptr + x * 4096 + r, mask=r_mask, other=0, eviction_policy="evict_first"
        )
    """
    if len(line) <= WIDTH:
        return [line]
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    call = _outer_call(code)
    if call is not None:
        head, inside = call
        room = WIDTH - len(indent) - 4
        parts = [[p] if len(p) <= room else _split(p, "+-&") for p in _split(inside, ",")]
        given = [part for each in parts for part in each]
        return [f"{indent}{head}", *_filled(given, f"{indent}    "), f"{indent})"]
    assigned = _ASSIGNMENT.fullmatch(code)
    if assigned is None:
        return [line]
    terms = _filled(_split(assigned[2], "+-&"), f"{indent}    ")
    return [f"{indent}{assigned[1]}(", *terms, f"{indent})"] if len(terms) > 1 else [line]


def signature(name: str, parameters: Sequence[str]) -> list[str]:
    """``def name(...):`` on one line, or one parameter a line where that is too long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= WIDTH:
        return [line]
    return [f"def {name}(", *(f"    {p}," for p in parameters), "):"]


def _outer_call(code: str) -> tuple[str, str] | None:
    """``name = call(`` and what is between the parentheses, where these end the statement."""
    opened = -1
    for place, piece, depth in _walk(code):
        if piece == "(" and depth == 0:
            opened = place
        if piece == ")" and depth == 0 and place == len(code) - 1 and opened > 0:
            head = code[: opened + 1]
            is_call = re.fullmatch(r"(\w+(, \w+)* = )?[\w.]+\(", head)
            return (head, code[opened + 1 : place]) if is_call else None
    return None


def _walk(code: str) -> Iterator[tuple[int, str, int]]:
    """Each piece of a text with its place, and the brackets around it."""
    depth = 0
    for match in _PIECES.finditer(code):
        piece = match[0]
        depth -= piece in (")", "]")
        yield match.start(), piece, depth
        depth += piece in ("(", "[")


def _split(code: str, signs: str) -> list[str]:
    """The parts of a text at signs outside of brackets: commas end a part, others begin one."""
    parts = [""]
    for _, piece, depth in _walk(code):
        if depth or len(piece) == 1 or piece.strip() not in tuple(signs):
            parts[-1] += piece
        elif piece == ", ":
            parts[-1] += ","
            parts.append("")
        else:
            parts.append(piece[1:])
    return parts


def _filled(parts: Sequence[str], indent: str) -> list[str]:
    """As many parts on each line as it has room for."""
    lines = [indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(indent + part)
    return lines
