"""Fusion in, an equal Fusion in which all use padded sums in the dtype that they are stored in out.

``total = add(cast(pad(x), Float), cast(pad(y), Float))`` of BFloat16 ``x`` and ``y`` that have no
position in common is exact in BFloat16: zero is added to one number. Where the sum is narrowed for
a result, what else uses it casts that result, and may load it.
"""

from __future__ import annotations

from ....dtypes import DataType
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder
from ....symbolic.queries import is_known_less
from ....symbolic.sizes import hint
from ..copy_elimination import eliminate_copies, is_lossless
from ..rewriting import is_copy, rewritten
from .padded_sums import PaddedSum, padded_sum_of


def narrow_padded_sums(fusion: Fusion) -> Fusion:
    """``cast(cast(total, BFloat16), Float)`` in the place of sums that are narrowed elsewhere."""
    wanted = _narrowed_sums(fusion)
    if not wanted:
        return fusion
    known: dict[Value, PaddedSum] = {}

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = padded_sum_of(node, known)
        if found is None:
            return None
        known[node.out] = found
        dtype = wanted.get(node.out)
        if dtype is None or not _is_exact(found, dtype):
            return None
        narrow = builder.call("cast", builder.call("add", *node.args), dtype)
        made: Value = builder.call("cast", narrow, node.out.dtype)
        return made

    found = rewritten(fusion, rewrite)
    return fusion if found is fusion else eliminate_copies(found)


def _narrowed_sums(fusion: Fusion) -> dict[Value, DataType]:
    """The sums that are cast to a narrower dtype, with that dtype, and that are used otherwise."""
    found: dict[Value, DataType] = {}
    for node in fusion.nodes:
        for value in node.operands() if is_copy(node) else ():
            maker = fusion.producers.get(value)
            is_sum = maker is not None and maker.op == "add"
            is_shared = len(fusion.consumers[value]) > 1 or value in fusion.returned
            if is_sum and is_shared and is_lossless(node.out.dtype, value.dtype):
                found[value] = node.out.dtype
    return found


def _is_exact(padded: PaddedSum, dtype: DataType) -> bool:
    """Whether each element of a sum is one of tensors that have the dtype, or zero."""
    pieces = sorted(padded.pieces, key=lambda piece: hint(piece.start))
    ends = [one.start + one.value.tensor.sizes[padded.dim] for one in pieces]
    starts = [piece.start for piece in pieces[1:]]
    apart = all(is_known_less(end - 1, start) for end, start in zip(ends[:-1], starts, strict=True))
    return apart and all(
        piece.value.dtype is dtype and all(is_lossless(dtype, wide) for wide in piece.dtypes)
        for piece in pieces
    )
