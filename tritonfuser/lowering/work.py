"""The least work of a segment, or of a whole fusion: bytes, instructions, launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from ..heuristics.bounds import Instructions, RowsReadAgain, Work
from ..ir import Node, Value
from ..ops.builder import as_call
from ..ops.forms import Contraction, Moments, Reduction, Scan
from ..ops.mma import product_sizes
from ..ops.table import Library
from ..symbolic.index_expr import Axis
from ..symbolic.sizes import hint
from .access.bytes_moved import held_bytes
from .access.demand import demanded, held_elements
from .access.instructions import NONE, instructions_of
from .segments.segment import Segment
from .segments.segmented_fusion import SegmentedFusion
from .segments.store import Store


def segment_work(piece: Segment) -> Work:
    """The work of one segment, which reads what others have stored."""
    results: dict[Value, int] = {}
    for store in piece.stores:
        for value, count in _written(store):
            results[value] = results.get(value, 0) + count
    if not piece.stores:
        results = {v: held_elements(v) for v in piece.outputs if v.is_tensor}
    boxes = any(store.part is not None for store in piece.stores)
    found = _work(piece.nodes, results, boxes=boxes)
    return replace(
        found,
        read_bytes=float(hint(piece.bytes_read)),
        written_bytes=float(hint(piece.bytes_written)),
        launches=int(piece.has_launch),
    )


def _written(store: Store) -> Iterator[tuple[Value, int]]:
    """What has to be computed for a store, and how many elements of it."""
    source = store.value if store.source is None else store.source
    if isinstance(source, Value) and source.is_tensor:
        axes = frozenset[Axis]().union(*(item.axes() for item in store.index))
        box = prod(hint(axis.extent) for axis in axes)
        yield source, held_elements(source) if store.part is None else box


def fusion_work(segmented: SegmentedFusion) -> Work:
    """The work of a whole definition, if one kernel could do all of it.

    Results that are views of inputs cost nothing, nor do those without elements.
    """
    fusion = segmented.fusion
    stored = (view.root for view in segmented.results if view.root not in fusion.given)
    roots = {value: held_elements(value) for value in stored}
    needs = demanded(fusion.nodes, roots)
    read = [v for v in fusion.inputs if v.is_tensor and v in needs]
    return replace(
        _work(fusion.nodes, roots),
        read_bytes=float(sum(needs[v] * v.dtype.info.bytes for v in read)),
        written_bytes=float(sum(hint(held_bytes(fusion, v)) for v in roots)),
        launches=int(any(roots.values())),
    )


def _work(nodes: Sequence[Node], results: Mapping[Value, int], *, boxes: bool = False) -> Work:
    needs = demanded(nodes, results, boxes=boxes)
    total = NONE
    flops = 0.0
    for node in nodes:
        total += _node_instructions(node, needs)
        flops += _product_flops(node)
    again = tuple(_rows_again(nodes, [*results], needs))
    return Work(instructions=total, product_flops=flops, again=again)


def _node_instructions(node: Node, needs: dict[Value, float]) -> Instructions:
    counted = next(node.operands()) if _reduces(node) else node.out
    wanted = needs.get(counted, 0.0) if node.out in needs else 0.0
    return instructions_of(node) * wanted if wanted else NONE


def _product_flops(node: Node) -> float:
    """Of a matrix product, in a kernel or run by torch."""
    call = as_call(node)
    if isinstance(call.op.form, Contraction):
        batch, m, n, k = (hint(size) for size in product_sizes(call))
        return 2.0 * batch * m * n * k
    if isinstance(call.op.form, Library) and call.op.form.product is not None:
        left = next(node.operands()).tensor.sizes
        return 2.0 * hint(node.out.tensor.numel) * hint(left[-1])
    return 0.0


def _reduces(node: Node) -> bool:
    return isinstance(as_call(node).op.form, Moments | Reduction | Scan)


def _rows_again(
    nodes: Sequence[Node], results: Sequence[Value], needs: dict[Value, float]
) -> Iterator[RowsReadAgain]:
    """For each reduction what it reads that is read again for results that depend on it.

    A scan has the results of its first elements before it has read the last.
    """
    found = _Ancestry(nodes)
    for node in nodes:
        if not isinstance(as_call(node).op.form, Moments | Reduction):
            continue
        below = (found.inputs(v) for v in results if found.depends(v, node))
        shared = frozenset().union(*below) & found.all_inputs(next(node.operands()))
        if shared:
            rows = max(held_elements(node.out), 1)
            total = sum(needs.get(v, 0.0) * v.dtype.info.bytes for v in shared)
            yield RowsReadAgain(rows=rows, row_bytes=total / rows)


class _Ancestry:
    """Which reductions a value depends on, which inputs, and which without one in between."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._inputs: dict[Value, frozenset[Value]] = {}
        self._all: dict[Value, frozenset[Value]] = {}
        self._reductions: dict[Value, int] = {}
        self._bits: dict[Node, int] = {}
        for node in nodes:
            given = [v for v in node.operands() if v.is_tensor]
            above = 0
            for value in given:
                above |= self._reductions.get(value, 0)
            everything = frozenset[Value]().union(*(self.all_inputs(v) for v in given))
            direct = frozenset[Value]()
            if _reduces(node):
                self._bits[node] = 1 << len(self._bits)
                above |= self._bits[node]
            else:
                direct = direct.union(*(self.inputs(v) for v in given))
            for out in node.outs:
                self._inputs[out], self._all[out] = direct, everything
                self._reductions[out] = above

    def inputs(self, value: Value) -> frozenset[Value]:
        return self._inputs.get(value, frozenset({value}))

    def all_inputs(self, value: Value) -> frozenset[Value]:
        return self._all.get(value, frozenset({value}))

    def depends(self, value: Value, reduction: Node) -> bool:
        return bool(self._reductions.get(value, 0) & self._bits[reduction])
