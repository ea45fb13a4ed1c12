"""JSON files that are replaced as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tritonfuser.disk import replace_text


def save_json(path: Path, content: Any) -> None:
    """Write JSON atomically: a reader or a killed process sees the old or the new file."""
    replace_text(path, json.dumps(content, indent=1) + "\n")
