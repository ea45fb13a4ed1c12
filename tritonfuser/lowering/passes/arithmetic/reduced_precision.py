"""Fusion in, the same Fusion with fast approximations where only 16-bit results need a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....dtypes import Category, DataType
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, op_of
from ....ops.forms import Moments, Reduction
from ..rewriting import adds_one, is_copy, is_float, rewritten, with_number

_APPROXIMATIONS = {
    "exp": "coarse_exp",
    "sigmoid": "coarse_sigmoid",
    "reciprocal": "coarse_reciprocal",
    "sqrt": "coarse_sqrt",
    "div": "coarse_div",
    "truediv": "coarse_div",
}
"""Functions, and those that compute them with a relative error of 2 ** -16."""

_HALVES = (DataType.Half, DataType.BFloat16)
_DISCONTINUOUS = frozenset(
    {"ceil", "floor", "round", "trunc", "frac", "sign", "fmod", "mod", "remainder"}
)
"""Ops in which a small error of an operand can become a large one of the result."""


def reduce_precision(fusion: Fusion) -> Fusion:
    """Functions that only 16-bit results depend on, as approximations.

    ``cast(exp(x), Half)`` -> ``cast(coarse_exp(x), Half)``; ``1 + erf(x)`` -> ``one_plus_erf(x)``;
    ``0.5 + 0.5 * erf(x)`` -> ``0.5 * one_plus_erf(x)``.
    """
    rounded = rounded_to_half(fusion)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        made: Value | None = None
        if node.out not in rounded or not is_float(node) or _is_only_op(fusion, node):
            return made
        if node.op in _APPROXIMATIONS:
            made = builder.call(_APPROXIMATIONS[node.op], *node.args)
        elif adds_one(node) and (erf := _erf_in_sums(fusion, next(node.operands()))) is not None:
            made = builder.call("one_plus_erf", erf.args[0])
        elif (found := _scaled_erf(fusion, node)) is not None:
            made = builder.call("mul", builder.call("one_plus_erf", found[0].args[0]), found[1])
        return made

    return rewritten(fusion, rewrite)


def _is_only_op(fusion: Fusion, node: Node) -> bool:
    """Whether a fusion computes nothing but this function, copies and casts aside.

    Then the result stays torch's to the bit: such a kernel waits for memory anyway, and users
    compare single functions with torch's.
    """
    makers = [fusion.producers.get(value) for value in node.operands()]
    users = fusion.consumers.get(node.out, ())
    return all(maker is None or is_copy(maker) for maker in makers) and all(map(is_copy, users))


def _erf_in_sums(fusion: Fusion, value: Value) -> Node | None:
    """The erf that computes a value whose only uses add 1 to it."""
    node = fusion.producers.get(value)
    if node is None or node.op != "erf" or not is_float(node) or value in fusion.returned:
        return None
    return node if all(map(adds_one, fusion.consumers[value])) else None


def _scaled_erf(fusion: Fusion, node: Node) -> tuple[Node, float] | None:
    """The erf and the number in ``number + number * erf(x)``, if nothing else needs that erf."""
    total = with_number(node, ("add",))
    scaled = None if total is None else fusion.producers.get(total[0])
    if total is None or scaled is None or not _has_one_use(fusion, total[0]):
        return None
    part = with_number(scaled, ("mul",))
    if part is None or part[1] != total[1] or not is_float(scaled):
        return None
    erf = fusion.producers.get(part[0])
    alone = erf is not None and erf.op == "erf" and is_float(erf) and _has_one_use(fusion, part[0])
    return (erf, total[1]) if erf is not None and alone else None


def _has_one_use(fusion: Fusion, value: Value) -> bool:
    return value not in fusion.returned and len(fusion.consumers[value]) == 1


def rounded_to_half(fusion: Fusion) -> frozenset[Value]:
    """The values that outputs depend on only through a 16-bit float, and continuously.

    A reduction of rounded values may be returned in any dtype, as the mean of a norm is.
    """
    continuous: set[Value] = set()
    reduced: set[Value] = set()  # what shows in 16-bit outputs, or in results of reductions
    found: set[Value] = set()
    for node in reversed(fusion.nodes):
        for value in node.outs:
            users = fusion.consumers.get(value, ())
            is_half, is_returned = value.dtype in _HALVES, value in fusion.returned
            if (users or is_returned) and not _is_continuous(value, users):
                continue
            if not _are_all_in(continuous, users):
                continue
            continuous.add(value)
            if is_half or not is_returned:
                if _are_all_in(reduced, (user for user in users if not _reduces(user))):
                    reduced.add(value)
                if value in reduced if is_half else _are_all_in(found, users):
                    found.add(value)
    return frozenset(found)


def _reduces(node: Node) -> bool:
    return isinstance(op_of(node).form, Reduction | Moments)


def _is_continuous(value: Value, users: Sequence[Node]) -> bool:
    """Whether a small error of a value makes small ones where it is used."""
    is_float = value.dtype.info.category is Category.FLOAT
    return is_float and not (_DISCONTINUOUS & {user.op for user in users})


def _are_all_in(values: set[Value], nodes: Iterable[Node]) -> bool:
    """Whether all results of these nodes are among the values."""
    return all(values.issuperset(node.outs) for node in nodes)
