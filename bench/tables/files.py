"""Atomic writes of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save_json(path: Path, content: Any) -> None:
    """Write JSON atomically: a reader or a killed process sees the old or the new file."""
    write_whole(path, json.dumps(content, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Replace a file's text atomically."""
    if path.exists() and not path.is_file():
        path.write_text(text)  # such as /dev/stdout
        return
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
