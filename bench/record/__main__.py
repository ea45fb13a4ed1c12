"""``python -m bench.record``: record the steps of families of models through Lightning Thunder.

The definitions that Thunder hands over, forward and backward, go into the corpus that
``python -m bench.definitions_run`` runs. Needs ``lightning-thunder`` and neither a GPU nor the
memory of the models: tensors are fake ones.
"""

from __future__ import annotations

import argparse
import sys
import time

from ..families.index import FAMILIES
from ..recorded.corpus import save
from .recorder import pairs


def main() -> None:
    """Parse the command line and record; a failure of one family does not end the others."""
    parser = argparse.ArgumentParser(prog="python -m bench.record", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="families (default: all)")
    parser.add_argument("--list", action="store_true", help="print the families and exit")
    options = parser.parse_args()
    if options.list:
        print("\n".join(FAMILIES))
        return
    unknown = [name for name in options.models if name not in FAMILIES]
    if unknown:
        parser.error(f"expected some of {', '.join(FAMILIES)}, got {', '.join(unknown)}")
    failed = [name for name in options.models or FAMILIES if not _recorded(name)]
    if failed:
        sys.exit(f"not recorded: {', '.join(failed)}")


def _recorded(name: str) -> bool:
    family, begun = FAMILIES[name], time.monotonic()
    try:
        found = {
            size: pairs(family.build, table, family.reduced[size])
            for size, table in family.sizes.items()
        }
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    path = save(name, found)
    counts = ", ".join(f"{size} {len(items)}" for size, items in found.items())
    seconds = time.monotonic() - begun
    print(f"{name}: {counts} definitions, {path.stat().st_size} bytes, {seconds:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    main()
