"""The command line of ``python -m bench``, and options shared with other commands."""

from __future__ import annotations

import argparse
from pathlib import Path

from .processes.workers import PROCESSES, Limits
from .suite import selection
from .tables.comparison import TOLERATED
from .tables.records import PEERS

TUNING = 3.0
"""Seconds of tuning a row, if none are given."""

EPILOG = """\
On a machine without CUDA the rows are compiled for sm_90. The table then has the registers, spilled
bytes, shared memory, widest load and store in bytes, bytes moved, and the ratio of these to the
minimum, of every kernel. --json writes the lines to a file, and --against lists the changes since
such a file.
"""


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Time the suite on a GPU against its peers, or compile it without a GPU.",
        epilog=EPILOG,
    )
    selection.add_arguments(parser.add_argument_group("rows"))
    _add_run(parser.add_argument_group("run"))
    _add_output(parser.add_argument_group("output"))
    return parser.parse_args()


def _add_run(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--vs",
        type=_peers,
        default=PEERS,
        metavar="PEER,...",
        help="some of " + ",".join(PEERS) + " (default all), or none",
    )
    group.add_argument(
        "--tuned",
        nargs="?",
        type=positive_seconds,
        const=TUNING,
        metavar="SECONDS",
        help="tune each row for so long (default %(const)s), and print the heuristics' schedule "
        "and the tuned one beside each other",
    )
    add_workers(group)
    group.add_argument(
        "--compile-for",
        metavar="ARCH",
        help="compile only, for an architecture such as sm_90; implied without CUDA",
    )
    group.add_argument(
        "--unchecked",
        action="store_true",
        help="do not compare results with float64; saves a third of the time",
    )
    group.add_argument("--list", action="store_true", help="print the selected rows and exit")


def add_workers(parser: argparse._ActionsContainer) -> None:
    """Options of a run on several worker processes."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=PROCESSES,
        help="worker processes (default %(default)s)",
    )
    parser.add_argument(
        "--deadline",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="after this time skip peers that are not compiled yet",
    )
    add_stop(parser)


def add_stop(parser: argparse._ActionsContainer) -> None:
    """Options of any run on a GPU."""
    parser.add_argument(
        "--stop",
        "--limit",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="end the run after this time and keep the results so far",
    )
    add_commit(parser)


def add_commit(parser: argparse._ActionsContainer) -> None:
    """Add ``--commit``, which is stored with the results."""
    parser.add_argument(
        "--commit", help="commit stored with the results (default: of the working tree)"
    )


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits that were parsed by the options of ``add_workers``."""
    return Limits(options.deadline, options.stop)


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--json", type=Path, metavar="F", help="write results to this file as they come"
    )
    group.add_argument("--csv", type=Path, metavar="F", help="write a line per row to this file")
    group.add_argument(
        "--plot",
        type=Path,
        metavar="F",
        help="plot the share of copy bandwidth by size to this file",
    )
    group.add_argument(
        "--markdown", type=Path, metavar="F", help="write the tables as Markdown to this file"
    )
    group.add_argument(
        "--against",
        type=Path,
        metavar="F",
        help="compare ratios with earlier results; exit status 1 where some got worse",
    )
    group.add_argument(
        "--tolerated",
        type=float,
        default=100 * TOLERATED,
        metavar="PERCENT",
        help="tolerance of --against (default %(default).0f)",
    )
    group.add_argument(
        "--render",
        nargs="+",
        type=Path,
        metavar="F",
        help="run nothing; merge these result files, later ones replacing rows of earlier ones",
    )


def positive_seconds(text: str) -> float:
    """Parse a budget."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text!r}")
    return seconds


def _peers(text: str) -> tuple[str, ...]:
    """``"eager,compile"``."""
    names = tuple(name for name in text.split(",") if name not in ("", "none"))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        known = ", ".join(PEERS)
        raise argparse.ArgumentTypeError(f"expected some of {known}, got {', '.join(unknown)}")
    return names
