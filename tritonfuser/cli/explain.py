"""``explain FILE.py:function``: what ``fd.explain`` says of a definition in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .sizes import call_text, sizes_option
from .user_file import called, load_function, made_by


@click.command(short_help="Show what a definition in a file becomes, and why.")
@click.argument("function", metavar="FILE.py:FUNCTION")
@sizes_option
@click.option("--arch", metavar="ARCH", help="Explain a first run on that GPU: sm_90, gfx942.")
@click.option("--measure/--no-measure", default=True, help="Time runs where there is a GPU.")
def explain(function: str, sizes: list[tuple[int, ...]], arch: str | None, measure: bool) -> None:
    """Show what a definition in a file becomes, and why.

    FUNCTION takes nothing, or the sizes, and returns (fd, inputs). FILE.py is imported, so what it
    does when it is imported is done. For each segment are shown its scheduler and why the others
    refused, where and why the graph was cut, params, grid, bytes to move, and the time that takes.
    """
    made = load_function(function)
    for given in sizes:
        name = call_text(function, given) if given else function
        text = _explained(made, name, given, arch, measure)
        click.echo(f"{name}\n\n{text}\n" if len(sizes) > 1 else text)


def _explained(
    made: Callable[..., Any], name: str, given: tuple[int, ...], arch: str | None, measure: bool
) -> Any:
    fd, inputs = made_by(made, given, name)
    return called(lambda: fd.explain(inputs, measure, arch=arch), "fd.explain(inputs) failed")
