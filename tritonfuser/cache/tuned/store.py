"""The store: a JSON file for each key, replaced as a whole; what cannot be read is not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import disk
from ...errors import TritonFuserError
from ...heuristics.schedule import Schedule
from .keys import StoreKey

VERSION = 2
"""Of the files."""


@dataclass(frozen=True)
class Stored:
    """A schedule that a tuner found.

    Attributes
    ----------
    schedule : Schedule
        The schedule.
    seconds : float
        Its time when it was tuned.
    heuristic_seconds : float
        The time of the heuristics' schedule beside it.
    device : str
        The GPU.
    problem : dict
        What it is a schedule of, as plain data: ``definition``, and ``inputs``, the signature.
    """

    schedule: Schedule
    seconds: float
    heuristic_seconds: float
    device: str
    problem: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"tuned on {self.device}: {self.seconds * 1e6:.1f} us, and the heuristics' schedule "
            f"{self.heuristic_seconds * 1e6:.1f} us"
        )


@dataclass(frozen=True)
class Entry:
    """One file of the store.

    Attributes
    ----------
    path : Path
        The file.
    key : StoreKey
        Its key.
    stored : Stored
        What it holds.
    """

    path: Path
    key: StoreKey
    stored: Stored

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem


def folder() -> Path:
    """Where schedules are; it need not exist."""
    return disk.cache_folder() / "schedules"


def is_empty() -> bool:
    """Whether nothing was ever stored; then no key is worth making."""
    return not os.path.isdir(folder())  # Path.is_dir raises where it may not look


def path_of(key: StoreKey) -> Path:
    """The file of a key."""
    return folder() / f"{key.name}.json"


def load(key: StoreKey) -> Stored | None:
    """What is stored for a key. None where nothing is, or nothing that can be read."""
    found = _entry(path_of(key))
    return found.stored if found is not None and found.key == key else None


def entries() -> Iterator[Entry | Path]:
    """All files of the store, by name; the path alone of one that cannot be read."""
    for path in disk.files(folder(), ".json"):
        yield _entry(path) or path


def _entry(path: Path) -> Entry | None:
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError, TritonFuserError):
        return _read(json.loads(path.read_text()), path)
    return None


def _read(data: Mapping[str, Any], path: Path) -> Entry | None:
    key = StoreKey(**data["key"])
    if data["version"] != VERSION or not all(type(part) is str for part in key):
        return None
    seconds, before, problem = data["seconds"], data["heuristic_seconds"], data["problem"]
    if not all(type(number) is float and number > 0 for number in (seconds, before)):
        return None
    if path.stem != key.name or type(problem) is not dict:
        return None
    schedule = Schedule.from_dict(data["schedule"])
    return Entry(path, key, Stored(schedule, seconds, before, key.device, problem))


def save(key: StoreKey, found: Stored) -> Path:
    """Store a schedule for a key; replaces the one that is stored for it.

    Raises
    ------
    OSError
        It cannot be written.
    """
    data = {
        "version": VERSION,
        "key": key._asdict(),
        "seconds": found.seconds,
        "heuristic_seconds": found.heuristic_seconds,
        "problem": dict(found.problem),
        "schedule": found.schedule.to_dict(),
    }
    path = path_of(key)
    disk.replace_json(path, data)
    return path


def remove(key: StoreKey) -> None:
    """Forget what is stored for a key.

    Raises
    ------
    OSError
        It cannot be removed.
    """
    path_of(key).unlink(missing_ok=True)
