"""Ways into a plan that look at what they are given first: a call that fits pays for nothing else.

``FusionExecutorCache`` tries the one of the plan that ran last before it makes a key, and bound
plans have no other way in. What a way in refuses goes to ``miss``, which looks more closely: a
guard may refuse what fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dtypes import int_range
from ...ir import Fusion, Value
from ...lowering.passes.concretize import shape_scalars
from ..plan.copies import put
from ..plan.execution_plan import ExecutionPlan
from ..plan.function_text import checked_text, into_text
from .memory_overlap import Near
from .profiling import entered
from .tensor_guards import GuardMaker, guard_for, plain_guard

Inputs = Sequence[Any]
Miss = Callable[[Inputs], list[torch.Tensor]]
MissInto = Callable[[Inputs, Any], list[torch.Tensor]]


GUARDS = 16
"""How often a guard of torch's is made anew, for another mode or class, before it is given up."""


class Nowhere:
    """The way in where there is no plan yet."""

    @staticmethod
    def run(inputs: Inputs, miss: Miss) -> list[torch.Tensor]:
        return miss(inputs)


class Checked:
    """``run(inputs, miss)`` of a plan, for inputs like those it is made with.

    Parameters
    ----------
    plan : ExecutionPlan
        The plan.
    fusion : Fusion
        The definition that it was made for.
    inputs : sequence
        Flat inputs that fit the plan.
    before : Checked, optional
        One for inputs of the same signature, whose guard refused these.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        fusion: Fusion,
        inputs: Inputs,
        before: Checked | None = None,
    ) -> None:
        self.plan = plan
        self.count: int = 1 if before is None else before.count + 1
        make = plan.maker(checked_text(plan.body, numbers_fit(plan, fusion, inputs)))
        self.plain: Callable[[Inputs, Miss], list[torch.Tensor]]
        guard = _maker(self.count)
        self.plain, self._fits = make(guard(_tensors(inputs)))
        self.run = self.plain
        entered(self)

    @property
    def apart(self) -> Callable[[Inputs, Miss], list[torch.Tensor]]:
        """Look, then run the plan as anybody does."""
        plan, fits = self.plan, self._fits
        return lambda inputs, miss: plan.run(inputs) if fits(inputs) else miss(inputs)


class Into:
    """``run(inputs, out, miss)`` of a plan: as ``Checked``, with results put into ``out``."""

    def __init__(
        self,
        plan: ExecutionPlan,
        fusion: Fusion,
        inputs: Inputs,
        out: Sequence[torch.Tensor | None],
        near: Near,
        before: Into | None = None,
    ) -> None:
        self._plan = plan
        self.count: int = 1 if before is None else before.count + 1
        given = [tensor is not None for tensor in out]
        make = plan.maker(into_text(plan.body, numbers_fit(plan, fusion, inputs), given))
        self.plain: Callable[[Inputs, Any, MissInto], list[torch.Tensor]]
        guard = _maker(self.count)
        self.plain, self._fits = make(guard([*_tensors(inputs), *_tensors(out)]), near)
        self.run = self.plain
        entered(self)

    @property
    def apart(self) -> Callable[[Inputs, Any, MissInto], list[torch.Tensor]]:
        """Run the plan as anybody does, and copy."""
        plan, fits = self._plan, self._fits

        def apart(inputs: Inputs, out: Any, miss: MissInto) -> list[torch.Tensor]:
            if not fits(inputs, out):
                return miss(inputs, out)
            pairs = zip(out, plan.run(inputs), strict=True)
            return [made if given is None else put(given, made) for given, made in pairs]

        return apart


def way_in(
    plan: ExecutionPlan, fusion: Fusion, inputs: Inputs, last: Checked | type[Nowhere]
) -> Checked:
    """The way into a plan, another one where its last one has refused inputs that fit."""
    before = plan.way_in if isinstance(plan.way_in, Checked) else None
    if before is not None and before is not last:
        return before
    made = plan.way_in = Checked(plan, fusion, inputs, before)
    return made


def _maker(count: int) -> GuardMaker:
    return guard_for if count <= GUARDS else plain_guard


def numbers_fit(plan: ExecutionPlan, fusion: Fusion, inputs: Inputs) -> list[str]:
    """What has to hold of numbers, over the names of the plan's body."""
    in_shapes = shape_scalars(fusion)
    found: list[str] = []
    rows = zip(plan.body.inputs, fusion.inputs, inputs, strict=True)
    for named, value, given in rows:
        if not value.is_tensor:
            found += _number_fits(named.name, value, given, value in in_shapes)
    return found


def _number_fits(name: str, value: Value, given: Any, in_shape: bool) -> list[str]:
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
