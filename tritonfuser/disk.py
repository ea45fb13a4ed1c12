"""The user's directory for caches, and files in it that are replaced as a whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from . import options


def cache_folder() -> Path:
    """Where what is found on a machine is kept; it need not exist."""
    given = options.current().cache_dir
    return Path(given or user_cache_dir("tritonfuser", appauthor=False))


def replace_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON in the place of a file: a reader sees the old or the new one, never a part.

    Raises
    ------
    OSError
        It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}.", suffix=".new")
    try:
        with os.fdopen(handle, "w") as out:
            json.dump(data, out, indent=1)
        os.replace(made, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise
