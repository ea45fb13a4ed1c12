"""Which part of each value results need, as a box: a range of positions along each dim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from ....ir import Fusion, Node, Value
from ....ops.builder import as_call
from ....ops.forms import Moments, Pointwise, Reduction
from ....ops.table import View
from ....symbolic.index_expr import Affine, Axis, digit
from ....symbolic.sizes import is_size
from ...access.reads import Read, sources_of

Box = tuple[tuple[int, int], ...]
"""Of each dim the first position, and the one behind the last."""


def always(node: Node) -> bool:
    """``counts`` of all reductions."""
    return True


def needed_boxes(
    fusion: Fusion, results: Mapping[Value, Box], counts: Callable[[Node], bool] = always
) -> dict[Value, Box]:
    """The box of each tensor that results need. Values that none of them needs have no entry.

    Parameters
    ----------
    fusion : Fusion
        Of tensors whose sizes are known.
    results : mapping of Value to Box
        What is needed of some values.
    counts : callable
        Whether a reduction's need of its operand counts; by default that of all does.
    """
    found = dict(results)
    for node in reversed(fusion.nodes):
        boxes = [found[out] for out in node.outs if out in found]
        if not boxes or (is_reduction(node) and not counts(node)):
            continue
        sizes = {out.tensor.sizes for out in node.outs if out in found}
        for value, box in operand_boxes(node, union(boxes)) if len(sizes) == 1 else _all_of(node):
            found[value] = union([box, *filter(None, [found.get(value)])])
    return found


def is_reduction(node: Node) -> bool:
    """Whether a node reduces dims of one tensor."""
    return isinstance(as_call(node).op.form, Reduction | Moments)


def whole(value: Value) -> Box:
    """All of a tensor."""
    return tuple((0, size) for size in value.tensor.sizes)


def has_open_sizes(fusion: Fusion) -> bool:
    """Whether some size of a tensor varies."""
    values = (*fusion.inputs, *(out for node in fusion.nodes for out in node.outs))
    return any(is_size(size) for v in values if v.is_tensor for size in v.tensor.sizes)


def of_operand(node: Node, box: Box) -> Box:
    """The box of a reduction's operand for one of its result."""
    call, kept = as_call(node), iter(box)
    reduced, sizes = call.dims(), call.value("arg").tensor.sizes
    return tuple((0, size) if dim in reduced else next(kept) for dim, size in enumerate(sizes))


def volume(box: Box) -> int:
    """The number of positions of a box."""
    return prod(stop - start for start, stop in box)


def operand_boxes(node: Node, box: Box) -> Iterator[tuple[Value, Box]]:
    """The tensors that a node reads for a box of its results, with the box of each."""
    form = as_call(node).op.form
    operands = dict.fromkeys(v for v in node.operands() if v.is_tensor)
    if isinstance(form, View) and not form.indices:
        yield from _of_view(node, box)
        return
    for value in operands:
        if is_reduction(node) and value == as_call(node).value("arg"):
            yield value, of_operand(node, box)
        elif isinstance(form, Pointwise) and value.tensor.rank == len(box):
            yield value, _broadcast(value, node.outs[0], box)
        else:
            yield value, whole(value)


def _broadcast(operand: Value, result: Value, box: Box) -> Box:
    """The box of an elementwise op's operand: of a dim of size 1, which is broadcast, all of it."""
    sizes = zip(operand.tensor.sizes, result.tensor.sizes, box, strict=True)
    return tuple(part if own == size else (0, own) for own, size, part in sizes)


def _all_of(node: Node) -> Iterator[tuple[Value, Box]]:
    """All tensors that a node reads, each as a whole."""
    return ((value, whole(value)) for value in node.operands() if value.is_tensor)


def _of_view(node: Node, box: Box) -> Iterator[tuple[Value, Box]]:
    index = tuple(
        digit(Axis(f"d{dim}", stop - start)) + start for dim, (start, stop) in enumerate(box)
    )
    for source in sources_of(node, Read(node.out, index)):
        if isinstance(source.operand, Value):
            pairs = zip(source.index, source.operand.tensor.sizes, strict=True)
            yield source.operand, tuple(_range(item, size) for item, size in pairs)


def _range(item: Affine, size: int) -> tuple[int, int]:
    bounds = item.range
    return (0, size) if bounds is None else (max(bounds[0], 0), min(bounds[1] + 1, size))


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box around boxes."""
    pairs = zip(*boxes, strict=True)
    return tuple((min(a for a, _ in dim), max(b for _, b in dim)) for dim in pairs)
