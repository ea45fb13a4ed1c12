"""The ``ShapeEnv`` of the sizes that vary among the facts of a segment."""

from __future__ import annotations

from ..heuristics.cost.work import KernelWork
from ..heuristics.problem import Problem
from ..symbolic.choices import env_among
from ..symbolic.shape_env import ShapeEnv


def env_of(problem: Problem) -> ShapeEnv | None:
    """The shape env of the sizes in a problem. None where none varies."""
    return env_among(*problem.sizes())


def env_with_work(problem: Problem, work: KernelWork) -> ShapeEnv | None:
    """The same of a problem and of what its kernel computes.

    A value may have a size that no tensor of the kernel has, as one that is expanded.
    """
    return env_of(problem) or env_among(*(node.elements for node in work.nodes))
