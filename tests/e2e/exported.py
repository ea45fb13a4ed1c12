"""Kernels as files of their text, launched in another process on what a run gave them here.

The other process knows nothing of tritonfuser but what the texts import.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.checking import CPU, copied
from tritonfuser.cache.plan import launches
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.device import DeviceProperties
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.lowering.lowered import Lowered

LAUNCHER = Path(__file__).with_name("launch_alone.py")


@dataclass
class Exports:
    """Kernels that ran, with what they were given and what they made of it.

    Attributes
    ----------
    folder : Path
        Where their texts and tensors are.
    count : int
        How many there are.
    """

    folder: Path
    count: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)

    def run(
        self, lowered: Lowered, inputs: Sequence[Any], device: DeviceProperties
    ) -> list[torch.Tensor]:
        """Run the kernels of a definition here, and export them."""
        given = copied(inputs)
        with self._watched(lowered):
            plan = make_plan(lowered, given, CPU, device)
        return list(plan.run(given))

    @contextmanager
    def _watched(self, lowered: Lowered) -> Iterator[None]:
        """Interpreted kernels are exported when they run."""
        atoms = [] if lowered.env is None else lowered.env.atoms
        self._sizes = {atom.name: atom.hint for atom in atoms}
        plain = launches.interpreted
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launches, "interpreted", lambda s: self._exported(s, plain(s)))
            yield

    def _exported(self, source: KernelSource, function: Callable[..., None]) -> Any:
        """The kernel as a function that leaves text and tensors behind."""
        sizes = dict(self._sizes)

        def run(*args: Any, **grid: Any) -> None:
            names = [arg.name.removesuffix("_ptr") for arg in (*source.args, *source.sizes)]
            given = sizes | dict(zip(names, args, strict=False))
            name = f"kernel{self.count}"
            self.count += 1
            (self.folder / f"{name}.py").write_text(source.text)
            torch.save(given, self.folder / f"{name}.before")
            function(*args, **grid)
            torch.save(given, self.folder / f"{name}.after")

        return run

    def launch(self) -> None:
        """Launch each by its text, interpreted, and compare.

        Raises
        ------
        AssertionError
            A launch failed, or gave other bits.
        """
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        command = [sys.executable, str(LAUNCHER), str(self.folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
        assert done.stdout.splitlines()[-1] == f"{self.count} kernels"
