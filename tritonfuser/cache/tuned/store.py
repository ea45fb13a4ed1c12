"""The store: a JSON file for each key, replaced as a whole; what cannot be read is not there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_dir

from ... import options
from ...errors import TritonFuserError
from ...heuristics.schedule import Schedule
from .keys import StoreKey

VERSION = 1
"""Of the files."""

LOCK_SECONDS = 10.0
"""Most seconds to wait for another process that writes."""


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
    """

    schedule: Schedule
    seconds: float
    heuristic_seconds: float
    device: str

    def __str__(self) -> str:
        return (
            f"tuned on {self.device}: {self.seconds * 1e6:.1f} us, and the heuristics' schedule "
            f"{self.heuristic_seconds * 1e6:.1f} us"
        )


def folder() -> Path:
    """Where schedules are; it need not exist."""
    given = options.current().cache_dir
    return Path(given or user_cache_dir("tritonfuser", appauthor=False), "schedules")


def is_empty() -> bool:
    """Whether nothing was ever stored; then no key is worth making."""
    return not folder().is_dir()


def path_of(key: StoreKey) -> Path:
    """The file of a key."""
    return folder() / f"{key.name}.json"


def load(key: StoreKey) -> Stored | None:
    """What is stored for a key. None where nothing is, or nothing that can be read."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError, TritonFuserError):
        return _read(json.loads(path_of(key).read_text()), key)
    return None


def _read(data: Mapping[str, Any], key: StoreKey) -> Stored | None:
    if data["version"] != VERSION or data["key"] != key._asdict():
        return None
    seconds, before = data["seconds"], data["heuristic_seconds"]
    if not all(type(number) is float and number > 0 for number in (seconds, before)):
        return None
    return Stored(Schedule.from_dict(data["schedule"]), seconds, before, key.device)


def save(key: StoreKey, found: Stored) -> Path:
    """Store a schedule in the place of what is there for the key.

    Raises
    ------
    OSError
        It cannot be written, or another process holds the lock.
    """
    data = {
        "version": VERSION,
        "key": key._asdict(),
        "seconds": found.seconds,
        "heuristic_seconds": found.heuristic_seconds,
        "schedule": found.schedule.to_dict(),
    }
    path = path_of(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock(path):
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f"{key.name}.", suffix=".new")
        try:
            with os.fdopen(handle, "w") as out:
                json.dump(data, out, indent=1)
            os.replace(made, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(made)
            raise
    return path


def remove(key: StoreKey) -> None:
    """Forget what is stored for a key.

    Raises
    ------
    OSError
        It cannot be removed, or another process holds the lock.
    """
    path = path_of(key)
    if path.exists():
        with _lock(path):
            path.unlink(missing_ok=True)


def _lock(path: Path) -> FileLock:
    return FileLock(path.with_suffix(".lock"), timeout=LOCK_SECONDS)
