"""Writes ``docs/modules.md``: every module of the package with the first sentence of its docstring.

``python docs/modules.py`` writes the page; a test compares.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tritonfuser"
PAGE = ROOT / "docs" / "modules.md"

HEADER = """# Modules

Written by docs/modules.py from the docstrings: every module of the package, folder by folder.
`docs/architecture.md` says how they work together.
"""


def summary(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", r"\|")


def folders() -> Iterator[Path]:
    """The folders of the package, those above first."""
    yield from sorted({path.parent for path in PACKAGE.rglob("*.py")})


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield from HEADER.split("\n")
    for folder in folders():
        modules = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")
        yield f"## {folder.relative_to(ROOT)}"
        yield ""
        if (folder / "__init__.py").exists():
            yield summary(folder / "__init__.py")
            yield ""
        if modules:
            yield "| module | what it is for |"
            yield "| --- | --- |"
            yield from (f"| `{path.name}` | {summary(path)} |" for path in modules)
            yield ""


def page() -> str:
    """The whole page."""
    return "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
