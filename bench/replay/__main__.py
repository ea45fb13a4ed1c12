"""``python -m bench.replay --base REV``: compare the kernels of two revisions.

Lowers a fixed corpus with the package of a revision and with that of this working tree, and
compares kernels, params, grids, guards, plans and messages. Nothing is compiled or run. The exit
status is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.tables.files import save_json
from bench.tables.formatting import table

from .compare import Comparison, ReplayError
from .corpus import PARTS, entries
from .normal_form import Renames
from .renames import TEXTS, WORDS
from .trees import ROOT, checked_out, replay


def main() -> int:
    """Parse the command line, replay, and print what differs."""
    options = _options()
    started = time.perf_counter()
    corpus = entries(options.parts, options.filter)
    if not corpus:
        print("python -m bench.replay: no entry has such a name", file=sys.stderr)
        return 2
    try:
        with checked_out(options.base) as base:
            found = replay(base, ROOT, corpus, Renames(WORDS, TEXTS))
    except ReplayError as error:
        print(f"python -m bench.replay: {error}", file=sys.stderr)
        return 2
    _show(found, options.limit)
    print(f"{options.base} against {ROOT} in {time.perf_counter() - started:.0f} s")
    if options.json is not None:
        save_json(options.json, found.plain())
    return 0 if found.is_same else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument(
        "--base", default="HEAD", help="revision to compare with (default %(default)s)"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=(), help="only these parts")
    parser.add_argument(
        "--filter", default="", metavar="TEXT", help="only entries whose name contains this text"
    )
    parser.add_argument(
        "--limit", type=int, default=5, help="most differences to print (default %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write counts and all differences to this file")
    return parser.parse_args()


def _show(found: Comparison, limit: int) -> None:
    for difference in found.differences[:limit]:
        print(f"{difference.title}\n{difference.diff}\n")
    left = len(found.differences) - limit
    if left > 0:
        titles = [difference.title for difference in found.differences[limit:]]
        print("\n".join([f"and {left} more:", *titles[:50], *(["..."] if left > 50 else [])]))
    print(table(found.rows()))


if __name__ == "__main__":
    sys.exit(main())
