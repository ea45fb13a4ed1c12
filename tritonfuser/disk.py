"""The cache directory of the user, and atomic replacement of files in it.

Nothing is locked: a file takes the place of another in one step, so readers and writers need not
wait for one another, and what is killed or stopped holds nobody up.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from . import options

DEAD_SECONDS = 3600.0
"""How much older a file in the making is than a new one, if its writer was killed."""

_ENDING = ".new"
_ATTEMPTS = 5
"""At a folder that somebody removes meanwhile."""


def cache_folder() -> Path:
    """Where what is found on a machine is kept; it need not exist."""
    given = options.current().cache_dir
    return Path(given or user_cache_dir("tritonfuser", appauthor=False))


def files(folder: Path, ending: str) -> list[Path]:
    """The files of a folder whose names end so, by name; none where it cannot be looked into."""
    with suppress(OSError):
        return sorted(Path(entry) for entry in os.scandir(folder) if entry.name.endswith(ending))
    return []


def replace_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON in the place of a file of a cache, whose folder is made if need be.

    Raises
    ------
    OSError
        It cannot be written.
    """
    text = json.dumps(data, indent=1)
    for left in reversed(range(_ATTEMPTS)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            replace_text(path, text)
            break
        except FileNotFoundError:
            if not left:
                raise
    _remove_dead(path)


def replace_text(path: Path, text: str) -> None:
    """Write text in the place of a file: a reader sees the old or the new one, never a part.

    What is there and no file, such as ``/dev/stdout``, is written to.

    Raises
    ------
    OSError
        It cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)
        else:
            _replace(Path(os.path.realpath(path)), text)  # a link stays one
    except OSError as error:
        error.filename = str(path)
        del error.filename2  # None is shown as a name
        raise


def _replace(path: Path, text: str) -> None:
    made = path.with_name(f"{path.stem}.{os.getpid()}-{secrets.token_hex(4)}{_ENDING}")
    try:
        # Not as `tempfile` does it, which lets nobody else read the file.
        with made.open("x") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(made, path)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise


def _remove_dead(path: Path) -> None:
    """Remove what writers left that were killed, by the clock that dates the files."""
    with suppress(OSError):
        now = path.stat().st_mtime
        for left in files(path.parent, _ENDING):
            if now - left.stat().st_mtime > DEAD_SECONDS:
                left.unlink(missing_ok=True)
