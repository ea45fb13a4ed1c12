"""Files that are written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save_json(path: Path, content: Any) -> None:
    """Write a file anew: whoever reads it, or ends this process, finds all of it or the old one."""
    write_whole(path, json.dumps(content, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Put a text in the place of a file in one step."""
    if path.exists() and not path.is_file():
        path.write_text(text)  # a terminal, say
        return
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
