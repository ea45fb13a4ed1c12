"""``python -m bench``: time the cases on a GPU, or compile them for one that is not here."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

from .cases import BY_NAME, SHAPES, Shape
from .report import table
from .run import compile_all, measure_all, print_measurements


def _shape(text: str) -> Shape:
    rows, columns = text.split("x")
    return int(rows), int(columns)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=BY_NAME, default=list(BY_NAME))
    parser.add_argument("--shapes", nargs="+", type=_shape, default=SHAPES, metavar="ROWSxCOLUMNS")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument(
        "--compile-for", metavar="ARCH", help="compile only, for sm_90 say; implied without CUDA"
    )
    parser.add_argument("--max-autotune", action="store_true", help="time that too: slow")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    return parser.parse_args()


def main() -> None:
    """Parse the command line and print the table."""
    options = _parse()
    cases = [BY_NAME[name] for name in options.cases]
    dtype = getattr(torch, options.dtype)
    arch = options.compile_for or (None if torch.cuda.is_available() else "sm_90")
    if arch is not None:
        rows = list(compile_all(cases, options.shapes, dtype, arch))
        print(f"compiled for {arch}, not run")
        print(table(rows))
    else:
        measured = measure_all(cases, options.shapes, dtype, autotune=options.max_autotune)
        print_measurements(measured)
        rows = [asdict(m) for m in measured]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
