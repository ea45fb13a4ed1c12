"""``python -m bench.record``: record the steps of families of models through Lightning Thunder.

The definitions that Thunder hands over, forward and backward, go into the corpus that
``python -m bench.definitions_run`` runs. Needs ``lightning-thunder`` and neither a GPU nor the
memory of the models: tensors are fake ones.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from ..families.family import Family
from ..families.index import FAMILIES
from ..recorded.corpus import save
from .recorder import pairs


def main() -> None:
    """Parse the command line and record; a failure of one family does not end the others."""
    parser = argparse.ArgumentParser(prog="python -m bench.record", description=__doc__)
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="families, or Family objects as package.module:NAME (default: all families)",
    )
    parser.add_argument("--list", action="store_true", help="print the families and exit")
    options = parser.parse_args()
    if options.list:
        print("\n".join(FAMILIES))
        return
    try:
        families = [_family(name) for name in options.models or FAMILIES]
    except ValueError as error:
        parser.error(str(error))
    failed = [family.name for family in families if not _recorded(family)]
    if failed:
        sys.exit(f"not recorded: {', '.join(failed)}")


def _family(name: str) -> Family:
    if ":" not in name:
        if name not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise ValueError(f"expected some of {known}, or package.module:NAME, got {name}")
        return FAMILIES[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name}: expected a Family of a module, got {error}") from error
    if not isinstance(found, Family):
        raise ValueError(f"{name}: expected a Family, got {type(found).__name__}")
    return found


def _recorded(family: Family) -> bool:
    name, begun = family.name, time.monotonic()
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
