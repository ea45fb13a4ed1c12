"""``schema``: the JSON Schema of schedules."""

from __future__ import annotations

import json

import click

from ..heuristics.schedule import Schedule


@click.command(short_help="Print the JSON Schema of schedules.")
def schema() -> None:
    """Print the JSON Schema of schedules, as `fd.schedule(inputs).to_dict()` writes them."""
    click.echo(json.dumps(Schedule.json_schema(), indent=2))
