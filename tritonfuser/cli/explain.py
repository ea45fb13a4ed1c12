"""``explain FILE.py:function``: what ``fd.explain`` says of a definition in a file."""

from __future__ import annotations

from typing import Any

import click

from ..frontend.definition import FusionDefinition
from .user_file import called, load_function

CONTRACT = "it must take nothing and return (fd, inputs): a FusionDefinition, and a list for fd.run"


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
    fd, inputs = made_by(function)
    click.echo(called(lambda: fd.explain(inputs, measure, arch=arch), "fd.explain(inputs) failed"))


def made_by(function: str) -> tuple[FusionDefinition, Any]:
    """The definition and the inputs that ``FILE.py:function`` returns.

    Raises
    ------
    click.ClickException
        It raises, or returns something else.
    """
    made = called(load_function(function), f"{function} failed")
    if not isinstance(made, tuple) or len(made) != 2:
        raise click.ClickException(f"{function} returned {type(made).__name__}: {CONTRACT}")
    fd, inputs = made
    if not isinstance(fd, FusionDefinition):
        raise click.ClickException(f"{function} returned a {type(fd).__name__} first: {CONTRACT}")
    if not isinstance(inputs, list | tuple):
        got = type(inputs).__name__
        raise click.ClickException(f"{function} returned a {got} second: {CONTRACT}")
    return fd, inputs
