"""``LeastCounting``: lower bounds of the ``Counts`` of many kernels, without tile footprints."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....lazy import cached_property
from ...params import KernelParams
from ...streams import Stream
from ..counting import Counting
from ..counts import Counts, LeastCounts, Number, TileCounts
from ..numbers import ARRAYS
from ..reduction_layout import ReductionLayout
from ..registers import limit_of_warps
from ..tiles import Launches, is_flat_tile, launches_of
from ..traffic import StepBytes, Windows
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

    def least_of(self, params: Sequence[KernelParams], many: Launches | None = None) -> LeastCounts:
        """The lower bounds for kernels with these params.

        Parameters
        ----------
        many : Launches, optional
            ``launches_of`` the params, where they are known.
        """
        many = launches_of(self._problem, params) if many is None else many
        if not is_flat_tile(self._problem, params[0]):
            return self.least_of_row_kernels(many)
        warp = self._problem.device.warp_size
        loads = (self._flat_streams.loads(each, each.num_warps * warp) for each in params)
        found = (
            (each.accesses, each.lines, each.addresses, each.max_hit_lines, each.written_bytes)
            for each in loads
        )
        accesses, lines, addresses, hit, written = map(np.array, zip(*found, strict=True))
        bounds = LoadBounds(
            accesses,
            lines,
            self._flat_streams.loaded,
            addresses,
            hit_lines=hit,
            written_bytes=written,
        )
        counts = self._of_tile.of_many(many.tile)
        return self._least_counts(many, counts, ReductionLayout(), bounds, 1.0)

    def least_of_row_kernels(self, many: Launches) -> LeastCounts:
        """The lower bounds for kernels with rows, whose params need not be made."""
        counts = self._of_tile.of_many(many.tile)
        threads = many.warps * self._problem.device.warp_size
        bounds = self._least_loads.of(many, threads, counts.valid, ARRAYS)
        computed = self._of_tile.computed_share(many.tile, threads, bounds.vectors[0], ARRAYS)
        reductions = self._reductions.lower_bounds(
            many.tile, threads, bounds.vectors, computed, ARRAYS
        )
        return self._least_counts(many, counts, reductions, bounds, computed)

    def _least_counts(
        self,
        many: Launches,
        counts: TileCounts,
        reductions: ReductionLayout,
        loads: LoadBounds,
        computed: Number,
    ) -> LeastCounts:
        device, m, tile = self._problem.device, ARRAYS, many.tile
        threads = many.warps * device.warp_size
        # Where the ends of rows stay in registers, the steps cover a part of each row.
        positions = counts.programs * counts.steps * tile.x * tile.r
        in_steps = m.minimum(positions / max(self._of_tile.positions, 1), 1.0)
        steps = counts.programs * counts.steps * counts.passes
        moved = StepBytes(fetched_bytes=self._least_fetched_bytes * in_steps / steps)
        least = Counts(
            *self._of_problem,
            *counts,
            *reductions,
            *moved,
            *Windows(hit_lines=loads.hit_lines),
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
