"""A compiled variant with open sizes, and the signatures that it may and should serve."""

from __future__ import annotations

from dataclasses import dataclass

from ..symbolic.evaluation import AtomValues
from .keys.conditions import Conditions
from .keys.open_sizes import Numbers, Opened
from .keys.recompiles import Recompile
from .keys.schedule_choices import ScheduleChoices
from .plan.execution_plan import ExecutionPlan


@dataclass(eq=False)
class OpenVariant:
    """A compiled variant with open sizes.

    Attributes
    ----------
    plan : ExecutionPlan
        At the sizes that opened it.
    sizes : Opened
        Those sizes.
    conditions : Conditions
        Where it is right.
    choices : ScheduleChoices
        Where its schedule would be chosen.
    record : Recompile
        What is told of it.
    """

    plan: ExecutionPlan
    sizes: Opened
    conditions: Conditions
    choices: ScheduleChoices
    record: Recompile

    def fitting(self, numbers: Numbers) -> AtomValues | None:
        """Its sizes at these numbers; None where a guard fails or wider vectors are possible."""
        atoms = self.conditions.bind(numbers)
        return None if atoms is None or self.sizes.misses_vectors(atoms) else atoms

    def serve(self, atoms: AtomValues) -> ExecutionPlan:
        """The plan at these sizes."""
        self.record.served += 1
        return self.plan.at(atoms)

    def has_kernels_of(self, plan: ExecutionPlan) -> bool:
        """Whether another plan launches the same kernels in the same way."""
        return self.plan.text == plan.text and _launches(self.plan) == _launches(plan)


def _launches(plan: ExecutionPlan) -> list[tuple[object, ...]]:
    """What its kernels are compiled from."""
    sources = [step.source for step in plan.steps if step.source is not None]
    return [(s.text, s.constants, s.num_warps, s.num_stages, s.max_registers) for s in sources]


@dataclass(frozen=True, eq=False)
class Fit:
    """A variant that is right at some sizes.

    Attributes
    ----------
    variant : OpenVariant
        The variant.
    atoms : sequence of int
        The sizes.
    as_chosen : bool
        Whether it has the schedule that would be chosen there.
    """

    variant: OpenVariant
    atoms: AtomValues
    as_chosen: bool
