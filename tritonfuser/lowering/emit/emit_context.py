"""``EmitContext``: what the text of every kernel of a definition depends on beside its segment."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Fusion, Value
from ...symbolic.shape_env import ShapeEnv
from ..passes.random_seeds import Seeds


@dataclass(frozen=True)
class EmitContext:
    """What all kernels of a definition have in common.

    Attributes
    ----------
    fusion : Fusion
        The fusion that the segments' nodes belong to.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    seeds : tuple of (Value, Value)
        Seeds and offsets that a run draws. In a captured graph the kernel loads them from memory.
    env : ShapeEnv or None
        The sizes that vary: those in a text become arguments. None where no size varies.
    check_bounds : bool
        Whether kernels assert that indices read at run time are inside their dims.
    """

    fusion: Fusion
    misaligned: frozenset[Value] = frozenset()
    seeds: Seeds = ()
    env: ShapeEnv | None = None
    check_bounds: bool = False
