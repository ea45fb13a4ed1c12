"""The memory order that a computed tensor takes from the tensor that it is computed from.

nvFuser's rule (``preseg_passes/allocation_order_inference.cpp``): the reference is the input with
the most dims that are no broadcast ones, and a result has its dims in the order in which the memory
of the reference has them. torch's elementwise ops do alike (``TensorIterator``).

Several inputs may have as many dims, and lie in other orders. A result then lies as most bytes of
an element of theirs do: its kernel reads the fewest bytes across the others.
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
from ...shapes.memory import strides_for_order
from ...symbolic.index_expr import Affine, Axis, Digit, digit
from ...symbolic.queries import is_known_equal, is_known_less
from ...symbolic.sizes import hint
from ...symbolic.substitution import substitute
from .read_footprint import Read, read_as, sources_of
from .traffic import offset_of

Order = tuple[int, ...]

LEAST_ELEMENTS = 1 << 18
"""Elements from which on a permuted view of what is row-major is reduced as its input lies. Below,
kernels take as long in either order, and share more with others in that of the dims: 7.9 us for 7.1
by the cost model, 256 x 64 of which another result is computed too."""


@dataclass(frozen=True)
class _Reference:
    """Inputs that lie alike, whose memory order a value may take.

    Attributes
    ----------
    tensor : TensorType
        The type of the first of them.
    index : Index
        Their element that an element of the value is computed from, as a function of the value's
        ``_marks``.
    inputs : frozenset of Value
        The inputs.
    """

    tensor: TensorType
    index: Index
    inputs: frozenset[Value]

    @cached_property
    def steps(self) -> dict[int, int]:
        """For each dim of the value that runs along the input, elements of memory for a step.

        The input is taken as dense in its declared order. A dim that merges dims of the input which
        are not neighbours in memory does not run along it.
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
        """What decides between references: dims in common, dims of the input."""
        return len(self.steps), sum(not dim.is_broadcast for dim in self.tensor.dims)

    @property
    def is_permuted(self) -> bool:
        """Whether the inputs are not row-major."""
        return _is_permuted(self.tensor)


def memory_orders(fusion: Fusion) -> dict[Value, Order]:
    """The memory orders of the computed tensors that are not row-major.

    Where all inputs are row-major, so are all results. A value takes the order of its reference
    where each of its dims of more than one element runs along a dim of the reference, and is
    row-major elsewhere. Dims of one element are outermost.

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
    """The memory orders of computed tensors whose references all lie in one order.

    What is small counts only where an input is not row-major: see ``LEAST_ELEMENTS``.
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
    """The references of inputs and computed tensors; none of what is computed of no input."""
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
    """The references of a result: those of its operands with the highest rank, one for each order
    that they give it."""
    found: dict[object, _Reference] = {}
    for read in _reads(node, _marks(out.tensor)):
        marks = {Axis(str(d), n): at for d, (n, at) in enumerate(_sized(read))}
        for given in references.get(read.value, ()):
            index = tuple(substitute(item, marks) for item in given.index)
            _merge(found, (index, given.tensor), replace(given, index=index))
    best = max((each.rank for each in found.values()), default=None)
    # A tensor that is read at many offsets, as by a stencil, has many indices and one order.
    of_orders: dict[object, _Reference] = {}
    for each in found.values():
        if each.rank == best:
            _merge(of_orders, (_order(each, out.tensor), each.is_permuted), each)
    return [*of_orders.values()]


def _merge(found: dict[object, _Reference], key: object, given: _Reference) -> None:
    """Add inputs to those that lie alike. The first ones say how."""
    known = found.get(key)
    found[key] = replace(known, inputs=known.inputs | given.inputs) if known else given


def _order_of_most(references: Sequence[_Reference], type_: TensorType) -> Order | None:
    """The order in which most bytes lie, of several the first; None if it is row-major."""
    lying: dict[Order | None, set[Value]] = {}
    for each in references:
        order = _order(each, type_)
        order = None if order == row_major(type_.rank) else order
        lying.setdefault(order, set()).update(each.inputs)
    return max(lying, key=lambda order: sum(value.dtype.info.bytes for value in lying[order]))


def _reads(node: Node, index: Index) -> Iterator[Read]:
    """The elements of tensors that an element of a result is made of."""
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
    """The element that is reduced, along axes that no result has."""
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
    """The places of a value's dims in memory; None where a dim does not run along the reference."""
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


def row_major(rank: int) -> Order:
    return tuple(reversed(range(rank)))
