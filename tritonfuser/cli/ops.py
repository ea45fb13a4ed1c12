"""``ops [NAME]``: the op table for people."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import click
from tabulate import tabulate

from ..frontend.record.op_signatures import docstring_of, signature_of
from ..ops.registry import OPS
from ..ops.table import Op
from .op_examples import example_of


@click.command(short_help="List the ops, or show one.")
@click.argument("name", required=False)
def ops(name: str | None) -> None:
    """List the ops, or show one: its signature, what it does, its parameters, an example."""
    if name is None:
        click.echo("\n".join(listing()))
        return
    op = OPS.get(name)
    if op is None:
        near = difflib.get_close_matches(name, OPS, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise click.BadParameter(f"there is no op {name!r}{hint}", param_hint="NAME")
    click.echo("\n".join(page(op)))


def listing() -> Iterator[str]:
    """A table for each category."""
    for category in dict.fromkeys(op.category for op in OPS.values()):
        rows = [(op.name, op.doc) for op in OPS.values() if op.category == category]
        yield f"{category}\n{tabulate(rows, tablefmt='plain')}\n"
    yield "`ops NAME` shows the parameters of one, and an example."


def page(op: Op) -> Iterator[str]:
    """One op."""
    names = ", ".join(str(p).replace("'", "") for p in signature_of(op).parameters.values())
    yield f"fd.ops.{op.name}({names})\n"
    yield docstring_of(op)
    yield f"\nExample\n-------\n{example_of(op)}"
