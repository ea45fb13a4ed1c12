"""``LeastCounting``: what many kernels count at least, whatever their tiles touch of memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....lazy import cached_property
from ...params import KernelParams
from ...streams import Stream
from ..counting import Counting
from ..counts import LeastCounts, Number, TileCounts
from ..numbers import ARRAYS
from ..registers import limit_of_warps
from ..spread import Spread
from ..tiles import Launches, launches_of
from .loads import LeastLoads, SureLoads


class LeastCounting(Counting):
    """``Counting`` that also has the least counts of many kernels at once: arrays."""

    @cached_property
    def _least_loads(self) -> LeastLoads:
        return LeastLoads(self._problem, self._streams.tensors)

    @cached_property
    def _sure_bytes(self) -> int:
        """Bytes that programs fetch together at least: of tensors whose elements their tiles have
        for certain."""
        streams = self._problem.streams
        return sum(s.fetched_bytes for s in streams if _is_whole(s))

    def least_of(self, params: Sequence[KernelParams], many: Launches | None = None) -> LeastCounts:
        """What kernels count at least, whatever their tiles touch of memory. ``many`` are their
        ``launches_of``, where they are known."""
        many = launches_of(self._problem, params) if many is None else many
        if not self._is_flat_tile(params[0]):
            return self.least_of_row_kernels(many)
        warp = self._problem.device.warp_size
        loads = (self._flat_streams.loads(each, each.num_warps * warp) for each in params)
        found = (
            (each.accesses, each.lines, each.addresses, each.most_hit, each.written_bytes)
            for each in loads
        )
        accesses, lines, addresses, hit, written = map(np.array, zip(*found, strict=True))
        sure = SureLoads(
            accesses,
            lines,
            self._flat_streams.loaded,
            addresses,
            hit_lines=hit,
            written_bytes=written,
        )
        return self._least_counts(many, self._tile_counts(many.tile, ARRAYS), Spread(), sure, 1.0)

    def least_of_row_kernels(self, many: Launches) -> LeastCounts:
        """The same of kernels with rows, whose params need not be made: see ``LeastLoads``."""
        counts = self._tile_counts(many.tile, ARRAYS)
        threads = many.warps * self._problem.device.warp_size
        sure = self._least_loads.of(many, threads, counts.valid, ARRAYS)
        computed = self.computed_share(many.tile, threads, sure.neighbours[0], ARRAYS)
        spread = self._spreading.at_least(many.tile, threads, sure.neighbours, computed, ARRAYS)
        return self._least_counts(many, counts, spread, sure, computed)

    def _least_counts(
        self,
        many: Launches,
        counts: TileCounts,
        spread: Spread,
        loads: SureLoads,
        computed: Number,
    ) -> LeastCounts:
        device, m, tile = self._problem.device, ARRAYS, many.tile
        threads = many.warps * device.warp_size
        # Of rows whose ends stay in registers the steps have a part.
        positions = counts.programs * counts.steps * tile.x * tile.r
        in_steps = m.minimum(positions / max(self._positions, 1), 1.0)
        steps = counts.programs * counts.steps * counts.passes
        return LeastCounts(
            *self._of_problem,
            *counts,
            *spread,
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
            hit_lines=loads.hit_lines,
            written_bytes=loads.written_bytes,
            loaded=loads.loaded,
            held=tile.kept / threads,
            register_limit=1.0 * limit_of_warps(device, many.warps, m),
            waiting_s=0.0,
            fetched_bytes=self._sure_bytes * in_steps / steps,
        )


def _is_whole(stream: Stream) -> bool:
    """Whether the tiles of all programs have each element of a tensor, none of them masked."""
    terms = stream.stride_terms
    elements = prod(term.extent for term in terms if term.div == 1)
    whole = elements * stream.item_bytes >= stream.total_bytes
    return whole and stream.accessed == (1, 1) and all(term.div == 1 for term in terms)
