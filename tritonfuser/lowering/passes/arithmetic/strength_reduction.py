"""Fusion in, an equal Fusion in cheaper ops out: algebra that changes last places at most."""

from __future__ import annotations

import math

from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder
from ..rewriting import adds_one, is_float, rewritten, with_number
from .clamp_gradients import join_clamp_gradients
from .clamps import join_clamps
from .random_masks import compare_random_words


def reduce_strength(fusion: Fusion) -> Fusion:
    """All rewrites of this kind, in order.

    ``1 + tanh(x)`` -> ``one_plus_tanh(x)``; ``1 / (1 + exp(-x))`` -> ``sigmoid(x)``; ``x / 8``
    -> ``x * 0.125``; ``uniform(0, 1) < 0.5`` -> ``random_word() - 2147483520 < 64``; clamps by
    masks -> ``maximum`` and ``minimum``.
    """
    algebra = join_one_plus_tanh, join_sigmoid, multiply_by_reciprocal, compare_random_words
    for rewrite in (*algebra, join_clamp_gradients, join_clamps):
        fusion = rewrite(fusion)
    return fusion


# --- 1 + tanh(x) ---------------------------------------------------------------------------------


def join_one_plus_tanh(fusion: Fusion) -> Fusion:
    """``1 + tanh(x)`` -> ``one_plus_tanh(x)``, and ``tanh(x)`` beside it -> that less 1.

    Cancellation in ``1 - tanh(x) ** 2`` makes the digits worthless that tanh near 0 has beyond
    those of a number near 1.
    """
    found = {v: n.args[0] for v, n in fusion.producers.items() if _is_used_beside_one(fusion, n)}

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        made: Value | None = None
        if adds_one(node) and (tanh := next(node.operands())) in found:
            made = builder.call("one_plus_tanh", found[tanh])
        elif node.outs and node.outs[0] in found:
            made = builder.call("sub", builder.call("one_plus_tanh", found[node.out]), 1.0)
        return made

    return rewritten(fusion, rewrite) if found else fusion


def _is_used_beside_one(fusion: Fusion, node: Node) -> bool:
    """Whether this is a tanh to which 1 is added, and whose only other use is ``1 - tanh ** 2``."""
    if node.op != "tanh" or not is_float(node) or node.out in fusion.returned:
        return False
    users = fusion.consumers.get(node.out, ())
    sums = [user for user in users if adds_one(user)]
    return bool(sums) and all(user in sums or _is_square_below_one(fusion, user) for user in users)


def _is_square_below_one(fusion: Fusion, node: Node) -> bool:
    """Whether this is a square whose only use is to be subtracted from 1."""
    by_two = with_number(node, ("pow",))
    square = node.op == "mul" and node.args[0] == node.args[1]
    if not square and (by_two is None or by_two[1:] != (2.0, False)):
        return False
    pairs = [with_number(user, ("sub",)) for user in fusion.consumers.get(node.out, ())]
    subtracted = all(pair is not None and pair[1:] == (1.0, True) for pair in pairs)
    return subtracted and node.out not in fusion.returned


# --- 1 / (1 + exp(-x)) ---------------------------------------------------------------------------


def join_sigmoid(fusion: Fusion) -> Fusion:
    """``1 / (1 + exp(-x))`` -> ``sigmoid(x)``, the same without a division rounded to the last bit.

    So tracers write sigmoids and swishes.
    """

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        total = _only_use(fusion, _inverted(node), node)
        if total is None or not adds_one(total) or not is_float(node):
            return None
        power = _only_use(fusion, next(v for v in total.operands() if v.is_tensor), total)
        if power is None or power.op != "exp" or not is_float(power):
            return None
        (exponent,) = power.operands()
        below = fusion.producers.get(exponent)
        negated = below is not None and below.op == "neg" and is_float(below)
        x = below.args[0] if below is not None and negated else builder.call("neg", exponent)
        made: Value = builder.call("sigmoid", x)
        return made

    return rewritten(fusion, rewrite)


def _inverted(node: Node) -> Value | None:
    """The value that a node computes the reciprocal of."""
    if node.op == "reciprocal":
        return next(node.operands(), None)
    found = with_number(node, ("div", "truediv"))
    return found[0] if found is not None and found[1:] == (1.0, True) else None


def _only_use(fusion: Fusion, value: Value | None, user: Node) -> Node | None:
    """The node that computes a value which nothing but ``user`` needs."""
    if value is None or value in fusion.returned or fusion.consumers[value] != (user,):
        return None
    return fusion.producers.get(value)


# --- x / 8 ---------------------------------------------------------------------------------------


def multiply_by_reciprocal(fusion: Fusion) -> Fusion:
    """``x / 8`` -> ``x * 0.125`` for powers of two: the same bits, a tenth of the instructions."""

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
