"""A row's maximum and the sum of its exponentials in one walk over the row.

Each lane keeps the greatest number it has met and the sum of the exponentials over that; a greater
one rescales the sum (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...heuristics.params import OuterPersistentParams
from ..access.read_footprint import Read
from ..segments import Member
from .reduce_tile import Finish, identity_text, lane_shape, tails, work_dtype
from .writer import Line

if TYPE_CHECKING:
    from .kernel_body import KernelBody

LANE_BYTES = 16
"""What a thread loads at once."""

WARP = 32
"""Threads of a warp; where they are more, threads have to exchange what they could keep."""


@dataclass(frozen=True)
class Lanes:
    """How the numbers of a tile share maxima: ``width`` of a row that one thread has.

    Along memory they are neighbours, what the thread loads at once; ``apart``, in rows that lie
    across memory, as far from one another as all threads together reach.
    """

    width: int
    apart: bool

    @property
    def arguments(self) -> str:
        return f"{self.width}, {self.apart}"


def lanes_of_row(body: KernelBody) -> Lanes:
    """What a thread has of the rows of a kernel's tile."""
    sides = dict(body.nest.constants)
    rows, row = sides.get("XBLOCK", 1), sides["RBLOCK"]
    tensors = (v for v in body.segment.inputs if v.is_tensor and v.tensor.rank > 1)
    narrowest = min((v.dtype.info.bytes for v in tensors), default=4)
    loaded = LANE_BYTES // max(narrowest, 2)
    params = body.segment.params
    if isinstance(params, OuterPersistentParams):
        reached = max(WARP * params.num_warps * min(loaded, rows) // rows, 1)
        return Lanes(max(row // reached, 1), True)
    return Lanes(loaded if row % loaded == 0 else 1, False)


class Online:
    """The lines of a maximum and the sums that go along with it, in one loop."""

    def __init__(self, body: KernelBody, top: Member) -> None:
        self.body = body
        self.top = top
        self.lanes = lanes_of_row(body)
        out = top.node.out
        self.dtype = work_dtype(next(top.node.operands()))
        self.kept = body.writer.fresh(f"{out.name}_acc")
        self.seen = body.writer.fresh(f"{out.name}_seen")

    def write(self, member: Member) -> Finish:
        """The lines of the maximum, or of a sum that goes along; returns what ends the walk."""
        return self.maximum() if member.node.out == self.top.node.out else self.total(member)

    def maximum(self) -> Finish:
        """The greatest of each lane so far, bound as the maximum while the loop runs."""
        body, out = self.body, self.top.node.out
        value = next(self.top.node.operands())
        operand = body.reduced_operand(self.top, self.dtype, identity_text("lowest", value))
        loc = self.top.node.loc
        self._start(self.kept, identity_text("lowest", value), operand.dims)
        lines = body.writer.scopes[-1].lines
        found = f"lane_max({operand.text}, {self.lanes.arguments})"
        lines.append(Line(f"{self.seen} = maximum({self.kept}, {found})", loc))
        base = f"lane_base({self.seen}, {self.lanes.arguments})"
        running = body.define(out, base, operand.dims, self.dtype, None, "_base")
        body.bind(Read(out, body.place(self.top.index)), running)
        body.writer.scopes[-1].tail.append(Line(f"{self.kept} = {self.seen}"))

        def finish() -> None:
            axis = body.axis_number(self.top)
            text = body.keep_dim(self.top, f"reduce_max({self.kept}, {axis})")
            for tail in tails(body, self.top, self.dtype, identity_text("lowest", value)):
                rest = body.keep_dim(self.top, f"reduce_max({tail.text}, {axis})")
                text = f"maximum({text}, {rest})"
            dims = body.result_dims(self.top, operand)
            name = body.define(out, text, dims, self.dtype, loc)
            body.place_result(self.top, out, body.cast(name, out.dtype, out, loc))

        return finish

    def total(self, member: Member) -> Finish:
        """A sum of exponentials, rescaled whenever a lane meets a greater number."""
        body, out = self.body, member.node.out
        operand = body.reduced_operand(member, self.dtype, "0.0")
        acc = body.writer.fresh(f"{out.name}_acc")
        self._start(acc, "0.0", operand.dims)
        factor = f"rescale({self.kept}, {self.seen})"
        added = f"{acc} * {factor} + lane_sum({operand.text}, {self.lanes.arguments})"
        body.writer.scopes[-1].lines.append(Line(f"{acc} = {added}", member.node.loc))

        def finish() -> None:
            axis = body.axis_number(member)
            found = body.read(Read(self.top.node.out, body.place(self.top.index)))
            # A float of 8 bits is a byte under its own name.
            top = body.cast(found, self.dtype, self.top.node.out, None)
            # Nowhere but in a row of -inf alone is this nan, as the sum then is.
            joined = f"tl.sum({acc} * exp_below({self.kept} - {top.text}), {axis})"
            dims = body.result_dims(member, operand)
            text = body.keep_dim(member, joined)
            for tail in tails(body, member, self.dtype, "0.0"):
                text += " + " + body.keep_dim(member, f"tl.sum({tail.text}, {axis})")
            name = body.define(out, text, dims, self.dtype, member.node.loc)
            body.place_result(member, out, body.cast(name, out.dtype, out, member.node.loc))

        return finish

    def _start(self, name: str, identity: str, dims: frozenset[str]) -> None:
        """A tile of lanes before the loop."""
        shape = lane_shape(self.body, dims, self.lanes.width)
        text = f"tl.full({shape}, {identity}, tl.{self.dtype.info.triton})"
        self.body.writer.scopes[-2].lines.append(Line(f"{name} = {text}"))
