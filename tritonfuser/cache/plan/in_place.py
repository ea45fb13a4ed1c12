"""Outputs that kernels store into the input that they replace, without a buffer of their own.

``add_output(p - lr * g, alias_input=p)`` needs no buffer and no copy after the kernels, where the
memory of ``p`` overlaps that of no other input. Each call checks that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import torch

from ...heuristics.params import MatmulParams
from ...ir import Fusion, Value
from ...lowering.access.aliases import BufferView, buffer_strides
from ...lowering.kernel_source import KernelSource
from ...lowering.lowered import Lowered
from ...lowering.segments.segment import Segment
from ...symbolic.queries import is_known_equal
from .memory_overlap import OverlapCheck, extent_bytes
from .varying import Varying

Memory = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides, in elements."""


def replaced_inputs(
    lowered: Lowered, writable: Collection[Value], on_gpu: bool
) -> dict[Value, Value]:
    """The outputs that may be stored into the input that they replace.

    No kernel after the one that stores the output reads the input. A run that raises must not have
    changed an input: all memory of the run is allocated before the first of these kernels.

    Parameters
    ----------
    lowered : Lowered
        The definition.
    writable : collection of Value
        Inputs whose memory kernels may write: aligned, on the device, no negative bit.
    on_gpu : bool
        Whether kernels run on a GPU. The interpreter may stop in the middle of a kernel where an
        index is out of range, and runs a cooperative kernel twice.

    Returns
    -------
    dict of Value to Value
        Output -> input.
    """
    wanted = _replacing_outputs(lowered, writable)
    found: dict[Value, Value] = {}
    read_later: set[Value] = set()
    kept = {view.root for view in lowered.segmented.results}
    segmented = lowered.segmented
    for segment, source in reversed(list(zip(segmented.segments, lowered.sources, strict=True))):
        if segment.launched_by:
            continue
        if source is None:  # torch runs it, and allocates
            break
        if not on_gpu and (source.index_ops or source.workspace is not None):
            break
        launched = (segment, *segmented.launched_with(segment))
        found.update(
            (result, into)
            for result, into in source.in_place
            if wanted.get(result) == into and into not in read_later
        )
        read_later.update(value for each in launched for value in each.inputs)
        made = {out for each in launched for out in each.outputs}
        if made - kept or _takes_memory(segment, source):
            break
    return found


def _takes_memory(segment: Segment, source: KernelSource) -> bool:
    """Whether a launch allocates memory besides results: tensor descriptors need some too."""
    is_product = isinstance(segment.params, MatmulParams)
    return is_product or source.workspace is not None or source.arrivals is not None


def _replacing_outputs(lowered: Lowered, writable: Collection[Value]) -> dict[Value, Value]:
    """Outputs with a buffer of their own, laid out like the input that they replace."""
    segmented = lowered.segmented
    pairs = list(zip(segmented.fusion.outputs, segmented.results, strict=True))
    used = Counter(view.root for _, view in pairs)
    used.update(out.alias_of for out, _ in pairs if out.alias_of is not None)
    of_inputs = (out.alias_of for out, view in pairs if view.root in segmented.fusion.given)
    if any(target is not None for target in of_inputs):
        return {}  # a view of an input that is written into another one is copied at the end
    return {
        view.root: out.alias_of
        for out, view in pairs
        if out.alias_of is not None and out.alias_of in writable
        if used[view.root] == used[out.alias_of] == 1 and view == BufferView(view.root)
        if _have_one_layout(lowered, view.root, out.alias_of)
    }


def _have_one_layout(lowered: Lowered, made: Value, given: Value) -> bool:
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


class InPlaceGuard:
    """Checks in each call that inputs which kernels may store into overlap no other input.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    tensors : sequence of Value
        The inputs on the device of the run.
    written : collection of Value
        The inputs among them that kernels may store into.
    """

    def __init__(
        self, fusion: Fusion, tensors: Sequence[Value], written: Collection[Value]
    ) -> None:
        self.tensors = tuple(tensors)
        self._memories = tuple((v.tensor.sizes, buffer_strides(fusion, v)) for v in tensors)
        self._dtypes = tuple(v.dtype.info.torch for v in tensors)
        self._written = tuple(place for place, v in enumerate(tensors) if v in written)

    def check(self, varying: Varying) -> OverlapCheck:
        """The check of the inputs' addresses. Plans call it by the name ``overlap``."""
        made: OverlapCheck = varying.make(
            "overlap", _overlap_check, self._memories, self._dtypes, self._written
        )
        return made

    def lines(self, start: Callable[[Value], str]) -> list[str]:
        """The lines that set the variable ``is_apart``.

        Parameters
        ----------
        start : callable
            The address of an input as an expression.
        """
        return [
            f"starts = ({', '.join(map(start, self.tensors))},)",
            "is_apart = overlap.disjoint == starts or not overlap(starts)",
        ]


def _overlap_check(
    memories: Sequence[Memory], dtypes: Sequence[torch.dtype], written: Sequence[int]
) -> OverlapCheck:
    pairs = zip(memories, dtypes, strict=True)
    return OverlapCheck([extent_bytes(*memory, dtype) for memory, dtype in pairs], written)
