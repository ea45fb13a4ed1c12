"""Kernels that a function launches, interpreted: for a process with ``TRITON_INTERPRET=1``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tritonfuser.lowering.interpreter.interpret import StandIn, ready

ROOT = Path(__file__).parents[3]


class Interpreted:
    """Stands for a jitted kernel."""

    def __init__(self, kernel: Any) -> None:
        self.function = StandIn(kernel.fn)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def call(*args: Any, **options: Any) -> None:
            with ready(self.function):
                self.function[grid](*args, **options)

        return call


def interpret(module: ModuleType, *names: str) -> None:
    """Let a module launch its kernels of these names here."""
    for name in names:
        setattr(module, name, Interpreted(getattr(module, name)))


def run(program: str) -> None:
    """Run a program in which Triton interprets."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, cwd=ROOT)
