"""A row's maximum and the sum of its exponentials in one loop over the row.

Each lane keeps the greatest number it has met and the sum of the exponentials over that; a greater
one rescales the sum (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
"""

from __future__ import annotations

from ....ir import Value
from ...access.reads import Read
from ...segments.member import Member
from .forms import whole_row
from .member_tile import AfterLoop, ReductionContext
from .thread_lanes import lanes_of_row


class OnlineSoftmax:
    """Writes a maximum and the sums of exponentials below it in one loop.

    Parameters
    ----------
    maximum : Member
        The reduction that is the maximum.
    """

    def __init__(self, context: ReductionContext, maximum: Member) -> None:
        self.context = context
        self.maximum = whole_row(context, maximum, context.nest.maps)
        self.lanes = lanes_of_row(context.segment, context.nest)
        writer, name = context.values.writer, self._top.name
        self.greatest = writer.fresh(f"{name}_acc")
        """The variable of the running maximum of each lane before a step."""
        self.seen = writer.fresh(f"{name}_seen")
        """The variable of the running maximum of each lane after the step."""

    @property
    def _top(self) -> Value:
        return self.maximum.out

    @property
    def _top_read(self) -> Read:
        return Read(self._top, self.maximum.at.index(self.maximum.member.index))

    def write(self, member: Member) -> AfterLoop:
        """Write the maximum, or a sum of exponentials; returns what writes the lines behind it."""
        return self._maximum() if member is self.maximum.member else self._sum(member)

    def _maximum(self) -> AfterLoop:
        """The greatest of each lane so far, bound as the maximum while the loop runs."""
        tile, lowest = self.maximum, self.maximum.identity("lowest")
        operand = tile.operand(lowest)
        tile.clear(self.greatest, lowest, operand.dims, self.lanes.width)
        found = f"lane_max({operand.text}, {self.lanes.arguments})"
        tile.writer.line(f"{self.seen} = maximum({self.greatest}, {found})", tile.loc)
        base = f"lane_base({self.seen}, {self.lanes.arguments})"
        running = tile.writer.define(tile.out, base, operand.dims, tile.dtype, None, "_base")
        tile.writer.bind(self._top_read, running)
        tile.writer.line_at_step_end(f"{self.greatest} = {self.seen}")

        def finish() -> None:
            text = tile.keep_dim(f"reduce_max({self.greatest}, {tile.dim})")
            rest = [peeled.operand(lowest) for peeled in tile.peeled_tiles()]
            for peeled in rest:
                other = tile.keep_dim(f"reduce_max({peeled.text}, {tile.dim})")
                text = f"maximum({text}, {other})"
            tile.bind(tile.out, tile.define(tile.out, text, tile.result_dims(operand, rest)))

        return finish

    def _sum(self, member: Member) -> AfterLoop:
        """A sum of exponentials, rescaled whenever a lane meets a greater number."""
        tile = whole_row(self.context, member, self.context.nest.maps)
        operand = tile.operand("0.0")
        acc = tile.accumulator(tile.out, "0.0", operand.dims, width=self.lanes.width)
        factor = f"rescale({self.greatest}, {self.seen})"
        added = f"{acc} * {factor} + lane_sum({operand.text}, {self.lanes.arguments})"
        tile.writer.line(f"{acc} = {added}", tile.loc)

        def finish() -> None:
            found = self.context.values.read(self._top_read)
            # A float of 8 bits is a byte under its own name.
            top = tile.writer.cast(found, self.maximum.dtype, self._top)
            # Nowhere but in a row of -inf alone is this nan, as the sum then is.
            text = tile.total(f"{acc} * exp_nonpositive({self.greatest} - {top.text})")
            rest = [peeled.operand("0.0") for peeled in tile.peeled_tiles()]
            for peeled in rest:
                text += f" + {tile.total(peeled.text)}"
            tile.bind(tile.out, tile.define(tile.out, text, tile.result_dims(operand, rest)))

        return finish
