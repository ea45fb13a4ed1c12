"""``Lowered``: a fusion at given sizes, as kernels; what a plan is made of."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import Value
from ..symbolic.shape_env import ShapeEnv
from .kernel_source import KernelSource
from .passes.complex_split import HiddenInput
from .passes.random_seeds import Seeds
from .segments.segmented_fusion import SegmentedFusion


@dataclass(frozen=True)
class Lowered:
    """A fusion at given sizes, as kernels.

    Attributes
    ----------
    segmented : SegmentedFusion
        The fusion cut into segments.
    sources : tuple of KernelSource or None
        The kernel of each segment. None where there is nothing to launch.
    seeds : Seeds
        Hidden inputs after the recorded ones: seeds that a run draws from torch's generator.
    parts : tuple of HiddenInput
        Hidden inputs that a run makes of complex inputs: their real and imaginary parts.
    env : ShapeEnv or None
        The sizes that vary and the guards on them. None where no size varies.
    origin : str
        Where the schedule comes from, in words. Empty where heuristics or the caller chose it.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    """

    segmented: SegmentedFusion
    sources: tuple[KernelSource | None, ...]
    seeds: Seeds = ()
    parts: tuple[HiddenInput, ...] = ()
    env: ShapeEnv | None = None
    origin: str = ""
    misaligned: frozenset[Value] = frozenset()
