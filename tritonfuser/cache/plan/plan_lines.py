"""``PlanLines``: the lines of a plan's body while it is written, and what they use."""

from __future__ import annotations

from typing import Any

from .steps import Step


class PlanLines:
    """The statements of a plan so far.

    Attributes
    ----------
    scope : dict
        Objects that the lines use by name.
    lines : list of str
        The statements.
    steps : list of Step
        Kernels and calls into torch.
    step_lines : list of int
        The index of the line of each step.
    """

    def __init__(self, scope: dict[str, Any]) -> None:
        self.scope = scope
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.step_lines: list[int] = []

    def add(self, *lines: str) -> None:
        """Add statements."""
        self.lines += lines

    def add_step(self, line: str, step: Step) -> None:
        """Add the statement of a kernel or of a call into torch."""
        self.step_lines.append(len(self.lines))
        self.lines.append(line)
        self.steps.append(step)
