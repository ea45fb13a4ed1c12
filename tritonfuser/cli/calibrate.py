"""``calibrate``: measure what the cost model takes from a GPU, and keep it for runs that ask."""

from __future__ import annotations

import click
import torch
from tabulate import tabulate

from .. import calibration
from ..device import DeviceProperties
from ..devices import built_in
from ..frontend.calibrate.probes import Fact, joined, measured

UNSTEADY = 0.25
"""How much the timings of a call may vary: other work on the GPU makes them longer."""


@click.command(short_help="Measure the speeds of a GPU for the cost model.")
@click.option("--device", default=0, metavar="N", help="Which GPU; default 0.")
@click.option("--store/--no-store", default=True, help="Whether runs can use what is found.")
def calibrate(device: int, store: bool) -> None:
    """Measure the speeds of a GPU for the cost model, in less than a minute.

    The bandwidth of a copy, the clock under load, what a launch and a load from memory take, and
    products of matrices. They are stored for GPUs of this name. Runs with TRITONFUSER_CALIBRATED=1
    choose kernels by them; all others by the built-in ones, which are the same on every machine.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not 0 <= device < count:
        raise click.ClickException(f"calibrate times GPUs: {count} are here, asked for is {device}")
    facts = built_in(device)
    click.echo(f"{facts.name}, {facts.arch}")
    with torch.cuda.device(device):
        found = [*measured(facts)]
    click.echo(table(facts, found))
    unsteady = [fact.name for fact in found if fact.varied > UNSTEADY]
    if unsteady:
        raise click.ClickException(
            f"nothing is stored, times of {', '.join(unsteady)} vary by more than {UNSTEADY:.0%}: "
            "run it again while nothing else uses the GPU"
        )
    if store:
        _store(facts, found)


def table(facts: DeviceProperties, found: list[Fact]) -> str:
    """Measured facts beside those that are built in."""
    rows = [
        {
            "fact": fact.name,
            "measured": f"{fact.value:.4g}",
            "built in": f"{getattr(facts, fact.name):.4g}",
            "ratio": f"{fact.value / getattr(facts, fact.name):.3f}",
            "varied": f"{fact.varied:.1%}",
        }
        for fact in found
    ]
    text: str = tabulate(rows, headers="keys", disable_numparse=True)
    return text


def _store(facts: DeviceProperties, found: list[Fact]) -> None:
    try:
        path = calibration.save(facts.name, facts.arch, joined(found))
    except OSError as error:
        raise click.ClickException(
            f"what was measured is not stored: {error}; set TRITONFUSER_CACHE_DIR to a directory "
            "that can be written to"
        ) from error
    click.echo(f"stored as {path}; runs with {calibration.OPTION}=1 use it")
