"""A compiled variant with open sizes: where it is correct, and where heuristics would choose it."""

from __future__ import annotations

from dataclasses import dataclass

from ..symbolic.evaluation import AtomValues
from .keys.conditions import Conditions
from .keys.open_sizes import KeyNumbers, OpenSignature
from .keys.recompiles import Recompile
from .keys.schedule_choices import ScheduleChoices
from .plan.execution_plan import ExecutionPlan


@dataclass(eq=False)
class OpenVariant:
    """A compiled variant with open sizes.

    Attributes
    ----------
    plan : ExecutionPlan
        The plan at the sizes that it was compiled for.
    open_signature : OpenSignature
        The signature that it was compiled for.
    conditions : Conditions
        The sizes at which it is correct.
    choices : ScheduleChoices
        The sizes at which heuristics would choose its schedule.
    record : Recompile
        Its compilation, for reports.
    """

    plan: ExecutionPlan
    open_signature: OpenSignature
    conditions: Conditions
    choices: ScheduleChoices
    record: Recompile

    def bind(self, numbers: KeyNumbers) -> AtomValues | None:
        """The values of its atoms at the numbers of a key.

        None where a condition fails, or where other kernels could use wider vectors.
        """
        atoms = self.conditions.bind(numbers)
        return None if atoms is None or self.open_signature.misses_vectors(atoms) else atoms

    def serve(self, atoms: AtomValues) -> ExecutionPlan:
        """The plan at these sizes; the record counts it."""
        self.record.served += 1
        return self.plan.at(atoms)

    def has_kernels_of(self, plan: ExecutionPlan) -> bool:
        """Whether another plan launches the same kernels in the same way."""
        return self.plan.text == plan.text and _launches(self.plan) == _launches(plan)


def _launches(plan: ExecutionPlan) -> list[tuple[object, ...]]:
    """What the kernels of a plan are compiled from."""
    sources = [step.source for step in plan.steps if step.source is not None]
    return [(s.text, s.constants, s.num_warps, s.num_stages, s.max_registers) for s in sources]


@dataclass(frozen=True, eq=False)
class Fit:
    """A variant that is correct at the sizes of a call.

    Attributes
    ----------
    variant : OpenVariant
        The variant.
    atoms : sequence of int
        The values of its atoms at these sizes.
    has_chosen_schedule : bool
        Whether heuristics would choose its schedule at these sizes.
    """

    variant: OpenVariant
    atoms: AtomValues
    has_chosen_schedule: bool
