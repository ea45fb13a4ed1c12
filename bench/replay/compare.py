"""Comparison of the records of two trees."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .normal_form import Record, Renames, kernels, texts

Key = tuple[str, ...]
"""Part, name, arch, change of params."""

NONE = Renames()
CONTEXT = 3
"""Context lines of a diff."""


class ReplayError(Exception):
    """A tree could not be replayed."""


def load(path: Path, tree: Path, renames: Renames = NONE) -> dict[Key, Record]:
    """The records of a file, by key.

    Raises
    ------
    ReplayError
        The records were made with another tritonfuser than the tree's.
    """
    with path.open() as lines:
        package = json.loads(next(lines))["package"]
        if Path(package).resolve() != tree.resolve():
            raise ReplayError(f"{tree} was to be replayed, but tritonfuser came from {package}")
        records: list[Record] = [json.loads(line) for line in lines]
    return {_key(record["key"], renames): record for record in records}


def _key(key: list[str], renames: Renames) -> Key:
    """A key with renamed device functions and fields of params."""
    part, name, arch, change = key
    return part, renames(name) if part == "library" else name, arch, renames(change)


@dataclass(frozen=True)
class Difference:
    """A run that differs: the number of its kernels that differ, and a unified diff."""

    key: Key
    kernels: int
    diff: str

    @property
    def title(self) -> str:
        return ", ".join(part for part in self.key if part)


@dataclass
class Count:
    """Counts of the runs or the kernels of a part, by result of the comparison."""

    entries: int = 0
    runs: int = 0
    kernels: int = 0
    same: int = 0
    differing: int = 0
    kernels_differing: int = 0
    base_only: int = 0
    new_only: int = 0
    skipped: int = 0
    errors: int = 0


@dataclass(frozen=True)
class Comparison:
    """The result: counts by part, and the runs that differ."""

    counts: Mapping[str, Count]
    differences: tuple[Difference, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not any(c.differing or c.base_only or c.new_only for c in self.counts.values())

    def rows(self) -> list[dict[str, str]]:
        """The table."""
        total = Count()
        for count in self.counts.values():
            for name, value in vars(count).items():
                setattr(total, name, getattr(total, name) + value)
        parts = {**self.counts, "all": total}
        return [_row(part, count) for part, count in parts.items()]

    def plain(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "same": self.is_same,
            "parts": {part: vars(count) for part, count in self.counts.items()},
            "differences": [vars(found) for found in self.differences],
        }


def _row(part: str, count: Count) -> dict[str, str]:
    cells = {name.replace("_", " "): str(value) for name, value in vars(count).items()}
    return {"part": part, **cells}


def compare(base: Mapping[Key, Record], new: Mapping[Key, Record], renames: Renames) -> Comparison:
    """Compare all runs of both trees."""
    counts: dict[str, Count] = {}
    differences: list[Difference] = []
    for part, keys in _by_part((*new, *base)).items():
        counts[part] = count = Count(entries=len({key[1] for key in keys}), runs=len(keys))
        for key in keys:
            found = _compared(key, base.get(key), new.get(key), renames, count)
            if found is not None:
                differences.append(found)
    return Comparison(counts, tuple(differences))


def _by_part(keys: Iterable[Key]) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = {}
    for key in dict.fromkeys(keys):
        found.setdefault(key[0], []).append(key)
    return found


def _compared(
    key: Key, before: Record | None, after: Record | None, renames: Renames, count: Count
) -> Difference | None:
    """Compare a run and count it."""
    count.kernels += len((after or before or {})["kernels"])
    count.errors += "error" in (after or before or {})["texts"]
    if before is None or after is None:
        count.new_only += before is None
        count.base_only += after is None
        return Difference(key, 0, "it is in the base alone" if before else "it is new")
    if before["skipped"] or after["skipped"]:
        count.skipped += 1
        return None
    found = _difference(key, before, after, renames)
    count.same += found is None
    count.differing += found is not None
    count.kernels_differing += 0 if found is None else found.kernels
    return found


def _difference(key: Key, before: Record, after: Record, renames: Renames) -> Difference | None:
    if before["kernels"] == after["kernels"] and before["texts"] == after["texts"]:
        return None
    old, new = kernels(before, renames), kernels(after, NONE)
    count = sum(a != b for a, b in zip_longest(old, new))
    old, new = [*old, *texts(before, renames)], [*new, *texts(after, NONE)]
    if old == new:
        return None
    before_lines, after_lines = ("\n".join(side).splitlines() for side in (old, new))
    diff = difflib.unified_diff(before_lines, after_lines, "base", "new", n=CONTEXT, lineterm="")
    return Difference(key, count, "\n".join(diff))
