"""``ExecutionPlan``: the allocations, launches and views of a run as one generated function.

Sizes, strides, grids and argument orders are constants of its text, so a call decides nothing.
``TRITONFUSER_DUMP=plan`` prints the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import torch

from ...device import DeviceProperties
from ...errors import PLAN_FILE
from ...lowering.lowered import Lowered
from ...options import dump
from ...symbolic.evaluation import AtomValues
from .clocks import Clock
from .function_text import Body, plain_text, timed_text
from .heat import Heat
from .plan_writer import PlanWriter
from .steps import Step
from .varying import Varying

Run = Callable[[Sequence[Any]], list[torch.Tensor]]
TimedRun = Callable[[Sequence[Any], Clock], list[torch.Tensor]]


@dataclass(frozen=True, eq=False)
class PlanTemplate:
    """What the plans of one variant have in common, whatever its open sizes are.

    Attributes
    ----------
    lowered, device, properties, body, text, steps, fusion_id
        As those of ``ExecutionPlan``; sizes in them may be symbolic.
    scope : dict
        Objects that the functions use by name, the same at all sizes.
    varying : Varying
        Objects that depend on the sizes.
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
        """The byte code of a text, compiled once for all sizes."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = compile(text, PLAN_FILE, "exec")
        return found


class ExecutionPlan:
    """A definition compiled for sizes, strides and a device; called with flat inputs.

    Attributes
    ----------
    lowered : Lowered
        Segments and kernels.
    device : torch.device
        Where it runs.
    properties : DeviceProperties
        The device that its kernels were defined for.
    body : Body
        The lines of its functions.
    text : str
        The text of ``plain``.
    fusion_id : int
        The number of the definition in profiles.
    steps : tuple of Step
        The kernels and the calls into torch, in order.
    plain : callable
        The generated function: flat inputs -> list of outputs.
    run : callable
        ``plain``; while a profiler listens a function that calls ``timed``.
    guarded_call : GuardedCall, optional
        Its current fast path; ``FusionExecutorCache`` makes it.
    heat : Heat, optional
        How often it runs before ``HotSizes`` looks at it; None where calls are not counted.
    """

    def __init__(self, template: PlanTemplate, atoms: AtomValues) -> None:
        self._template = template
        self._atoms = atoms
        self.fusion_id = template.fusion_id
        self.device = template.device
        self.properties = template.properties
        self.text = template.text
        self._scope = {**template.scope, **template.varying.scope(atoms)}
        self.plain: Run = self.defined(self.text, "run")
        self.run: Run = self.plain
        self._timed: TimedRun | None = None
        self._makers: dict[str, Any] = {}
        self.guarded_call: object = None
        self.heat: Heat | None = None

    def at(self, atoms: AtomValues) -> ExecutionPlan:
        """The plan of the same variant at other sizes: the same text, other numbers."""
        return ExecutionPlan(self._template, atoms)

    @cached_property
    def lowered(self) -> Lowered:
        """The kernels, at the sizes of this plan."""
        return self._template.varying.at(self._template.lowered, self._atoms)

    @cached_property
    def body(self) -> Body:
        """The lines of the generated functions, at these sizes."""
        return self._template.varying.at(self._template.body, self._atoms)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What a run does in order, at these sizes."""
        return self._template.varying.at(self._template.steps, self._atoms)

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return self.run(inputs)

    @property
    def timed(self) -> TimedRun:
        """The function with a clock, ``clock.start(0)`` before its first step and so on."""
        if self._timed is None:
            self._timed = self.defined(timed_text(self.body), "run")
        return self._timed

    def defined(self, text: str, name: str) -> Any:
        """What executing ``text`` in the scope of the plan defines under a name."""
        scope = dict(self._scope)
        exec(self._template.code(text), scope)
        return scope[name]

    def maker(self, text: str) -> Any:
        """The function ``make`` that ``text`` defines; cached."""
        if text not in self._makers:
            self._makers[text] = self.defined(text, "make")
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
    template = PlanTemplate(
        lowered=lowered,
        device=device,
        properties=properties,
        body=body,
        text=plain_text(body),
        steps=tuple(writer.text.steps),
        scope=writer.text.scope,
        varying=writer.varying,
        fusion_id=fusion_id,
    )
    dump("plan", template.text)
    env = lowered.env
    return ExecutionPlan(template, () if env is None else [a.hint for a in env.atoms])
