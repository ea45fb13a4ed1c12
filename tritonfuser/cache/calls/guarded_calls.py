"""The fast path into a plan: guard and run in one generated function.

A call whose inputs pass the guard makes no key and looks nothing up. ``FusionExecutorCache`` tries
the guarded call of the plan that ran last; bound plans have no other path. A guard may refuse
inputs that fit, never take inputs that do not. So a refusal calls ``miss``, which checks in full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ... import options
from ...dtypes import int_range
from ...ir import Fusion, Value
from ...lowering.passes.concretize import shape_scalars
from ..plan.copies import put
from ..plan.execution_plan import ExecutionPlan
from ..plan.function_text import guarded_into_text, guarded_text
from ..plan.heat import Heat
from ..plan.memory_overlap import OverlapCheck
from .gradient_warning import warn_detached
from .profiling import register_call
from .tensor_guards import Guard, guard_for, guard_of_memory, plain_guard

Inputs = Sequence[Any]
Miss = Callable[[Inputs], list[torch.Tensor]]
MissInto = Callable[[Inputs, Any], list[torch.Tensor]]


MAX_TORCH_GUARDS = 16
"""Guards of torch's made for one signature, as modes and classes change, before the plain one."""


class NoGuardedCall:
    """The guarded call where there is no plan yet: every call misses."""

    @staticmethod
    def run(inputs: Inputs, miss: Miss) -> list[torch.Tensor]:
        return miss(inputs)


class GuardedCall:
    """``run(inputs, miss)``: the run of a plan behind a guard for inputs like the example ones.

    Parameters
    ----------
    plan : ExecutionPlan
        What runs.
    fusion : Fusion
        The definition of the plan.
    inputs : sequence
        Example inputs, flat, that fit the plan. They are not kept.
    before : GuardedCall, optional
        The previous guarded call of this signature, whose guard refused the example.
    heat : Heat, optional
        Calls are counted, and miss once none is left.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        fusion: Fusion,
        inputs: Inputs,
        before: GuardedCall | None = None,
        heat: Heat | None = None,
    ) -> None:
        warn_detached(inputs)
        self.plan = plan
        self._heat = heat
        self.count: int = 1 if before is None else before.count + 1
        numbers = number_conditions(plan, fusion, inputs)
        make = plan.maker(guarded_text(plan.body, numbers, counted=heat is not None))
        self.plain: Callable[[Inputs, Miss], list[torch.Tensor]]
        self.plain, self._fits = make(_guard(plan, self.count, _tensors(inputs)), heat)
        self.run = self.plain
        register_call(self)

    @property
    def profiled(self) -> Callable[[Inputs, Miss], list[torch.Tensor]]:
        """The guard, then ``plan.run``. Calls are not counted meanwhile."""
        plan, fits, heat = self.plan, self._fits, self._heat

        def profiled(inputs: Inputs, miss: Miss) -> list[torch.Tensor]:
            is_due = heat is not None and heat.left <= 0
            return miss(inputs) if is_due or not fits(inputs) else plan.run(inputs)

        return profiled


class GuardedCallInto:
    """``run(inputs, out, miss)``: as ``GuardedCall``, with results written into ``out``."""

    def __init__(
        self,
        plan: ExecutionPlan,
        fusion: Fusion,
        inputs: Inputs,
        out: Sequence[torch.Tensor | None],
        overlaps: OverlapCheck,
        before: GuardedCallInto | None = None,
    ) -> None:
        warn_detached(inputs)
        self._plan = plan
        self.count: int = 1 if before is None else before.count + 1
        given = [tensor is not None for tensor in out]
        make = plan.maker(
            guarded_into_text(plan.body, number_conditions(plan, fusion, inputs), given)
        )
        self.plain: Callable[[Inputs, Any, MissInto], list[torch.Tensor]]
        guard = _guard(plan, self.count, [*_tensors(inputs), *_tensors(out)])
        self.plain, self._fits = make(guard, overlaps)
        self.run = self.plain
        register_call(self)

    @property
    def profiled(self) -> Callable[[Inputs, Any, MissInto], list[torch.Tensor]]:
        """The guards, then ``plan.run``, then copies into ``out``."""
        plan, fits = self._plan, self._fits

        def profiled(inputs: Inputs, out: Any, miss: MissInto) -> list[torch.Tensor]:
            if not fits(inputs, out):
                return miss(inputs, out)
            pairs = zip(out, plan.run(inputs), strict=True)
            return [made if given is None else put(given, made) for given, made in pairs]

        return profiled


def guarded_call(
    plan: ExecutionPlan, fusion: Fusion, inputs: Inputs, last: GuardedCall | type[NoGuardedCall]
) -> GuardedCall:
    """The guarded call of a plan; a new one where ``last``, its current one, refused the inputs."""
    before = plan.guarded_call if isinstance(plan.guarded_call, GuardedCall) else None
    if before is not None and before is not last:
        return before
    made = plan.guarded_call = GuardedCall(plan, fusion, inputs, before, plan.heat)
    return made


def _guard(plan: ExecutionPlan, count: int, tensors: Sequence[torch.Tensor]) -> Guard:
    guard = (guard_for if count <= MAX_TORCH_GUARDS else plain_guard)(tensors)
    checked = plan.device.type == "cpu" or "storage" in options.current().check
    return guard_of_memory(guard) if checked else guard


def number_conditions(plan: ExecutionPlan, fusion: Fusion, inputs: Inputs) -> list[str]:
    """Conditions on the inputs that are numbers, over their names in the plan's body."""
    in_shapes = shape_scalars(fusion)
    found: list[str] = []
    rows = zip(plan.body.inputs, fusion.inputs, inputs, strict=True)
    for named, value, given in rows:
        if not value.is_tensor:
            found += _conditions_on_number(named.name, value, given, value in in_shapes)
    return found


def _conditions_on_number(name: str, value: Value, given: Any, in_shape: bool) -> list[str]:
    kind = next(k for k in (bool, int, float, complex) if isinstance(given, k))
    own = f"type({name}) is {kind.__name__}"
    conditions = [own if type(given) is kind else f"isinstance({name}, {kind.__name__})"]
    if in_shape:
        conditions.append(f"{name} == {kind(given)!r}")
    if kind is int:
        held = int_range(value.dtype)
        conditions.append(f"{held.start} <= {name} < {held.stop}")
    return conditions


def _tensors(inputs: Inputs) -> list[torch.Tensor]:
    return [given for given in inputs if isinstance(given, torch.Tensor)]
