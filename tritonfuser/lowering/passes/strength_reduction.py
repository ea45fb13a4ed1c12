"""Fusion in, an equal Fusion in cheaper ops out: what they give differs in last places at most."""

from __future__ import annotations

import math

from ...dtypes import Category, DataType
from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.table import Pointwise
from .random_masks import masks_of_words
from .rewriting import is_float, rewritten, with_number


def cheaper(fusion: Fusion) -> Fusion:
    """All rewrites of this kind, in order.

    ``1 + tanh(x)`` -> ``one_plus_tanh(x)``; ``x / 8`` -> ``x * 0.125``; ``uniform(0, 1) < 0.5``
    -> ``random_word() - 2147483520 < 64``; ``cast(exp(x), Half)`` -> ``cast(coarse_exp(x), Half)``.
    """
    for rewrite in (one_plus_tanh, power_of_two, masks_of_words, coarse):
        fusion = rewrite(fusion)
    return fusion


# --- 1 + tanh(x) ---------------------------------------------------------------------------------


def one_plus_tanh(fusion: Fusion) -> Fusion:
    """``1 + tanh(x)`` as one function, and ``tanh(x)`` as that less 1 where it is beside 1 anyway.

    In ``1 - tanh(x) ** 2`` the places are lost that tanh near 0 has more than 1 has.
    """
    found = {v: node.args[0] for v, node in fusion.producers.items() if _beside_one(fusion, node)}

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        made: Value | None = None
        if _adds_one(node) and (tanh := next(node.operands())) in found:
            made = builder.call("one_plus_tanh", found[tanh])
        elif node.outs and node.outs[0] in found:
            made = builder.call("sub", builder.call("one_plus_tanh", found[node.out]), 1.0)
        return made

    return rewritten(fusion, rewrite) if found else fusion


def _beside_one(fusion: Fusion, node: Node) -> bool:
    """Whether this is a tanh to which 1 is added, and which else is squared and taken from 1."""
    if node.op != "tanh" or not is_float(node) or node.out in fusion.returned:
        return False
    users = fusion.consumers.get(node.out, ())
    sums = [user for user in users if _adds_one(user)]
    return bool(sums) and all(user in sums or _from_one(fusion, user) for user in users)


def _adds_one(node: Node) -> bool:
    found = with_number(node, ("add",))
    return found is not None and found[1] == 1.0


def _from_one(fusion: Fusion, node: Node) -> bool:
    """Whether this is a square that is taken from 1 and used for nothing else."""
    by_two = with_number(node, ("pow",))
    square = node.op == "mul" and node.args[0] == node.args[1]
    if not square and (by_two is None or by_two[1:] != (2.0, False)):
        return False
    pairs = [with_number(user, ("sub",)) for user in fusion.consumers.get(node.out, ())]
    taken = all(pair is not None and pair[1:] == (1.0, True) for pair in pairs)
    return taken and node.out not in fusion.returned


# --- x / 8 ---------------------------------------------------------------------------------------


def power_of_two(fusion: Fusion) -> Fusion:
    """A division by a power of two is a product, rounded alike: a tenth of the instructions."""

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        pair = with_number(node, ("div", "truediv"))
        if pair is None or pair[2] or not is_float(node):
            return None
        mantissa, exponent = math.frexp(pair[1])
        if abs(mantissa) != 0.5 or not -100 < exponent < 100:
            return None
        made: Value = builder.call("mul", pair[0], 1.0 / pair[1])
        return made

    return rewritten(fusion, rewrite)


# --- exp and sigmoid of which 16 bits are wanted -------------------------------------------------

_COARSE = {
    "exp": "coarse_exp",
    "sigmoid": "coarse_sigmoid",
    "reciprocal": "coarse_reciprocal",
    "sqrt": "coarse_sqrt",
    "div": "coarse_div",
    "truediv": "coarse_div",
}
_HALVES = (DataType.Half, DataType.BFloat16)
_STEPS = frozenset({"ceil", "floor", "round", "trunc", "frac", "sign", "fmod", "mod", "remainder"})
"""Ops that make much of the last place of an operand, as comparisons and casts to integers do."""


def coarse(fusion: Fusion) -> Fusion:
    """Functions that only results of 16 bits depend on, to 2 ** -16 of themselves."""
    narrow = _narrowed(fusion)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        made: Value | None = None
        if node.out not in narrow or not is_float(node) or _alone(fusion, node):
            return made
        if node.op in _COARSE:
            made = builder.call(_COARSE[node.op], *node.args)
        elif _adds_one(node) and (erf := _lone_erf(fusion, next(node.operands()))) is not None:
            made = builder.call("one_plus_erf", erf.args[0])
        return made

    return rewritten(fusion, rewrite)


def _alone(fusion: Fusion, node: Node) -> bool:
    """Whether a fusion's function is nothing but this one: it then gives torch's very bits.

    One function takes less time than its operand, and its users compare with torch's.
    """
    makers = [fusion.producers.get(value) for value in node.operands()]
    users = fusion.consumers.get(node.out, ())
    return all(maker is None or _copies(maker) for maker in makers) and all(map(_copies, users))


def _copies(node: Node) -> bool:
    form = as_call(node).op.form
    return isinstance(form, Pointwise) and form.copies


def _lone_erf(fusion: Fusion, value: Value) -> Node | None:
    """The erf that makes a value, if 1 is added to it and no more."""
    node = fusion.producers.get(value)
    if node is None or node.op != "erf" or not is_float(node) or value in fusion.returned:
        return None
    return node if all(map(_adds_one, fusion.consumers[value])) else None


def _narrowed(fusion: Fusion) -> frozenset[Value]:
    """The values on which no output depends but such of 16-bit floats, and smoothly."""
    found: set[Value] = set()
    for node in reversed(fusion.nodes):
        for value in node.outs:
            users = fusion.consumers.get(value, ())
            half = value.dtype in _HALVES or value not in fusion.returned
            smooth = value.dtype.info.category is Category.FLOAT and not _STEPS & {
                u.op for u in users
            }
            if half and smooth and all(found.issuperset(user.outs) for user in users):
                found.add(value)
    return frozenset(found)
