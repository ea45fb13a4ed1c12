"""Lowered fusion in, ExecutionPlan out: allocations, launches and views as generated functions.

Nothing is left to decide in a call: sizes, strides, grids and argument orders are written into the
text, which ``TRITONFUSER_DUMP=plan`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import torch

from ...device import DeviceProperties
from ...lowering.pipeline import Lowered
from ...options import dump
from .clocks import Clock
from .function_text import Body, plain_text, timed_text
from .plan_writer import PlanWriter
from .steps import Step
from .varying import Atoms, Varying

Run = Callable[[Sequence[Any]], list[torch.Tensor]]
TimedRun = Callable[[Sequence[Any], Clock], list[torch.Tensor]]


@dataclass(frozen=True, eq=False)
class Written:
    """What a plan is made of, at whatever sizes: the attributes of ``ExecutionPlan``, and objects

    that its functions use, those that vary with the sizes apart.
    """

    lowered: Lowered
    device: torch.device
    properties: DeviceProperties
    body: Body
    text: str
    steps: tuple[Step, ...]
    scope: dict[str, Any]
    varying: Varying
    fusion_id: int
    _codes: dict[str, CodeType] = field(default_factory=dict)

    def code(self, text: str) -> CodeType:
        """A text compiled, once for all sizes."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = compile(text, "<tritonfuser plan>", "exec")
        return found


class ExecutionPlan:
    """A fusion bound to sizes, strides and a device: call it with the flat inputs.

    Attributes
    ----------
    lowered : Lowered
        Segments and kernels.
    device : torch.device
        Where it runs.
    properties : DeviceProperties
        What its kernels were made for.
    body : Body
        What its functions are made of.
    text : str
        The generated function.
    fusion_id : int
        The number that profiles call its definition by.
    steps : tuple of Step
        The kernels and the calls into torch, in order.
    plain : callable
        The function: ``list of inputs -> list of tensors``.
    run : callable
        What is called: ``plain``, or while a profiler is at work something around ``timed``.
    """

    def __init__(self, written: Written, atoms: Atoms) -> None:
        self._written = written
        self._atoms = atoms
        self.fusion_id = written.fusion_id
        self.device = written.device
        self.properties = written.properties
        self.text = written.text
        self._scope = {**written.scope, **written.varying.scope(atoms)}
        self.plain: Run = self.made(self.text, "run")
        self.run: Run = self.plain
        self._timed: TimedRun | None = None
        self._makers: dict[str, Any] = {}
        # What ``FusionExecutorCache`` tries first, once there is one.
        self.guarded_call: object = None

    def at(self, atoms: Atoms) -> ExecutionPlan:
        """The plan at other sizes: the same text, with other numbers."""
        return ExecutionPlan(self._written, atoms)

    @cached_property
    def lowered(self) -> Lowered:
        return self._written.varying.at(self._written.lowered, self._atoms)

    @cached_property
    def body(self) -> Body:
        return self._written.varying.at(self._written.body, self._atoms)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return self._written.varying.at(self._written.steps, self._atoms)

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return self.run(inputs)

    @property
    def timed(self) -> TimedRun:
        """The function with a clock, ``clock.start(0)`` before its first step and so on."""
        if self._timed is None:
            self._timed = self.made(timed_text(self.body), "run")
        return self._timed

    def made(self, text: str, name: str) -> Any:
        """What ``text`` defines under a name, with the kernels and objects of the plan at hand."""
        scope = dict(self._scope)
        exec(self._written.code(text), scope)
        return scope[name]

    def maker(self, text: str) -> Any:
        """The ``make`` that ``text`` defines, compiled once."""
        if text not in self._makers:
            self._makers[text] = self.made(text, "make")
        return self._makers[text]


def make_plan(
    lowered: Lowered,
    inputs: Sequence[Any],
    device: torch.device,
    properties: DeviceProperties,
    fusion_id: int = 0,
) -> ExecutionPlan:
    """Compile the kernels for inputs like these and write the function that runs them."""
    writer = PlanWriter(lowered, inputs, device, properties)
    body = writer.body()
    written = Written(
        lowered=lowered,
        device=device,
        properties=properties,
        body=body,
        text=plain_text(body),
        steps=tuple(writer.steps),
        scope=writer.scope,
        varying=writer.varying,
        fusion_id=fusion_id,
    )
    dump("plan", written.text)
    ledger = lowered.ledger
    return ExecutionPlan(written, () if ledger is None else [a.hint for a in ledger.atoms])
