"""The memory orders of computed tensors, inferred from those of the inputs.

nvFuser's rule (``preseg_passes/allocation_order_inference.cpp``): the reference of a result is the
input with the most dims that are not broadcast, and the result has its dims in the memory order of
the reference. torch's elementwise ops do the same (``TensorIterator``).

Several inputs with equally many dims may have different memory orders. A result then takes the
order that has the most bytes for each element, so that its kernel has the fewest strided loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...ir import Fusion, Node, TensorType, Value
from ...ops.builder import as_call
from ...ops.forms import Materialize, Moments, Pointwise, Reduction, Scan
from ...ops.table import Call, Scatter, View
from ...shapes.index_map import Index
from ...shapes.memory import row_major, strides_for_order
from ...symbolic.index_expr import Affine, Axis, Digit, digit
from ...symbolic.queries import is_known_equal, is_known_less
from ...symbolic.sizes import hint
from ...symbolic.substitution import substitute
from .reads import Read, read_as, sources_of
from .traffic import offset_of

Order = tuple[int, ...]

LEAST_ELEMENTS = 1 << 18
"""Least elements of a result that takes the memory order of a row-major input through a permuted
view. Smaller kernels take as long in either order, and share more with others if they are
row-major: 7.1 us in place of 7.9 by the cost model, for 256 x 64 with a second result."""


@dataclass(frozen=True)
class _Reference:
    """Inputs that have the same memory order in terms of a value's dims, which the value may take.

    Attributes
    ----------
    tensor : TensorType
        The type of the first of them.
    index : Index
        Its element that an element of the value is computed from, as a function of the value's
        ``_marks``.
    inputs : frozenset of Value
        The inputs.
    """

    tensor: TensorType
    index: Index
    inputs: frozenset[Value]

    @cached_property
    def steps(self) -> dict[int, int]:
        """The stride in the input, in elements, of each dim of the value that runs along it.

        The input counts as dense in its declared order. A dim that merges dims of the input has no
        stride unless these are adjacent in memory.
        """
        strides = strides_for_order(self.tensor.sizes, declared_order(self.tensor))
        found: dict[str, list[tuple[Digit, int]]] = {}
        for term, step in offset_of(self.index, strides).terms:
            if isinstance(term.base, Axis):
                found.setdefault(term.base.name, []).append((term, step))
        return {
            int(name): hint(terms[0][1])
            for name, terms in found.items()
            if name.isdigit() and len(terms) == 1 and _is_whole(terms[0][0])
        }

    @property
    def rank(self) -> tuple[int, int]:
        """The rank of a reference: dims in common with the value, then dims of the input."""
        return len(self.steps), sum(not dim.is_broadcast for dim in self.tensor.dims)

    @property
    def is_permuted(self) -> bool:
        """Whether the inputs are not row-major."""
        return _is_permuted(self.tensor)


def memory_orders(fusion: Fusion) -> dict[Value, Order]:
    """The memory orders of the computed tensors that are not row-major.

    If all inputs are row-major, so are all results. A value takes the order of its reference if
    each of its dims of more than one element runs along a dim of the reference; otherwise it is
    row-major. Dims of one element are outermost.

    Returns
    -------
    dict of Value to tuple of int
        For each dim its position in memory, 0 the fastest, as ``stride_order`` has it.
    """
    if not any(_is_permuted(value.tensor) for value in fusion.inputs if value.is_tensor):
        return {}
    found: dict[Value, Order] = {}
    for value, possible in _all_references(fusion).items():
        order = None if value in fusion.given else _order_of_most(possible, value.tensor)
        if order is not None and any(each.is_permuted for each in possible):
            found[value] = order
    return found


def common_orders(fusion: Fusion) -> dict[Value, Order]:
    """The memory orders of computed tensors whose references all have one order.

    Small tensors count only if an input is not row-major: see ``LEAST_ELEMENTS``.
    """
    found: dict[Value, Order] = {}
    for value, possible in _all_references(fusion).items():
        orders = {_order(each, value.tensor) for each in possible}
        order = orders.pop() if len(orders) == 1 else None
        is_small = is_known_less(value.tensor.numel, LEAST_ELEMENTS)
        if order is not None and not (is_small and not any(e.is_permuted for e in possible)):
            found[value] = order
    return found


def _all_references(fusion: Fusion) -> dict[Value, list[_Reference]]:
    """The references of inputs and computed tensors; none for tensors that depend on no input."""
    found = {
        value: [_Reference(value.tensor, _marks(value.tensor), frozenset([value]))]
        for value in fusion.inputs
        if value.is_tensor
    }
    for node in fusion.nodes:
        for out in node.outs:
            possible = _references(node, out, found) if out.is_tensor else []
            if possible:
                found[out] = possible
    return found


def _references(
    node: Node, out: Value, references: Mapping[Value, Sequence[_Reference]]
) -> list[_Reference]:
    """The references of a result: those of its operands with the highest rank, one for each memory
    order."""
    found: dict[object, _Reference] = {}
    for read in _reads(node, _marks(out.tensor)):
        marks = {Axis(str(d), n): at for d, (n, at) in enumerate(_sized(read))}
        for given in references.get(read.value, ()):
            index = tuple(substitute(item, marks) for item in given.index)
            _merge(found, (index, given.tensor), replace(given, index=index))
    best = max((each.rank for each in found.values()), default=None)
    # A tensor that is read at several offsets, as by a stencil, has several indices and one order.
    of_orders: dict[object, _Reference] = {}
    for each in found.values():
        if each.rank == best:
            _merge(of_orders, (_order(each, out.tensor), each.is_permuted), each)
    return [*of_orders.values()]


def _merge(found: dict[object, _Reference], key: object, given: _Reference) -> None:
    """Add the inputs of a reference to the one with the same key."""
    known = found.get(key)
    found[key] = replace(known, inputs=known.inputs | given.inputs) if known else given


def _order_of_most(references: Sequence[_Reference], type_: TensorType) -> Order | None:
    """The order with the most bytes of inputs, the first of several; None if it is row-major."""
    lying: dict[Order | None, set[Value]] = {}
    for each in references:
        order = _order(each, type_)
        order = None if order == row_major(type_.rank) else order
        lying.setdefault(order, set()).update(each.inputs)
    return max(lying, key=lambda order: sum(value.dtype.info.bytes for value in lying[order]))


def _reads(node: Node, index: Index) -> Iterator[Read]:
    """The elements of tensors that an element of a result is computed from."""
    call = as_call(node)
    form = call.op.form
    if isinstance(form, Pointwise):
        yield from (read_as(v, Read(node.out, index)) for v in node.operands() if v.is_tensor)
    elif isinstance(form, View):
        for source in sources_of(node, Read(node.out, index)):
            if isinstance(source.operand, Value) and source.operand.is_tensor:
                yield Read(source.operand, source.index)
    elif isinstance(form, Reduction | Moments):
        yield _reduced(call, index)
    elif isinstance(form, Scan | Scatter | Materialize):
        yield Read(call.value("arg"), index)


def _reduced(call: Call, index: Index) -> Read:
    """The elements that are reduced: axes of their own stand for the reduced dims."""
    arg, kept = call.value("arg"), iter(index)
    sizes = enumerate(arg.tensor.sizes)
    dims = call.dims()
    at = (digit(Axis(f"r{d}", n)) if d in dims else next(kept) for d, n in sizes)
    return Read(arg, tuple(at))


def _sized(read: Read) -> Iterator[tuple[int, Affine]]:
    yield from zip(read.value.tensor.sizes, read.index, strict=True)


def _is_whole(digit: Digit) -> bool:
    """Whether consecutive positions of an axis have consecutive values, all along it."""
    assert isinstance(digit.base, Axis)
    return is_known_equal(digit.div, 1) and (
        digit.mod is None or is_known_equal(digit.mod, digit.base.extent)
    )


def _marks(type_: TensorType) -> Index:
    """An axis for each dim, named by its number."""
    return tuple(digit(Axis(str(d), n)) for d, n in enumerate(type_.sizes))


def _order(reference: _Reference, type_: TensorType) -> Order | None:
    """The positions of a value's dims in memory; None if a dim does not run along the reference."""
    steps = reference.steps
    single = [d for d, n in enumerate(type_.sizes) if is_known_equal(n, 1)]
    if len(steps) + len(single) != type_.rank:
        return None
    inside_out = [*sorted(steps, key=lambda d: (steps[d], -d)), *reversed(single)]
    if sorted(steps, reverse=True) == inside_out[: len(steps)]:
        return row_major(type_.rank)
    return tuple(inside_out.index(d) for d in range(type_.rank))


def declared_order(type_: TensorType) -> Order:
    """The memory order that an input is declared with."""
    declared = () if type_.layout is None else type_.layout.stride_order
    return declared or row_major(type_.rank)


def _is_permuted(type_: TensorType) -> bool:
    """Whether a tensor is not row-major, dims of one element aside."""
    order = declared_order(type_)
    places = [p for p, n in zip(order, type_.sizes, strict=True) if not is_known_equal(n, 1)]
    return places != sorted(places, reverse=True)
