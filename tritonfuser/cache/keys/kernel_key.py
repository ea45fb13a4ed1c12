"""The key of a compiled kernel: everything that changes its code or how it is launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ... import options
from ...lowering.kernel_source import KernelSource

NOT_IN_KEY = {
    "grid": "an argument of each launch",
    "lines": "for messages alone",
    "index_ops": "for messages alone",
    "in_place": "says which buffers a plan may give it",
}
"""Fields of ``KernelSource`` that are not in the key, and why. Every other one is."""

_AS: dict[str, Callable[[KernelSource], object]] = {
    # Of a value that is passed only these decide: its sizes are in the text.
    "args": lambda source: tuple((arg.name, arg.dtype, arg.is_tensor) for arg in source.args),
    # That the programs of a cooperative kernel fit is checked when it is loaded.
    "workspace": lambda source: source.workspace and (source.workspace, source.grid),
    # How many counters there are is in the text, where that changes the code.
    "arrivals": lambda source: source.arrivals is not None,
}
"""What of a field is in the key, where that is not the field itself."""

_NAMES = tuple(row.name for row in fields(KernelSource) if row.name not in NOT_IN_KEY)


def kernel_key(source: KernelSource) -> tuple[Any, ...]:
    """The key of a kernel, without the target and the alignment of its arguments."""
    parts = (_AS[name](source) if name in _AS else getattr(source, name) for name in _NAMES)
    return (*parts, options.codegen_options())
