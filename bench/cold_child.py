"""A fresh process that has imported torch and triton, and runs one function for the first time.

Started by ``bench.cold``; prints a line of JSON. Nothing else of ours may be imported at the top:
importing it is part of what is timed.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton

Seconds = dict[str, float]


def main(peer: str, case: str, text: str) -> None:
    """Time the first run of a case by ``ours`` or ``torch``, whose function is in a file."""
    device = "cuda" if torch.cuda.is_available() else "meta"
    if device == "cuda":
        torch.ones(1, device=device).add_(1)
        torch.cuda.synchronize()
    started = time.perf_counter()
    parts = _ours(case, device) if peer == "ours" else _theirs(case, text)
    if device == "cuda":
        torch.cuda.synchronize()
    print(json.dumps({"total": time.perf_counter() - started, **parts}))


def _theirs(case: str, text: str) -> Seconds:
    scope: dict[str, Any] = {}
    exec(compile(Path(text).read_text(), case, "exec"), scope)
    shapes = json.loads(Path(text).with_suffix(".json").read_text())
    inputs = [torch.ones(shape, dtype=torch.bfloat16, device="cuda") for shape in shapes]
    torch.compile(scope["f"], dynamic=False)(*inputs)
    return {}


def _ours(case: str, device: str) -> Seconds:
    parts: Seconds = {}
    clock = _Clock(parts)
    cases = importlib.import_module("bench.cold_cases")
    kernels = importlib.import_module("tritonfuser.cache.kernels")
    pipeline = importlib.import_module("tritonfuser.lowering.pipeline")
    clock.lap("import")
    found = cases.CASES[case]
    fd, inputs = found.record(), found.inputs(device)
    clock.lap("record")
    triton.knobs.compilation.listener = _listener(parts)
    names = ("concretize", "simplify", "segment", "emit_segment")
    patches = [
        mock.patch.object(pipeline, name, clock.around("passes", getattr(pipeline, name)))
        for name in names
    ]
    together = clock.around("kernels", kernels.compile_together)
    patches.append(mock.patch.object(kernels, "compile_together", together))
    for patch in patches:
        patch.start()
    if device == "cuda":
        fd.run(inputs)
    else:
        lowered, _ = fd._core().lowered(inputs, arch="sm_90")
        sources = [source for source in lowered.sources if source is not None]
        wanted = [(source, tuple(a.is_tensor for a in source.args)) for source in sources]
        kernels.compile_together(wanted, "sm_90")
    return parts


class _Clock:
    def __init__(self, parts: Seconds) -> None:
        self.parts = parts
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.parts[name], self.last = now - self.last, now

    def around(self, name: str, function: Any) -> Any:
        """``function`` with its time added to a part."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - started
                self.parts[name] = self.parts.get(name, 0.0) + took

        return timed


def _listener(parts: Seconds) -> Any:
    """Triton's own times, added up over kernels, which may be compiled at the same time."""

    def heard(*, times: Any, cache_hit: bool, **_: Any) -> None:
        stages = dict(times.lowering_stages)
        found = {
            "front end": times.ir_initialization,
            "llvm": sum(n for stage, n in stages.items() if stage != "cubin"),
            "ptxas": stages.get("cubin", 0),
            "compiled": 0 if cache_hit else 1e6,
        }
        for name, microseconds in found.items():
            parts[name] = parts.get(name, 0.0) + microseconds * 1e-6

    return heard


if __name__ == "__main__":
    main(*sys.argv[1:])
