"""The worker process that runs candidates: a fault or a hang ends this process alone."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch

from ... import options
from ...cache.executor import FusionExecutorCache
from ...cache.lru import LRU
from ...cache.plan.execution_plan import ExecutionPlan
from ...heuristics.schedule import Schedule
from ...lowering.run_options import RunOptions
from ..record.recording import Recording
from ..serialization.decode import restore
from .messages import Parcel, unpacked
from .output_check import Judge
from .timing import free, interleaved, synchronize
from .worker import IDLE_SECONDS, begin

HOPELESS = 1.5
"""Candidates that take so many times the fastest of a batch are timed once alone."""

SLACK = 10
"""Times the seconds that rounds take by the kernels' own time, which they may take in all."""

FLUSH_SECONDS = 1e-3
"""Seconds between two timed runs, to evict the L2 cache, at most."""

KEPT = 64
"""Plans kept, and parts of them that several have in common."""


Tell = Callable[[int, float], None]
"""Says which candidate is next, -1 for all of them, and the seconds that it takes at least."""


class Workbench:
    """One definition with its inputs, and the plans of its candidates.

    Parameters
    ----------
    job : dict
        "definition", "environment" and "device".
    parcels : sequence
        The inputs.
    """

    def __init__(self, job: Mapping[str, Any], parcels: Sequence[Parcel]) -> None:
        os.environ.update(job["environment"])
        options.refresh()
        self.device = torch.device(job["device"])
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self.inputs = unpacked(parcels)
        synchronize(self.device.type)
        recording = Recording()
        restore(recording, job["definition"])
        kept: LRU[Any, Any] = LRU(KEPT)
        self.core = FusionExecutorCache(recording.ir, max_plans=KEPT, memo=kept.get_or_make)
        self._judge: Judge | None = None

    def plan(self, schedule: Schedule) -> ExecutionPlan:
        """The plan of a schedule."""
        takes_tensors = any(value.is_tensor for value in self.core.fusion.inputs)
        where = None if takes_tensors else self.device
        return self.core.plan(self.inputs, RunOptions(schedule=schedule, device=where))

    def measure(self, job: Mapping[str, Any], tell: Tell) -> list[float | str]:
        """The median seconds of each schedule, or why there are none."""
        found: list[float | str] = [""] * len(job["schedules"])
        runs, once = {}, 0.0
        for place, data in enumerate(job["schedules"]):
            tell(place, 0.0)
            _obey(job["hooks"].get(str(place)))
            begun = time.perf_counter()
            made = self._warm(Schedule.from_dict(data))
            once += time.perf_counter() - begun
            if isinstance(made, str):
                found[place] = made
            else:
                runs[str(place)] = partial(made.plain, self.inputs)
        tell(-1, SLACK * once)
        kind = self.device.type
        quick = {name: times.median for name, times in interleaved(runs, kind, 3).items()}
        least = min(quick.values(), default=0.0)
        close = {name: run for name, run in runs.items() if quick[name] <= HOPELESS * least}
        tell(-1, SLACK * job["rounds"] * sum(quick[name] + FLUSH_SECONDS for name in close))
        exact = {name: t.median for name, t in interleaved(close, kind, job["rounds"]).items()}
        for name, seconds in {**quick, **exact}.items():
            found[int(name)] = seconds
        return found

    def _warm(self, schedule: Schedule) -> ExecutionPlan | str:
        """The plan, after a run."""
        try:
            plan = self.plan(schedule)
            plan.plain(self.inputs)
        except Exception as error:  # whatever it is, this candidate is not to be used
            if _is_fault(error):
                raise
            return _told(error)
        # Raises for a fault. CUDA does not work in this process any more then, so it ends.
        synchronize(self.device.type)
        return plan

    def judge(self, job: Mapping[str, Any], tell: Tell) -> list[str]:
        """What is wrong with the outputs of each schedule; empty where nothing is."""
        tell(-1, 0.0)
        if self._judge is None:
            first = self.plan(Schedule.from_dict(job["reference"]))
            self._judge = Judge(self.core.fusion, self.inputs, self.device, first)
        found = []
        for place, data in enumerate(job["schedules"]):
            tell(place, 0.0)
            found.append(self._judge.fault(self.plan(Schedule.from_dict(data))))
        return found


def _is_fault(error: Exception) -> bool:
    """Whether an error says that CUDA does not work any more."""
    if isinstance(error, torch.OutOfMemoryError):
        return False
    return isinstance(error, RuntimeError) and "CUDA error" in str(error)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}"


def _obey(hook: str | None) -> None:
    """What tests have a process do in the place of a candidate that faults or hangs."""
    if hook == "abort":
        os.abort()
    if hook == "hang":
        time.sleep(3600)
    if hook == "fault":
        table = torch.zeros(8, device="cuda")
        table[torch.full((8,), 1 << 20, device="cuda")].sum().item()


def serve(pipe: Connection) -> None:
    """Do jobs until the other end is closed, or idles."""
    begin()
    _reply(pipe, 0, ready=True)
    bench: Workbench | None = None
    while pipe.poll(IDLE_SECONDS):
        number = 0
        try:
            job = json.loads(pipe.recv())
            number = job["number"]
            # Nothing here keeps the parcels: their memory belongs to the other process.
            bench = _done(pipe, bench, job, pipe.recv())
        except EOFError:
            return
        except Exception as error:
            _reply(pipe, number, error=_told(error), fault=_is_fault(error))
            if _is_fault(error):
                return


def _done(
    pipe: Connection, bench: Workbench | None, job: Mapping[str, Any], parcels: Sequence[Parcel]
) -> Workbench | None:
    """Do one job; what is on the bench then."""
    number = job["number"]
    if job["do"] in ("open", "close"):
        kind = "cpu" if bench is None else bench.device.type
        bench = None
        gc.unfreeze()
        free(kind)
        bench = Workbench(job, parcels) if job["do"] == "open" else None
        # Each measurement collects garbage. What is here by now, torch and Triton above all, stays:
        # to look through it takes 0.1 s (a machine with an H100), more than most measurements.
        gc.freeze()
        _reply(pipe, number, found=[])
        return bench
    if bench is None:
        raise ValueError("nothing is open")
    work = {"measure": bench.measure, "judge": bench.judge}[job["do"]]
    _reply(
        pipe, number, found=work(job, lambda at, takes: _reply(pipe, number, at=at, takes=takes))
    )
    return bench


def _reply(pipe: Connection, number: int, **told: Any) -> None:
    pipe.send(json.dumps({"number": number, **told}))
