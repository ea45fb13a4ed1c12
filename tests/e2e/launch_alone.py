"""``python launch_alone.py FOLDER``: launch the kernels in a folder, and compare with their runs.

Beside ``kernel0.py`` are ``kernel0.before`` and ``kernel0.after``, what its run was given and what
that was afterwards. Nothing of tritonfuser is imported here, but by the kernels' texts.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


def main(folder: str) -> int:
    """Name the kernels that fail; the exit status is 1 where some do."""
    failed = 0
    texts = sorted(Path(folder).glob("kernel*.py"))
    for path in texts:
        try:
            difference = launched(path)
        except Exception as error:
            difference = f"{type(error).__name__}: {error}"
        if difference:
            failed += 1
            sys.stdout.write(f"{path.name}: {difference}\n{path.read_text()}\n")
    sys.stdout.write(f"{len(texts)} kernels\n")
    return 1 if failed else 0


def launched(path: Path) -> str:
    """Launch a kernel; what differs, or nothing."""
    module = loaded(path)
    given: dict[str, Any] = torch.load(path.with_suffix(".before"))
    wanted: dict[str, Any] = torch.load(path.with_suffix(".after"))
    module.launch(**{name: given[name] for name in inspect.signature(module.launch).parameters})
    exact = "tritonfuser" in path.read_text()
    wrong = [
        f"{name}\n{given[name]}\nwanted\n{wanted[name]}"
        for name in given
        if isinstance(given[name], torch.Tensor) and not same(given[name], wanted[name], exact)
    ]
    return "\n".join(wrong)


def loaded(path: Path) -> ModuleType:
    """The file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same(one: torch.Tensor, other: torch.Tensor, exact: bool) -> bool:
    """Whether two tensors have the same numbers; bit by bit, where the run was ours here too.

    Triton's own interpreter adds in another order.
    """
    if one.dtype.itemsize == 1:
        return torch.equal(one.view(torch.uint8), other.view(torch.uint8))
    near = 0.0 if exact else {torch.half: 1e-2, torch.float32: 1e-5}.get(one.dtype, 1e-9)
    return torch.allclose(one, other, rtol=near, atol=near, equal_nan=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
