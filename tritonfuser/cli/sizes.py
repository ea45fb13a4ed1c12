"""``--sizes 8192x4096``: arguments of a function in a user's file."""

from __future__ import annotations

import re

import click

_FORM = re.compile(r"[0-9]{1,18}(x[0-9]{1,18})*")


def _parsed(ctx: object, param: object, given: tuple[str, ...]) -> list[tuple[int, ...]]:
    """What each ``--sizes`` calls the function with; nothing where none is given."""
    for text in given:
        if not _FORM.fullmatch(text):
            raise click.BadParameter(f"{text!r} is not of the form 8192x4096")
    return [tuple(map(int, text.split("x"))) for text in given] or [()]


sizes_option = click.option(
    "--sizes",
    multiple=True,
    callback=_parsed,
    metavar="AxB",
    help="Call FUNCTION(A, B) in place of FUNCTION(); give it again for more sizes.",
)


def call_text(function: str, given: tuple[int, ...]) -> str:
    """``softmax(8192, 4096)``, of ``FILE.py:softmax``."""
    return f"{function.rpartition(':')[2]}({', '.join(map(str, given))})"
