"""``LeastCounting``: lower bounds of the ``Counts`` of many kernels at once."""

from __future__ import annotations

from math import prod

import numpy as np

from ....lazy import cached_property
from ...streams import Stream
from ..counting import Counting
from ..counts import Counts, LeastCounts, Number, TileCounts
from ..memory.traffic import StepBytes, Windows
from ..numbers import ARRAYS
from ..reduction_layout import ReductionLayout
from ..registers import limit_of_warps
from ..tiles import Launches
from .flat import flat_bounds
from .loads import LeastLoads, LoadBounds


class LeastCounting(Counting):
    """``Counting`` that also has ``LeastCounts`` of many kernels at once, as arrays."""

    @cached_property
    def _least_loads(self) -> LeastLoads:
        return LeastLoads(self._problem, self._streams.tensors)

    @cached_property
    def _least_fetched_bytes(self) -> int:
        """Bytes that all programs together fetch at least, by any params."""
        streams = self._problem.streams
        return sum(s.fetched_bytes for s in streams if _is_always_fetched(s))

    def least_of(self, many: Launches) -> LeastCounts:
        """The lower bounds for many kernels."""
        return self._least_of_flat(many) if many.blocks else self._least_of_rows(many)

    def _least_of_flat(self, many: Launches) -> LeastCounts:
        bounds = flat_bounds(self._flat_streams, many, many.warps * self._problem.device.warp_size)
        counts = self._of_tile.of_many(many.tile)
        return self._least_counts(many, counts, ReductionLayout(), bounds, bounds.moved)

    def _least_of_rows(self, many: Launches) -> LeastCounts:
        counts = self._of_tile.of_many(many.tile)
        threads = many.warps * self._problem.device.warp_size
        bounds = self._least_loads.of(many, threads, counts.valid, ARRAYS)
        computed = self._of_tile.computed_share(many.tile, threads, bounds.vectors[0], ARRAYS)
        reductions = self._reductions.lower_bounds(
            many.tile, threads, bounds.vectors, computed, ARRAYS
        )
        # Where the ends of rows stay in registers, the steps cover a part of each row.
        positions = counts.programs * counts.steps * many.tile.x * many.tile.r
        in_steps = np.minimum(positions / max(self._of_tile.positions, 1), 1.0)
        steps = counts.programs * counts.steps * counts.passes
        moved = StepBytes(fetched_bytes=self._least_fetched_bytes * in_steps / steps)
        return self._least_counts(many, counts, reductions, bounds, moved, computed)

    def _least_counts(
        self,
        many: Launches,
        counts: TileCounts,
        reductions: ReductionLayout,
        loads: LoadBounds,
        moved: StepBytes,
        computed: Number = 1.0,
    ) -> LeastCounts:
        device, m, tile = self._problem.device, ARRAYS, many.tile
        threads = many.warps * device.warp_size
        least = Counts(
            *self._of_problem,
            *counts,
            *reductions,
            *moved,
            *Windows(hit_bytes=loads.hit_bytes, hit_lines=loads.hit_lines),
            warps=1.0 * many.warps,
            threads=1.0 * threads,
            stages=1.0 + (many.stages - 1) * tile.loops,
            prefetches=1.0 * many.prefetches,
            elements=m.maximum(tile.x * tile.r * computed / threads, 1.0),
            computed=computed,
            moved_bytes=self._moved,
            accesses=loads.accesses,
            lines=loads.lines,
            addresses=loads.addresses,
            index_instructions=0.0,
            written_bytes=loads.written_bytes,
            slice_bytes=0.0,
            loaded=loads.loaded,
            tail_elements=tile.kept / threads,
            row_words=0.0,
            register_limit=1.0 * limit_of_warps(device, many.warps, m),
            waiting_s=0.0,
        )
        return LeastCounts(least)


def _is_always_fetched(stream: Stream) -> bool:
    """Whether the tiles of all programs together have every element of a tensor, none masked."""
    terms = stream.stride_terms
    elements = prod(term.extent for term in terms if term.div == 1)
    whole = elements * stream.item_bytes >= stream.total_bytes
    return whole and stream.accessed == (1, 1) and all(term.div == 1 for term in terms)
