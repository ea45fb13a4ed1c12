"""``python -m bench``: time the suite on a GPU, or compile it for one that is not here."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from .options import limits_of, parse
from .processes.workers import forget
from .suite.compile_only import compile_rows, shown, static_changes
from .suite.selection import Row, rows, selected
from .suite.suite_run import run_suite
from .suite.tuning import with_tuned
from .tables.comparison import changes, comparison, worse
from .tables.files import save_json
from .tables.formatting import table
from .tables.plot import check_plot, save_plot
from .tables.records import Results, load, save_csv
from .tables.suite_tables import provenance, suite_tables
from .tables.summary import summary
from .tables.tuned_table import tuned_tables


def main() -> int:
    """Run the selected rows, print and write the results; exit status 1 where a ratio got worse."""
    options = parse()
    if options.plot:
        check_plot()
    if options.render:
        return _show(_rendered(options), options)
    chosen = rows(options)
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    arch = options.compile_for or (None if torch.cuda.is_available() else "sm_90")
    if arch is not None and options.tuned is not None:
        raise SystemExit("python -m bench: --tuned times schedules, which needs a CUDA device")
    if arch is not None:
        return _compile(chosen, arch, options)
    keep = partial(Results.save, path=options.json) if options.json else forget
    begun = time.monotonic()
    results = run_suite(
        chosen,
        options.vs,
        options.jobs,
        limits_of(options),
        options.commit,
        check=not options.unchecked,
        keep=keep,
    )
    if options.tuned is not None:
        left = limits_of(options).total - (time.monotonic() - begun)
        results = with_tuned(results, chosen, options.tuned, left, keep=keep)
    return _show(results, options)


def _rendered(options: argparse.Namespace) -> Results:
    """Load stored results and keep the rows that the options select."""
    found = load(options.render)
    kept = tuple(record for record in found.records if selected(record.key, options))
    return Results(found.runs, kept)


def _show(results: Results, options: argparse.Namespace) -> int:
    """Write all requested files, then print the tables."""
    if options.json:
        results.save(options.json)
    if options.csv:
        save_csv(results.records, options.csv)
    if options.markdown:
        options.markdown.write_text(_page(results))
    if options.plot:
        save_plot(results.records, options.plot)
    tuned = tuned_tables(results.records)
    shown = [suite_tables(results.records), tuned, summary(results.records)]
    print("\n\n".join(part for part in shown if part))
    print(f"\n{provenance(results)}")
    return _compare(results, options) if options.against else 0


def _page(results: Results) -> str:
    parts = ["# Results of the benchmark suite", provenance(results, "github")]
    records = results.records
    parts += [summary(records, "github"), tuned_tables(records, "github")]
    parts += [suite_tables(records, "github")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _compare(results: Results, options: argparse.Namespace) -> int:
    tolerated = options.tolerated / 100
    found = list(changes(load([options.against]).records, results.records))
    print(f"\nagainst {options.against}\n\n{comparison(found, tolerated)}")
    return 1 if worse(found, tolerated) else 0


def _compile(chosen: Sequence[Row], arch: str, options: argparse.Namespace) -> int:
    """Compile the rows for ``arch`` without a GPU and print the kernel statistics."""
    lines = compile_rows(chosen, arch, options.jobs)
    if options.json:
        save_json(options.json, {"arch": arch, "kernels": lines})
    print(f"compiled for {arch}, not run\n\n{table(shown(lines))}")
    if options.against:
        changed = static_changes(_kernels(options.against), lines)
        print(f"\nagainst {options.against}\n\n{table(changed) if changed else 'nothing changed'}")
    return 1 if any(line["kernel"].startswith("failed") for line in lines) else 0


def _kernels(path: Path) -> list[dict[str, object]]:
    content = json.loads(path.read_text())
    if "kernels" not in content:
        raise SystemExit(
            f"python -m bench: expected kernels compiled without a GPU in {path}, got times; "
            "compare on a machine with one"
        )
    found: list[dict[str, object]] = content["kernels"]
    return found


if __name__ == "__main__":
    raise SystemExit(main())
