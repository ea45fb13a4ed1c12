"""``Rewritten``: a fusion during segmentation, with the decisions that rewrote it so far.

Each stage takes one and returns the next: values in memory, products as kernels, reductions in two
steps. ``given/rewrites.py`` does the same stages as a schedule has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...device import DeviceProperties
from ...heuristics.schedule import ReductionSplit, Rewrites
from ...ir import Fusion, Value
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import hint, is_size
from ..access.reads import KnownReads
from ..passes.concatenations.reduced_pieces import reduce_pieces
from ..passes.invariants.materialize import choose_invariants, materialize_invariants
from ..passes.invariants.positions import read_at_many
from ..passes.materialization import Reread, materialize_shared
from ..passes.splits.parts import (
    AlongMaximum,
    Interleaved,
    Padded,
    Parts,
    Remainder,
    reduced_extents,
)
from ..passes.splits.split_reduction import split_reductions


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A fusion as it is rewritten so far.

    Attributes
    ----------
    fusion : Fusion
        The rewritten fusion.
    rewrites : Rewrites
        How it came from the simplified one, as a schedule writes it.
    partial : frozenset of Value or None
        The results of the first steps of reductions. None where it is not decided yet which
        reductions are split.
    reads : KnownReads
        What elements of its nodes are computed from; shared with other rewrites of the same fusion.
    """

    fusion: Fusion
    rewrites: Rewrites = field(default=Rewrites())
    partial: frozenset[Value] | None = None
    reads: KnownReads = field(default_factory=KnownReads, compare=False)


@dataclass(frozen=True, slots=True)
class CommonRewrites:
    """A fusion with the rewrites that come before any choice of values in memory.

    Attributes
    ----------
    fusion : Fusion
        With the values in memory that kernels behind a later library op use again.
    pieces : tuple of str
        The reductions that are done in pieces.
    reread : Reread
        The values in memory.
    at_many : tuple of str
        The values that kernels would read at many positions: they are in memory too.
    reads : KnownReads
        What elements of its nodes are computed from.
    """

    fusion: Fusion
    pieces: tuple[str, ...]
    reread: Reread
    at_many: tuple[str, ...]
    reads: KnownReads = field(default_factory=KnownReads, compare=False)

    @staticmethod
    def of(fusion: Fusion, pieces: tuple[str, ...] = ()) -> CommonRewrites:
        """That of a simplified fusion, with some reductions in pieces."""
        found, reread = materialize_shared(reduce_pieces(fusion, pieces))
        return CommonRewrites(found, pieces, reread, read_at_many(found))

    def in_memory(
        self, device: DeviceProperties, materialized: tuple[str, ...] | None
    ) -> Rewritten:
        """The fusion with some values materialized.

        Parameters
        ----------
        materialized : tuple of str or None
            Names of these values, without ``at_many``. None: heuristics decide.
        """
        chosen = materialized
        if chosen is None:
            chosen = choose_invariants(self.fusion, device)
        invariants = tuple(dict.fromkeys((*self.at_many, *chosen)))
        rewrites = Rewrites(
            pieces=self.pieces,
            materialized=self.reread.materialized,
            recomputed=self.reread.recomputed,
            invariants=invariants,
        )
        made = materialize_invariants(self.fusion, invariants)
        return Rewritten(made, rewrites, reads=self.reads)


def in_tiles(before: Rewritten, parts: Mapping[Value, int]) -> Rewritten:
    """The fusion with reductions in two steps, the first inside the tiles of a product's kernel."""
    splits = _splits(before.fusion, parts)
    made = split_reductions(before.fusion, parts).fusion
    return replace(before, fusion=made, rewrites=replace(before.rewrites, tile_splits=splits))


def in_two_steps(before: Rewritten, parts: Mapping[Value, Parts]) -> Rewritten:
    """The fusion with reductions in two steps."""
    splits = _splits(before.fusion, parts)
    made = split_reductions(before.fusion, parts)
    rewrites = replace(before.rewrites, splits=splits)
    return replace(before, fusion=made.fusion, rewrites=rewrites, partial=made.partial)


def _splits(fusion: Fusion, parts: Mapping[Value, Parts]) -> tuple[ReductionSplit, ...]:
    return tuple(_split(fusion, value, wanted) for value, wanted in parts.items())


def _split(fusion: Fusion, value: Value, wanted: Parts) -> ReductionSplit:
    if isinstance(wanted, Interleaved):
        return ReductionSplit(value=value.name, parts=wanted.count, interleave=wanted.multiple_of)
    if isinstance(wanted, Padded):
        parts, interleave = _padded_parts(fusion, value, wanted), int(wanted.interleaved)
        return ReductionSplit(
            value=value.name, parts=parts, interleave=interleave, padded=wanted.place
        )
    if isinstance(wanted, Remainder):
        parts, interleave = hint(wanted.count), wanted.multiple_of
        return ReductionSplit(value=value.name, parts=parts, interleave=interleave, remainder=True)
    if isinstance(wanted, AlongMaximum):
        return ReductionSplit(value=value.name, parts=wanted.maximum.name)
    if isinstance(wanted, tuple):
        pairs = zip(wanted, reduced_extents(fusion.producers[value]), strict=True)
        return ReductionSplit(value=value.name, parts=tuple(_factor(*pair) for pair in pairs))
    return ReductionSplit(value=value.name, parts=wanted)


def _padded_parts(fusion: Fusion, value: Value, wanted: Padded) -> int | tuple[int, ...]:
    """As many as in this run: a schedule that is given does not choose."""
    count = hint(wanted.count)
    if not wanted.second:
        return count
    places = range(len(reduced_extents(fusion.producers[value])))
    whole = dict.fromkeys(wanted.second, -1)
    return tuple(count if place == wanted.place else whole.get(place, 1) for place in places)


def _factor(factor: int, extent: int) -> int:
    """A factor as a schedule writes it, so that it is right for other sizes too where it can be."""
    if is_known_equal(factor, extent):
        return -1
    left = extent // factor
    return -left if is_size(factor) and not is_size(left) else hint(factor)
