"""Which recorded definitions run: by options of the command line."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

from ..suite.selection import part_of
from .corpus import corpus
from .definitions import RecordedDefinition, load
from .shrink import shrink

_HELD_OUT = {"with": (True, False), "without": (False,), "only": (True,)}


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """The options that choose definitions."""
    parser.add_argument(
        "--models", "--family", nargs="+", metavar="MODEL", help="only definitions of these models"
    )
    parser.add_argument("--names", nargs="+", help="only these definitions, such as nanogpt-3")
    parser.add_argument("--sizes", nargs="+", help="only these sizes, such as filling")
    parser.add_argument(
        "--held-out",
        choices=tuple(_HELD_OUT),
        default="with",
        help="held-out families (default %(default)s the others); no line of theirs is shown",
    )
    parser.add_argument(
        "--part",
        type=part_of,
        default=(1, 1),
        metavar="I/N",
        help="part I of N that take about as long; the definitions of a step stay together",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="a random part of N definitions")
    parser.add_argument("--seed", type=int, default=0, help="of --sample (default %(default)s)")


def chosen(options: argparse.Namespace) -> list[RecordedDefinition]:
    """The definitions that the options select, reduced where they ask for it.

    Raises
    ------
    SystemExit
        There is none.
    """
    known = (*load(), *corpus())
    found = [
        entry
        for entry in known
        if (not options.models or entry.model in options.models)
        and (not options.names or entry.name in options.names)
        and (not options.sizes or entry.size in options.sizes)
        and entry.held_out in _HELD_OUT[options.held_out]
    ]
    if not found:
        raise SystemExit(
            f"python -m bench.definitions_run: expected models, names or sizes of recorded "
            f"definitions, got {options.models or options.names or options.sizes}: take some of "
            f"{', '.join(dict.fromkeys(e.model for e in known))}, nanogpt-0 and so on"
        )
    part, count = options.part
    found = _parts(found, count)[part - 1]
    if options.sample is not None and options.sample < len(found):
        found = random.Random(options.seed).sample(found, options.sample)
    return [shrink(entry) if options.reduced else entry for entry in found]


def _parts(entries: Sequence[RecordedDefinition], count: int) -> list[list[RecordedDefinition]]:
    """Steps dealt to the part that has the fewest lines of programs, the longest step first."""
    steps: dict[tuple[str, str], list[RecordedDefinition]] = {}
    for entry in entries:
        steps.setdefault((entry.model, entry.size), []).append(entry)
    lengths = [0] * count
    dealt: dict[tuple[str, str], int] = {}
    for name in sorted(steps, key=lambda name: (-_length(steps[name]), name)):
        dealt[name] = lengths.index(min(lengths))
        lengths[dealt[name]] += _length(steps[name])
    return [
        [entry for entry in entries if dealt[entry.model, entry.size] == part]
        for part in range(count)
    ]


def _length(entries: Sequence[RecordedDefinition]) -> int:
    return sum(entry.text.count("\n") for entry in entries)
