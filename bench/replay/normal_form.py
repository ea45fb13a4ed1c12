"""Normal form of a record: lines that should be equal in two trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Renames:
    """Old to new names: whole words, and substrings of any text."""

    words: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Apply the renames; each position is replaced at most once."""
        text = _replaced(text, self.texts, "{}")
        return _replaced(text, self.words, r"(?<!\w)(?:{})(?!\w)")


def _replaced(text: str, table: Mapping[str, str], pattern: str) -> str:
    if not table:
        return text
    longest_first = sorted(table, key=len, reverse=True)
    choice = "|".join(map(re.escape, longest_first))
    return re.sub(pattern.format(choice), lambda found: table[found[0]], text)


def code(text: str) -> str:
    """A module's text without imports, docstrings and comments."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_left_out(line)]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_left_out(line: ast.stmt) -> bool:
    """Whether a statement is an import or a docstring."""
    if isinstance(line, ast.Import | ast.ImportFrom):
        return True
    return isinstance(line, ast.Expr) and isinstance(getattr(line.value, "value", None), str)


def kernels(record: Record, renames: Renames) -> list[str]:
    """The lines of each kernel: name, facts of its launch, code."""
    found: list[str] = []
    for kernel in record["kernels"]:
        facts = sorted(renames(f"{name} = {value}") for name, value in kernel["facts"].items())
        head = [f"# kernel {renames(kernel['name'])}", *(f"#   {fact}" for fact in facts)]
        found.append("\n".join([*head, renames(code(kernel["text"]))]))
    return found


def texts(record: Record, renames: Renames) -> list[str]:
    """The other texts, each under its name."""
    return [f"# {name}\n{renames(text)}" for name, text in sorted(record["texts"].items())]
