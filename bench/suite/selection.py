"""Selection of the rows of the suite by cases, sizes and dtypes of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..cases import BY_NAME, CASES, SUITES, Case, Size, size_name

DTYPES = ("bfloat16", "float32")


@dataclass(frozen=True)
class Row:
    """One case at one size and dtype, as picklable data."""

    case: str
    size: Size
    dtype: str

    @property
    def of(self) -> Case:
        """The case."""
        return BY_NAME[self.case]

    @property
    def torch_dtype(self) -> torch.dtype:
        found: torch.dtype = getattr(torch, self.dtype)
        return found

    @property
    def name(self) -> str:
        """``softmax 8192x8192 bfloat16``."""
        return f"{self.case} {size_name(self.size)} {self.dtype}"


def size_of(text: str) -> Size:
    """Parse a size such as ``"8192x8192"``."""
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a size such as 8192x8192, got {text!r}"
        ) from None


def part_of(text: str) -> tuple[int, int]:
    """Parse a part such as ``"2/4"``, the second of four parts."""
    try:
        part, count = (int(piece) for piece in text.split("/"))
    except ValueError:
        part, count = 0, 0
    if not 1 <= part <= count:
        raise argparse.ArgumentTypeError(f"expected a part such as 2/4, got {text!r}")
    return part, count


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """Add the options that ``rows`` reads."""
    parser.add_argument("--suite", nargs="+", choices=SUITES, help="only these suites")
    parser.add_argument(
        "--cases", nargs="+", choices=BY_NAME, metavar="NAME", help="only these cases"
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=size_of,
        metavar="AxB",
        help="only these sizes; with --cases any sizes of matching rank",
    )
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, help="only these dtypes")
    parser.add_argument(
        "--part",
        type=part_of,
        default=(1, 1),
        metavar="K/N",
        help="every N-th row, starting at the K-th",
    )


def rows(options: argparse.Namespace) -> list[Row]:
    """The rows that the options select, case by case.

    Raises
    ------
    SystemExit
        No row is selected.
    """
    found = [
        Row(case.name, size, dtype)
        for case in CASES
        if _chosen(case, options)
        for dtype in options.dtype or DTYPES
        for size in _sizes(case, dtype, options)
    ]
    part, count = options.part
    found = found[part - 1 :: count]
    if not found:
        raise SystemExit(
            "python -m bench: no case is run at these sizes and dtypes; "
            "give a case by --cases to run it at any size of its rank"
        )
    return found


def selected(key: tuple[str, str, str], options: argparse.Namespace) -> bool:
    """Whether the options select a stored row by its case, size and dtype."""
    case, size, dtype = key
    sizes = [size_name(wanted) for wanted in options.sizes or ()]
    return (
        (case not in BY_NAME or _chosen(BY_NAME[case], options))
        and (not sizes or size in sizes)
        and (not options.dtype or dtype in options.dtype)
    )


def _chosen(case: Case, options: argparse.Namespace) -> bool:
    return (not options.suite or case.suite in options.suite) and (
        not options.cases or case.name in options.cases
    )


def _sizes(case: Case, dtype: str, options: argparse.Namespace) -> Sequence[Size]:
    """The sizes to run a case at: its own, or any of its rank if the case is named."""
    own = case.sizes.of(dtype)
    if not options.sizes:
        return own
    rank = len(case.sizes.bfloat16[0])
    return [size for size in options.sizes if size in own or (options.cases and len(size) == rank)]
