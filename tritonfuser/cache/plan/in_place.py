"""Outputs that replace an input without a buffer of their own: kernels store into the input.

``add_output(p - lr * g, alias_input=p)`` takes no memory, and no copy behind the kernels, where the
memory of ``p`` is apart from that of all other inputs. That is asked in each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import torch

from ...heuristics.params import MatmulParams
from ...ir import Fusion, Value
from ...lowering.access.aliases import BufferView, buffer_strides
from ...lowering.kernel_source import KernelSource
from ...lowering.pipeline import Lowered
from ...lowering.segments import Segment
from ...symbolic.queries import is_known_equal
from .memory_overlap import OverlapCheck, extent_bytes
from .varying import Varying

Memory = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides, in elements."""


def replaced_inputs(
    lowered: Lowered, writable: Collection[Value], on_gpu: bool
) -> dict[Value, Value]:
    """The buffers that may be the memory of an input which an output replaces: buffer -> input.

    No kernel after the one that stores the output reads the input. A run that raises has not
    changed an input: none of these kernels needs memory but for results, which a run takes before.

    Parameters
    ----------
    writable : collection of Value
        Inputs whose memory kernels may write as it lies.
    on_gpu : bool
        Whether kernels run there. The interpreter leaves a kernel in the middle where an index is
        out of range, and runs one whose programs wait for one another twice.
    """
    wanted = _wanted(lowered, writable)
    found: dict[Value, Value] = {}
    read_later: set[Value] = set()
    kept = {lies.root for lies in lowered.segmented.results}
    segmented = lowered.segmented
    for piece, source in reversed(list(zip(segmented.segments, lowered.sources, strict=True))):
        if piece.launched_by:
            continue
        if source is None:  # torch, which takes memory
            break
        if not on_gpu and (source.index_ops or source.workspace is not None):
            break
        launched = (piece, *segmented.launched_with(piece))
        found.update(
            (result, into)
            for result, into in source.in_place
            if wanted.get(result) == into and into not in read_later
        )
        read_later.update(value for each in launched for value in each.inputs)
        made = {out for each in launched for out in each.outputs}
        if made - kept or _takes_memory(piece, source):
            break
    return found


def _takes_memory(piece: Segment, source: KernelSource) -> bool:
    """Whether a launch needs memory besides results: tensor descriptors of products do too."""
    is_product = isinstance(piece.params, MatmulParams)
    return is_product or source.workspace is not None or source.arrivals is not None


def _wanted(lowered: Lowered, writable: Collection[Value]) -> dict[Value, Value]:
    """Outputs that are a whole buffer, to themselves, laid out like the input they replace."""
    segmented = lowered.segmented
    pairs = list(zip(segmented.fusion.outputs, segmented.results, strict=True))
    used = Counter(lies.root for _, lies in pairs)
    used.update(out.alias_of for out, _ in pairs if out.alias_of is not None)
    views = (out.alias_of for out, lies in pairs if lies.root in segmented.fusion.given)
    if any(into is not None for into in views):
        return {}  # what is a view of an input may have to be copied, at the end
    return {
        lies.root: out.alias_of
        for out, lies in pairs
        if out.alias_of is not None and out.alias_of in writable
        if used[lies.root] == used[out.alias_of] == 1 and lies == BufferView(lies.root)
        if _are_alike(lowered, lies.root, out.alias_of)
    }


def _are_alike(lowered: Lowered, made: Value, given: Value) -> bool:
    segmented = lowered.segmented
    if made.dtype is not given.dtype or made not in segmented.layouts:
        return False
    own, other = segmented.layouts[made], buffer_strides(segmented.fusion, given)
    sizes, others = made.tensor.sizes, given.tensor.sizes
    return len(sizes) == len(others) and all(
        is_known_equal(size, other_size)
        and (is_known_equal(step, other_step) or is_known_equal(size, 1))
        for size, other_size, step, other_step in zip(sizes, others, own, other, strict=True)
    )


class Apart:
    """Asks in each call whether inputs that kernels may store into overlap no other input.

    Parameters
    ----------
    fusion : Fusion
        Whose inputs they are.
    tensors : sequence of Value
        The inputs on the device.
    written : collection of Value
        Those that may be stored into.
    """

    def __init__(
        self, fusion: Fusion, tensors: Sequence[Value], written: Collection[Value]
    ) -> None:
        self.tensors = tuple(tensors)
        self._memories = tuple((v.tensor.sizes, buffer_strides(fusion, v)) for v in tensors)
        self._dtypes = tuple(v.dtype.info.torch for v in tensors)
        self._written = tuple(place for place, v in enumerate(tensors) if v in written)

    def check(self, varying: Varying) -> OverlapCheck:
        """The check of their addresses, under the name ``overlap``."""
        made: OverlapCheck = varying.make(
            "overlap", _overlap_check, self._memories, self._dtypes, self._written
        )
        return made

    def lines(self, start: Callable[[Value], str]) -> list[str]:
        """The lines that set ``is_apart``; ``start`` is an address as an expression."""
        return [
            f"starts = ({', '.join(map(start, self.tensors))},)",
            "is_apart = overlap.disjoint == starts or not overlap(starts)",
        ]


def _overlap_check(
    memories: Sequence[Memory], dtypes: Sequence[torch.dtype], written: Sequence[int]
) -> OverlapCheck:
    pairs = zip(memories, dtypes, strict=True)
    return OverlapCheck([extent_bytes(*memory, dtype) for memory, dtype in pairs], written)
