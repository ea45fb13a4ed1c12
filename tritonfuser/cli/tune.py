"""``tune FILE.py:function``: ``fd.autotune`` of a definition in a file, at some sizes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

from .. import disk
from ..frontend.run.tunable import LEVELS
from ..frontend.tune.report import TuneReport
from .sizes import call_text, sizes_option
from .user_file import called, load_function, made_by


def _writable(ctx: object, param: object, path: Path | None) -> Path | None:
    """A file that cannot be written is refused before anything is tuned for it."""
    if path is not None and not path.exists() and not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"no file can be made in '{path.parent}'")
    return path


@click.command(short_help="Tune a definition in a file on the GPU, and store its schedules.")
@click.argument("function", metavar="FILE.py:FUNCTION")
@sizes_option
@click.option("--budget", default=5.0, metavar="SECONDS", help="For each of the sizes; default 5.")
@click.option("--level", type=click.Choice(LEVELS), default="params", help="What may be changed.")
@click.option(
    "--arch", metavar="NAME", help="Rank by the cost model for a GPU: sm_90. Runs nothing."
)
@click.option("--seed", default=0, help="Of the order in which schedules are tried.")
@click.option("--store/--no-store", default=True, help="Whether later runs use what is found.")
@click.option(
    "--json",
    "written",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=_writable,
    metavar="FILE",
    help="Write the reports, with all that was tried.",
)
def tune(
    function: str,
    sizes: list[tuple[int, ...]],
    budget: float,
    level: Literal["params", "schedule"],
    arch: str | None,
    seed: int,
    store: bool,
    written: Path | None,
) -> None:
    """Tune a definition in a file on the GPU, and store its schedules.

    FUNCTION takes nothing, or the sizes, and returns (fd, inputs), with inputs on a CUDA device.
    FILE.py is imported, so what it does when it is imported is done. What is found is stored, and
    later runs with such inputs use it; `params` shows what is stored.
    """
    made = load_function(function)
    reports: list[dict[str, Any]] = []
    for given in sizes:
        name = call_text(function, given)
        report = _tuned(made, name, given, budget, level, arch, seed, store)
        click.echo(f"{name}: {report}\n")
        if report.stored:
            click.echo(f"stored as {Path(report.stored).stem[:12]}\n")
        reports.append({"function": name, **report.to_dict()})
        if written is not None:
            disk.replace_text(written, json.dumps(reports, indent=1))
        if report.interrupted:
            raise click.exceptions.Exit(130)


def _tuned(
    made: Callable[..., Any],
    name: str,
    given: tuple[int, ...],
    budget: float,
    level: Literal["params", "schedule"],
    arch: str | None,
    seed: int,
    store: bool,
) -> TuneReport:
    fd, inputs = made_by(made, given, name)
    report: TuneReport = called(
        lambda: fd.autotune(inputs, budget, level, arch=arch, seed=seed, store=store),
        "fd.autotune(inputs) failed",
    )
    return report
