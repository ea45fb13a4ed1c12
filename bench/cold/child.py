"""A process that runs one function for the first time, and prints the seconds as a line of JSON.

Started by ``bench.cold``. What is no compiling is done before the clock starts, for everyone alike:
the packages are imported, and the function has run once in eager, so that the GPU has a context and
torch's libraries their handles. Imports that are left for the first run are taken off its time.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import triton

from bench.measure.import_clock import ImportClock
from bench.measure.timing import synchronize

Seconds = dict[str, float]
First = Callable[[], Seconds]
"""A first run; gives the parts of its time that are known."""
ARCH = "sm_90"
"""What ours is compiled for where there is no GPU, on inputs that are ``meta``."""


def main(peer: str, path: str, device: str) -> None:
    """Time the first run of the case in a file by ``ours`` or ``torch``."""
    told = json.loads(Path(path).read_text())
    inputs = [_input(given, device) for given in told["inputs"]]
    function, arguments = _function(told["text"]), [inputs[place] for place in told["places"]]
    if device != "meta":
        function(*arguments)
    first = _ours(told["case"], inputs, device) if peer == "ours" else _torchs(function, arguments)
    gc.collect()
    synchronize(device)
    with ImportClock() as imports:
        started = time.perf_counter()
        parts = first()
        synchronize(device)
        total = time.perf_counter() - started
    found = {"total": total - imports.seconds, "imports": imports.seconds, **parts}
    print(json.dumps(found))


def _input(given: Any, device: str) -> Any:
    if not isinstance(given, list):
        return given
    shape, dtype = given[0], getattr(torch, given[1])
    if dtype.is_floating_point:
        return torch.randn(shape, device=device).to(dtype)
    return torch.zeros(shape, dtype=dtype, device=device)


def _function(text: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {}
    exec(compile(text, "<case>", "exec"), scope)
    found: Callable[..., Any] = scope["f"]
    return found


def _torchs(function: Callable[..., Any], arguments: Sequence[Any]) -> First:
    importlib.import_module("torch._inductor.compile_fx")

    def first() -> Seconds:
        torch.compile(function)(*arguments)
        return {}

    return first


def _ours(case: str, inputs: Sequence[Any], device: str) -> First:
    record = importlib.import_module("bench.cold.cases").CASES[case].record
    kernels = importlib.import_module("tritonfuser.cache.kernels")
    watches = importlib.import_module("bench.measure.stopwatch")
    run = _compile if device == "meta" else _run

    def first() -> Seconds:
        watch = watches.Stopwatch(time.perf_counter)
        compiling: Seconds = {}
        triton.knobs.compilation.listener = _listener(compiling)
        with watch.stage("record"):
            fd = record()
        with watch.on({**watches.STAGES, "kernels": ((kernels, "compile_together"),)}):
            run(fd, inputs)
        passes = sum(watch.seconds.get(stage, 0.0) for stage in watches.STAGES)
        return {**watch.seconds, "passes": passes, **compiling}

    return first


def _run(fd: Any, inputs: Sequence[Any]) -> None:
    fd.run(inputs)


def _compile(fd: Any, inputs: Sequence[Any]) -> None:
    """As for a run, for a GPU that is not here."""
    kernels = importlib.import_module("tritonfuser.cache.kernels")
    lowered, _ = fd._core().lowered(inputs, arch=ARCH)
    sources = [source for source in lowered.sources if source is not None]
    wanted = [(source, tuple(arg.is_tensor for arg in source.args)) for source in sources]
    kernels.compile_together(wanted, ARCH)


def _listener(parts: Seconds) -> Callable[..., None]:
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
