"""The subcommands by name. A module is imported when its subcommand is used.

A new subcommand is a module with a click command of its name, and a line in ``COMMANDS``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from ..frontend.vocabulary.version import version
from .error_text import told

COMMANDS = {
    "calibrate": "Measure the speeds of a GPU for the cost model.",
    "doctor": "Say whether this machine is set up, and what is used of it.",
    "explain": "Show what a definition in a file becomes, and why.",
    "ops": "List the ops, or show one.",
    "params": "Show, compare, send and clear the schedules that tuning has stored.",
    "schema": "Print the JSON Schema of schedules.",
    "tune": "Tune a definition in a file on the GPU, and store its schedules.",
}
"""Name -> the first line of its help."""


class Subcommands(click.Group):
    """A group that knows its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(import_module(f"{__package__}.{cmd_name}"), cmd_name)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; what goes wrong is told."""
        with told():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


@click.command(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version(), prog_name="tritonfuser")
def main() -> None:
    """tritonfuser: nvFuser's fusion frontend, backed by Triton."""
