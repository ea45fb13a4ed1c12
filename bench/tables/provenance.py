"""Provenance of results: commit, date, device, versions."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
import triton


def described(commit: str | None = None) -> dict[str, Any]:
    """Describe a run on this machine for stored results.

    Parameters
    ----------
    commit : str, optional
        Commit stored with the results; by default that of the working tree.
    """
    return {
        "commit": commit or commit_here(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "command": " ".join(["python", *sys.orig_argv[1:]]),
    }


def commit_here() -> str:
    """The commit of the working tree, with a plus if files are modified; or "unknown"."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
