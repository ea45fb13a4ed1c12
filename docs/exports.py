"""Writes ``tritonfuser/__init__.pyi``: what type checkers see of ``tritonfuser``.

``python docs/exports.py`` writes the file; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonfuser.exports import GROUPS, MODULES, ORIGINS

STUB = Path(__file__).parents[1] / "tritonfuser" / "__init__.pyi"


def lines() -> Iterator[str]:
    """The file, line by line."""
    yield '"""The names of ``tritonfuser``, typed: written by docs/exports.py."""'
    yield ""
    for module in sorted(MODULES):
        yield f"from . import {module} as {module}"
    for module, name in sorted((module, name) for name, module in ORIGINS.items()):
        line = f"from .{module} import {name} as {name}"
        short = len(line) <= 100
        yield line if short else f"from .{module} import (\n    {name} as {name},\n)"
    yield ""
    yield "__all__ = ["
    for topic, names in GROUPS.items():
        yield f"    # {topic}"
        yield from (f'    "{name}",' for name in names)
    yield "    # modules"
    yield '    "multidevice",'
    yield "]"


def stub() -> str:
    """The whole file."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub())
