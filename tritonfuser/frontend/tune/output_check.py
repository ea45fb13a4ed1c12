"""Checks the outputs of a candidate schedule, by the error bound of ``validate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...cache.plan.copies import copied
from ...cache.plan.execution_plan import ExecutionPlan
from ...ir import Fusion
from ..inspect.audit import audit_outputs, check
from ..inspect.deviation import deviation
from ..inspect.expectation import Check, Expected, expected
from ..inspect.oracle import NoReferenceError, as_returned
from ..inspect.replay import GeneratorState, is_random, replayed
from ..inspect.tolerances import ValidationError, tolerance


class Judge:
    """Checks outputs of one definition for one set of inputs.

    The reference is computed once. Random ops draw the same numbers for it and for every plan.
    Where torch has no reference, or not enough memory for one in float64, outputs are compared
    with those of a plan that is trusted.

    Parameters
    ----------
    fusion : Fusion
        As recorded.
    inputs : sequence
        Flat. Plans run on copies where they write into inputs.
    device : torch.device
        Of the runs.
    trusted : ExecutionPlan
        The plan of the heuristics' schedule.
    """

    def __init__(
        self,
        fusion: Fusion,
        inputs: Sequence[Any],
        device: torch.device,
        trusted: ExecutionPlan,
    ) -> None:
        self._fusion, self._inputs, self._device = as_returned(fusion), inputs, device
        self._state = GeneratorState.of(device) if is_random(fusion) else None
        self._trusted = trusted
        self._expected = self._reference()

    def _reference(self) -> Expected | None:
        fusion = self._fusion
        try:
            if self._state is not None:
                fusion = replayed(fusion, self._inputs, self._device, self._state.drawn)
            return expected(fusion, self._given(), Check())
        except (NoReferenceError, NotImplementedError, torch.OutOfMemoryError):
            return None

    def _given(self) -> Sequence[Any]:
        writes = any(out.alias_of is not None for out in self._fusion.outputs)
        return copied(self._inputs) if writes else self._inputs

    def _run(self, plan: ExecutionPlan) -> tuple[list[torch.Tensor], Sequence[Any]]:
        """Its outputs, and the inputs after the run."""
        if self._state is not None:
            self._state.restore()
        given = self._given()
        return plan.plain(given), given

    def fault(self, plan: ExecutionPlan) -> str:
        """What is wrong with a plan's outputs; empty where nothing is."""
        outputs, given = self._run(plan)
        if self._expected is None:
            return self._compared(outputs)
        try:
            for row in audit_outputs(self._fusion, self._expected, outputs, given):
                check(row)
        except ValidationError as error:
            return f"wrong: {error.message}"
        return ""

    def _compared(self, outputs: Sequence[torch.Tensor]) -> str:
        """The first output that is farther from that of the trusted plan than its tolerance."""
        reference, _ = self._run(self._trusted)
        longest = max((x.numel() for x in self._inputs if isinstance(x, torch.Tensor)), default=1)
        shown = [out.value.dtype for out in self._fusion.outputs if not out.hidden]
        for place, (got, wanted, dtype) in enumerate(zip(outputs, reference, shown, strict=True)):
            off = deviation(got, wanted, tolerance(dtype, longest).limit(wanted))
            if not off.ok:
                return f"wrong: output {place} differs from that of the heuristics' schedule"
        return ""
