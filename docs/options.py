"""Writes the tables of ``docs/options.md`` from ``tritonfuser/options.py``.

``python docs/options.py`` writes the page; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonfuser import options
from tritonfuser.options import Option

PAGE = Path(__file__).with_name("options.md")
BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"


def cell(text: str) -> str:
    """Text in a table: a bar would end it."""
    return text.replace("|", "\\|")


def default_text(row: Option) -> str:
    """The default as one would set it."""
    if isinstance(row.default, bool):
        return f"`{int(row.default)}`"
    if isinstance(row.default, float):
        return f"`{row.default:g}`"
    return "nothing"


def tables() -> Iterator[str]:
    """A table of all variables, and one of the words of each that takes words."""
    rows = options.table()
    yield "| variable | default | what it does |\n| --- | --- | --- |\n"
    for row in rows:
        yield f"| `{row.env}` | {default_text(row)} | {cell(row.doc)} |\n"
    for row in rows:
        if row.words:
            yield f"\n`{row.env}` takes words separated by commas:\n\n"
            yield "| word | meaning |\n| --- | --- |\n"
            yield from (f"| `{word}` | {cell(text)} |\n" for word, text in row.words.items())


def page(text: str) -> str:
    """The page with today's tables."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{''.join(tables())}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
