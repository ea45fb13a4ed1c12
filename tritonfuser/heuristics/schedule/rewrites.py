"""``Rewrites``: how a fusion is rewritten before it is cut into kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..plain_data.codec import normalized
from ..plain_data.limits import Within


@dataclass(frozen=True, kw_only=True, slots=True)
class ReductionSplit:
    """A reduction, a scan, or the K of a matrix product, that is done in parts.

    Attributes
    ----------
    value : str
        The first result of the op.
    parts : int, tuple of int or str
        An int: about so many parts, as the extents have divisors. It is the same at all sizes.
        Heuristics may choose it anew at each size of a kernel with open sizes; a schedule has what
        they chose at the sizes that it was asked for. A list: for each reduced dim the factor that
        the second step reduces; ``-n`` for the factor that leaves ``n`` elements to the first. A
        name: parts as those of that maximum, below which exponentials are summed. Of a scan, whose
        row is padded: exactly so many parts.
    interleave : int
        0: parts are contiguous. Above: part ``i`` of ``n`` has elements ``i, i + n, ...``, and
        ``n`` is a multiple of this where the extents allow it.
    padded : int
        The reduced dim, by its place among them, that is padded to hold ``parts`` whole parts,
        whatever its extent; ``interleave`` is 1 where they are interleaved. A list of ``parts`` is
        then -1 for the dims of which each position has parts of its own, and 1 for the others.
        -1: none, but for an extent without divisors.
    remainder : bool
        Whether there are exactly ``parts`` equal parts of all reduced dims as one, and the second
        step reduces the elements behind them too, fewer than there are parts. Where there are no
        two elements for each part, the first dim is padded.
    """

    value: str
    parts: int | tuple[int, ...] | str
    interleave: Annotated[int, Within(0)] = 0
    padded: Annotated[int, Within(-1)] = -1
    remainder: bool = False

    def __post_init__(self) -> None:
        normalized(self, "split.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewrites:
    """How a fusion is rewritten before it is cut into kernels.

    Attributes
    ----------
    pieces : tuple of str
        Reductions of concatenated tensors, each of which is reduced by itself.
    materialized : tuple of str
        Values that kernels behind a later op of torch read from memory.
    recomputed : tuple of str
        Values that such kernels compute again from those.
    invariants : tuple of str
        Values that are read from memory by all kernels that use them, as those are that do not run
        along all of their axes; inputs that are copied into the order of their dims. Those of
        ``tv3.permute(0, 2, 1)`` lie there as the result of that op would: dim 1 is innermost.
    products : tuple of str
        The matrix products that generated kernels compute. Torch runs the others.
    tile_splits : tuple of ReductionSplit
        Reductions of whole rows of a product, whose first step is done in the product's tiles.
    splits : tuple of ReductionSplit
        Reductions in two steps, of the fusion after ``tile_splits``.
    """

    pieces: tuple[str, ...] = ()
    materialized: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    tile_splits: tuple[ReductionSplit, ...] = ()
    splits: tuple[ReductionSplit, ...] = ()

    def __post_init__(self) -> None:
        normalized(self, "")


AS_RECORDED = Rewrites()
"""Nothing is rewritten."""
