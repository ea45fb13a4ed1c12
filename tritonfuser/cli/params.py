"""``params``: the schedules that tuning has stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import torch
from tabulate import tabulate

from .. import devices, disk
from ..cache.tuned import store
from ..cache.tuned.keys import versions
from ..cache.tuned.store import Entry
from ..device import DeviceProperties
from ..errors import TritonFuserError
from ..frontend.definition import FusionDefinition
from ..frontend.serialization.signatures import signature_from
from ..frontend.tune.report import differences
from ..frontend.tune.transfer import exported, heuristics_of, imported
from ..frontend.vocabulary.units import seconds_text
from ..lowering.passes.concretize import TensorSpec
from .error_text import complaint

SHORT = 12
"""Characters of an ID that are shown; any that are no other's beginning will do."""

COLUMNS = ("id", "device", "inputs", "time", "heuristics", "speedup", "used")


@click.group(short_help="Show, compare, send and clear the schedules that tuning has stored.")
def params() -> None:
    """Show, compare, send and clear the schedules that tuning has stored.

    They are JSON files in TRITONFUSER_CACHE_DIR, by default in the user's directory for caches. An
    ID is the beginning of a file's name, as `list` prints it.
    """


@params.command("list")
def list_command() -> None:
    """List what is stored: for which GPU and inputs, and how fast it is."""
    rows = []
    for found in store.entries():
        if isinstance(found, Path):
            rows.append({"id": found.stem[:SHORT], "used": "no: it cannot be read"})
            continue
        rows.append({"id": found.name[:SHORT], **_row(found)})
    table = [[row.get(name, "") for name in COLUMNS] for row in rows]
    text = tabulate(table, headers=COLUMNS, disable_numparse=True)
    click.echo(text if rows else "nothing is stored")


def _row(entry: Entry) -> dict[str, str]:
    stored = entry.stored
    return {
        "device": stored.device,
        "inputs": _inputs_text(entry),
        "time": seconds_text(stored.seconds),
        "heuristics": seconds_text(stored.heuristic_seconds),
        "speedup": f"{stored.heuristic_seconds / stored.seconds:.2f}x",
        "used": _used(entry),
    }


def _inputs_text(entry: Entry) -> str:
    """``Float[64, 300], Double``; empty where they are not stored."""
    given = entry.stored.problem.get("inputs")
    try:
        specs = signature_from([] if given is None else given, "inputs")
    except TritonFuserError:
        return "?"
    return ", ".join(
        f"{s.dtype.name}{[*s.sizes]}" if isinstance(s, TensorSpec) else s.dtype.name for s in specs
    )


def _used(entry: Entry) -> str:
    """Whether runs here may use it, or why not."""
    others = [name for name, found in versions().items() if getattr(entry.key, name) != found]
    return f"no: {', '.join(others)} changed" if others else "yes"


@params.command("show")
@click.argument("given", metavar="ID")
def show_command(given: str) -> None:
    """Show one: its definition, its inputs, its times, its schedule."""
    entry = _chosen(given)
    definition = entry.stored.problem.get("definition")
    if definition is not None:
        click.echo(f"{_or_complain(lambda: FusionDefinition.from_dict(definition))!r}\n")
    for name, text in (*_row(entry).items(), ("file", str(entry.path))):
        click.echo(f"{name}: {text}")
    click.echo(f"\n{entry.stored.schedule}")


@params.command("diff")
@click.argument("given", metavar="ID")
@click.argument("other", metavar="[OTHER]", required=False)
def diff_command(given: str, other: str | None) -> None:
    """Say how a schedule differs from the heuristics' own, or from another one."""
    entry = _chosen(given)
    schedule = entry.stored.schedule
    if other is not None:
        base = _chosen(other).stored.schedule
    else:
        base = _or_complain(lambda: heuristics_of(entry))
    click.echo("\n".join(differences(schedule, base)) or "they are the same")


@params.command("export")
@click.argument("given", metavar="[ID]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to this file; by default to the standard output.",
)
def export_command(given: Sequence[str], output: Path | None) -> None:
    """Write schedules as JSON that `import` takes elsewhere.

    All that runs here use if none is named.
    """
    found = [_chosen(name) for name in given] or [e for e in _readable() if _used(e) == "yes"]
    text = json.dumps(_or_complain(lambda: exported(found)), indent=1)
    if output is None:
        click.echo(text)
        return
    disk.replace_text(output, text)
    click.echo(f"{len(found)} written to {output}")


@params.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--any-device", is_flag=True, help="Take schedules for GPUs that are not here too.")
def import_command(file: Path, any_device: bool) -> None:
    """Store schedules that `export` wrote.

    Before any is stored each is checked: that it is for this version and for a GPU that is here,
    and that its definition can be run with it.
    """
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise click.ClickException(f"{file}: expected JSON: {error}") from error
    here = None if any_device else _devices()
    found = _or_complain(lambda: imported(data, here), f"{file}: ")
    before = {entry.name for entry in _readable()}
    for key, stored in found:
        try:
            store.save(key, stored)
        except OSError as error:
            raise click.ClickException(f"{store.folder()}: {error}") from error
    replaced = sum(key.name in before for key, _ in found)
    click.echo(f"{len(found)} stored, {replaced} of them in the place of others")


@params.command("clear")
@click.argument("given", metavar="[ID]...", nargs=-1)
@click.option("--unused", is_flag=True, help="Only those that runs here do not use.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear_command(given: Sequence[str], unused: bool, yes: bool) -> None:
    """Remove schedules; all of them if none is named."""
    paths = [_chosen_path(name) for name in given] or [_path(found) for found in store.entries()]
    if unused:
        keep = {entry.path for entry in _readable() if _used(entry) == "yes"}
        paths = [path for path in paths if path not in keep]
    if not paths:
        click.echo("nothing to remove")
        return
    if not yes:
        click.confirm(f"Remove {len(paths)} from {store.folder()}?", abort=True)
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise click.ClickException(f"{path}: {error}") from error
    click.echo(f"{len(paths)} removed")


# --- what is named -------------------------------------------------------------------------------


def _path(found: Entry | Path) -> Path:
    return found.path if isinstance(found, Entry) else found


def _readable() -> list[Entry]:
    return [found for found in store.entries() if isinstance(found, Entry)]


def _chosen_path(given: str) -> Path:
    """The file whose name begins so: what is given is compared, and is no path."""
    names = [path for path in map(_path, store.entries()) if given and path.stem.startswith(given)]
    if len(names) != 1:
        what = "nothing that begins with" if not names else f"{len(names)} that begin with"
        raise click.BadParameter(f"there is {what} {given!r}; `params list` lists what is stored")
    return names[0]


def _chosen(given: str) -> Entry:
    path = _chosen_path(given)
    found = next((entry for entry in _readable() if entry.path == path), None)
    if found is None:
        raise click.ClickException(f"{path} cannot be read; `params clear {given}` removes it")
    return found


def _devices() -> list[DeviceProperties]:
    return [devices.of(torch.device("cuda", i)) for i in range(torch.cuda.device_count())]


def _or_complain(read: Any, before: str = "") -> Any:
    """What a call returns; an error of ours as one of the command line's."""
    try:
        return read()
    except TritonFuserError as error:
        raise click.ClickException(f"{before}{complaint(error)}") from error
