"""``explain FILE.py:function``: what ``fd.explain`` says of a definition in a file."""

from __future__ import annotations

import click

from .user_file import called, load_function, made_by


@click.command(short_help="Show what a definition in a file becomes, and why.")
@click.argument("function", metavar="FILE.py:FUNCTION")
@click.option("--arch", metavar="ARCH", help="Explain a first run on that GPU: sm_90, gfx942.")
@click.option("--measure/--no-measure", default=True, help="Time runs where there is a GPU.")
def explain(function: str, arch: str | None, measure: bool) -> None:
    """Show what a definition in a file becomes, and why.

    FUNCTION takes nothing and returns (fd, inputs). FILE.py is imported, so what it does when it is
    imported is done. For each segment are shown its scheduler and why the others refused, where and
    why the graph was cut, params, grid, bytes to move, and the time that takes.
    """
    fd, inputs = made_by(load_function(function), function)
    click.echo(called(lambda: fd.explain(inputs, measure, arch=arch), "fd.explain(inputs) failed"))
