"""Run one collector per tree, both at the same time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.processes.child_process import ending, ending_tidily
from bench.processes.progress import Progress

from .compare import Comparison, ReplayError, compare, load
from .entry import Entry
from .normal_form import Renames

ROOT = Path(__file__).parents[2]
"""The tree that this file is in."""

COLLECTOR = Path(__file__).parent / "collector.py"
OURS = ("TRITONFUSER_", "PYTORCH_NVFUSER_", "NVF_", "PYTHONPATH")
"""Prefixes of environment variables that change the result; they are removed."""
EVERY = 0.2
"""Polling interval of the collectors, in seconds."""


def replay(base: Path, new: Path, corpus: Sequence[Entry], renames: Renames) -> Comparison:
    """Lower the corpus with the packages of two trees, and compare.

    Parameters
    ----------
    base, new : Path
        Folders that have ``tritonfuser`` in them.

    Raises
    ------
    ReplayError
        A collector failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        (room / "corpus.json").write_text(json.dumps([asdict(entry) for entry in corpus]))
        # A folder without other modules, since a script's folder comes first in sys.path.
        (room / "script").mkdir()
        script = str(shutil.copy(COLLECTOR, room / "script"))
        with ending_tidily(), ExitStack() as stack:
            # Different hash seeds reveal results that depend on the order of a set.
            children = [
                stack.enter_context(_started(tree, room, script, seed))
                for seed, tree in enumerate((base, new), start=1)
            ]
            _watch(children, len(corpus))
        before, after = (child.records for child in children)
        return compare(load(before, base, renames), load(after, new), renames)


@dataclass(frozen=True)
class _Child:
    """A running collector."""

    process: subprocess.Popen[bytes]
    tree: Path
    records: Path
    done: Path
    """File with one byte per finished entry."""
    errors: Path

    def failed(self) -> str:
        """The last line of stderr if the collector failed; empty otherwise."""
        if not self.process.poll():
            return ""
        words = self.errors.read_text().strip() or f"ended with code {self.process.returncode}"
        return words.splitlines()[-1]


@contextmanager
def _started(tree: Path, room: Path, script: str, seed: int) -> Iterator[_Child]:
    records, done, errors = (room / f"{seed}.{kind}" for kind in ("jsonl", "done", "errors"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment = {**kept, **threads, "PYTHONPATH": str(tree), "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, script, str(room / "corpus.json"), str(records)]
    with done.open("w") as out, errors.open("w") as told:
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=told, start_new_session=True
        )
    with ending(process):
        yield _Child(process, tree, records, done, errors)


def _watch(children: Sequence[_Child], count: int) -> None:
    """Wait for all collectors; raise when one fails."""
    progress = Progress(len(children) * count, "entry")
    while any(child.process.poll() is None for child in children):
        progress.show(sum(child.done.stat().st_size for child in children), "")
        time.sleep(EVERY)
        for child in children:
            if child.failed():
                raise ReplayError(f"{child.tree}: {child.failed()}")
    for child in children:
        if child.failed():
            raise ReplayError(f"{child.tree}: {child.failed()}")


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Context with a revision checked out in a temporary worktree.

    Raises
    ------
    ReplayError
        Git does not know it.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        _git("worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> None:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ReplayError(f"git {' '.join(words)}: {done.stderr.strip()}")
