"""Which names are held out: a third of them, for judging alone."""

from __future__ import annotations

import hashlib


def is_held_out(name: str) -> bool:
    """Whether a name is held out: nothing is fitted to it."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0
