"""``python -m bench.functions NAME``: print a recorded definition as a torch function."""

from __future__ import annotations

import argparse

from ..recorded.definitions import load, record
from . import write


def main() -> None:
    """Parse the command line and print the functions."""
    entries = {entry.name: entry for entry in load()}
    parser = argparse.ArgumentParser(prog="python -m bench.functions", description=__doc__)
    parser.add_argument("names", nargs="+", choices=entries, metavar="NAME")
    parser.add_argument("--device", default="cuda", help="device on which new tensors are created")
    options = parser.parse_args()
    for name in options.names:
        print(write(record(entries[name]).fusion.ir, options.device).text)


if __name__ == "__main__":
    main()
