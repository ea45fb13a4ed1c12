"""The ``ShapeEnv`` of the sizes that vary among the facts of a segment."""

from __future__ import annotations

from ..heuristics.problem import Problem
from ..symbolic.choices import env_among
from ..symbolic.shape_env import ShapeEnv


def env_of(problem: Problem) -> ShapeEnv | None:
    """The shape env of the sizes in a problem. None where none varies."""
    return env_among(*problem.sizes())
