"""The command line of ``python -m bench``, and what other runs on a GPU have in common with it."""

from __future__ import annotations

import argparse
from pathlib import Path

from .processes.workers import PROCESSES, Limits
from .suite import selection
from .tables.comparison import TOLERATED
from .tables.records import PEERS

EPILOG = """\
On a machine without CUDA the rows are compiled for sm_90, and the table says what the kernels are
like: registers, spilled bytes, shared memory, widest load and store in bytes, bytes moved, and how
many times the least that has to be moved that is. --json keeps the lines, and --against a file of
them lists what changed.
"""


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Time the suite on a GPU beside its peers, or compile it for one.",
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
        help="among " + ",".join(PEERS) + ", which is the default; none for ours alone",
    )
    add_workers(group)
    group.add_argument(
        "--compile-for", metavar="ARCH", help="compile only, for sm_90 say; implied without CUDA"
    )
    group.add_argument(
        "--unchecked", action="store_true", help="compare nothing with float64: saves a third"
    )
    group.add_argument("--list", action="store_true", help="print the rows and stop")


def add_workers(parser: argparse._ActionsContainer) -> None:
    """The options of a run that is shared out over processes."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=PROCESSES,
        help="processes that compile (default %(default)s)",
    )
    parser.add_argument(
        "--deadline",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="when no more peers are compiled; the rest of them is skipped",
    )
    add_stop(parser)


def add_stop(parser: argparse._ActionsContainer) -> None:
    """The options of any run on a GPU."""
    parser.add_argument(
        "--stop",
        "--limit",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="when the run ends with what is measured by then",
    )
    add_commit(parser)


def add_commit(parser: argparse._ActionsContainer) -> None:
    """What results that are kept are said to be of."""
    parser.add_argument("--commit", help="what the results are said to be of; by default git's")


def limits_of(options: argparse.Namespace) -> Limits:
    """What ``add_workers`` has read."""
    return Limits(options.deadline, options.stop)


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--json", type=Path, metavar="F", help="write results here, as they come")
    group.add_argument("--csv", type=Path, metavar="F", help="and a line for each row here")
    group.add_argument("--plot", type=Path, metavar="F", help="draw share of copy speed by size")
    group.add_argument("--markdown", type=Path, metavar="F", help="write the tables here")
    group.add_argument(
        "--against",
        type=Path,
        metavar="F",
        help="compare ratios with earlier results; exit code 1 where some got worse",
    )
    group.add_argument(
        "--tolerated",
        type=float,
        default=100 * TOLERATED,
        metavar="PERCENT",
        help="how much worse is not worse (default %(default).0f)",
    )
    group.add_argument(
        "--render",
        nargs="+",
        type=Path,
        metavar="F",
        help="run nothing: put these results together, a later file over an earlier",
    )


def _peers(text: str) -> tuple[str, ...]:
    """``"eager,compile"``."""
    names = tuple(name for name in text.split(",") if name not in ("", "none"))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        known = ", ".join(PEERS)
        raise argparse.ArgumentTypeError(f"expected some of {known}, got {', '.join(unknown)}")
    return names
