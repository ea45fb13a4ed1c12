"""Casts of float32 to bfloat16 whose results a kernel goes on with in float32.

A store packs two bfloat16 numbers in one register, and one instruction converts both. The assembler
converts a number that is widened again by itself: an H200 starts 16 such conversions in a cycle and
multiprocessor, and 64 of those of two numbers. So these casts are written as functions that convert
two numbers at a time (``device_lib/bfloat16_functions.py``). float16 needs none: the assembler
packs its casts by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...dtypes import DataType
from ...ir import Node, Value
from ...ops.builder import op_of
from ...ops.table import View
from .packed_halves import Users, narrowed, packed_halves, widened


class RoundedCasts(NamedTuple):
    """The casts to bfloat16 that a kernel computes with two numbers at a time.

    Attributes
    ----------
    widened : mapping of Value to Node
        For the result of a cast to float32 the cast to bfloat16 before it: both are one rounding.
    narrow : frozenset of Value
        The results of other casts to bfloat16 that are widened: behind views, as concatenations, or
        for ops that LLVM computes in bfloat16.
    """

    widened: Mapping[Value, Node]
    narrow: frozenset[Value]


def rounded_casts(nodes: Sequence[Node]) -> RoundedCasts:
    """The casts of a kernel's nodes. LLVM computes some ops with casts in bfloat16 (see
    ``packed_halves``), and takes no conversions for these."""
    packed, users = packed_halves(nodes), Users(nodes)
    both, narrow = dict[Value, Node](), set[Value]()
    for node in nodes:
        if narrowed(node) is not DataType.BFloat16 or not node.out.is_tensor or node in packed:
            continue
        for user in users.direct(node.out):
            if widened(user) is None:
                if any(widened(last) is not None for last in _behind_views(user, users)):
                    narrow.add(node.out)
            elif packed.keys().isdisjoint((user, *users.of(user.out))):
                both[user.out] = node
            else:
                narrow.add(node.out)
    return RoundedCasts(both, frozenset(narrow))


def _behind_views(node: Node, users: Users) -> Iterator[Node]:
    """The users of a view, and of views of it; none for another node."""
    stack, seen = [node], {node}
    while stack:
        node = stack.pop()
        if not isinstance(op_of(node).form, View):
            continue
        for user in users.direct(node.out):
            if user not in seen:
                seen.add(user)
                stack.append(user)
                yield user
