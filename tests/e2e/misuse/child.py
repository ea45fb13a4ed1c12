"""Seeds in a process of their own, so that a crash or a hang of one is seen and named.

``python -m tests.e2e.misuse.child FIRST COUNT`` prints a line of JSON before and after each seed.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.misuse.seeds import misuse

SECONDS = 120.0
"""Without a line from the child for so long, its seed hangs."""


@dataclass(frozen=True)
class Outcome:
    """What came of one seed; ``fault`` is empty where all is well."""

    seed: int
    word: str
    fault: str = ""


def outcomes(first: int, count: int, script: Sequence[str] = ()) -> list[Outcome]:
    """Those of some seeds; behind one that crashes or hangs another child goes on.

    Parameters
    ----------
    script : sequence of str
        A program to run in place of this module, for tests.
    """
    found: list[Outcome] = []
    while len(found) < count:
        done = _some(first + len(found), count - len(found), script)
        found += done
    return found


def _some(first: int, count: int, script: Sequence[str]) -> list[Outcome]:
    command = [sys.executable, *(script or ("-m", "tests.e2e.misuse.child"))]
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        [*command, str(first), str(count)], stdout=pipe, stderr=subprocess.DEVNULL, text=True
    )
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(child, lines), daemon=True).start()
    found: list[Outcome] = []
    fault = ""
    try:
        while len(found) < count:
            line = lines.get(timeout=SECONDS)
            if line is None:
                fault = f"the process ended with code {child.wait()}"
                break
            seed, word, said = json.loads(line)
            found.append(Outcome(seed, word, said))
    except queue.Empty:
        fault = f"no end after {SECONDS:.0f} seconds"
    child.kill()
    child.wait()
    if fault:
        found.append(Outcome(first + len(found), "died", fault))
    return found


def _read(child: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put(None)


def main(first: int, count: int) -> None:
    """Write a line for each seed."""

    for seed in range(first, first + count):
        try:
            word, fault = misuse(seed), ""
        except Exception as error:
            word, fault = "wrong", f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps([seed, word, fault]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
