"""The child process that times one first run and prints the seconds as a line of JSON.

``bench.cold`` starts it. Work other than compilation happens before the clock starts: packages are
imported, and the function runs once in eager torch, which creates the CUDA context and the library
handles. The time of imports that happen during the first run is subtracted.
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
"""Runs for the first time; returns seconds by part, where they are known."""
ARCH = "sm_90"
"""The architecture that kernels are compiled for where there is no GPU."""


def main(peer: str, path: str, device: str) -> None:
    """Time the first run of the case in the file ``path``; ``peer`` is ``ours`` or ``torch``."""
    described = json.loads(Path(path).read_text())
    inputs = [_input(given, device) for given in described["inputs"]]
    function, arguments = (
        _function(described["text"]),
        [inputs[place] for place in described["places"]],
    )
    if device != "meta":
        function(*arguments)
    first = (
        _ours(described["case"], inputs, device)
        if peer == "ours"
        else _torch_compile(function, arguments)
    )
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


def _torch_compile(function: Callable[..., Any], arguments: Sequence[Any]) -> First:
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
    """Compile the kernels of a run for ``ARCH`` without a GPU."""
    kernels = importlib.import_module("tritonfuser.cache.kernels")
    run_options = importlib.import_module("tritonfuser.lowering.run_options")
    lowered, _ = fd._core().lowered(inputs, run_options.RunOptions(arch=ARCH))
    sources = [source for source in lowered.sources if source is not None]
    wanted = [(source, tuple(arg.is_tensor for arg in source.args)) for source in sources]
    kernels.compile_together(wanted, ARCH)


def _listener(parts: Seconds) -> Callable[..., None]:
    """Add Triton's stage times up over kernels; kernels may compile concurrently."""

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
