"""Reduces concatenated tensors each by itself, where that is faster.

One kernel for all of them computes an element of each tensor at each position, and chooses one.
Reduced apart they may be several kernels, or join those that compute the tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.forms import Reduction
from ..fuse.segmentation import Choice
from ..passes.concatenations.reduced_pieces import ConcatenatedOperand, pieces_of
from ..passes.invariants.kept_orders import named
from ..passes.invariants.materialize import materializable
from ..passes.splits.parts import reduced_extents
from ..passes.unrolled_reductions import is_short
from .kernel_times import TimedKernels
from .timed_choices import TimedChoices


def with_pieces(
    fusion: Fusion, times: TimedChoices, choice: Choice, factors: Sequence[float] = (1.0,)
) -> Choice:
    """The choice with those reductions in pieces that make its kernels faster, one by one.

    Fewer instructions are enough of a gain: the model counts too few for masked loads, never too
    many. H200, 14 random definitions that it chooses pieces for take 0.87 of the time (geometric
    mean; 0.62 to 1.10).

    Parameters
    ----------
    factors : sequence of float
        Factors on the number of parts of split reductions to try: pieces are split in other ways.
    """
    if not times.known[choice].excesses:
        return choice
    for name, pieces in _possible(fusion):
        now = times.known[choice]
        if name in choice.pieces or not _is_slow(now, pieces):
            continue
        other = _in_pieces_too(times, choice, name)
        tried = [replace(other, parts_factor=each) for each in factors if times.may_try]
        fastest = min(tried, key=lambda each: times(each).seconds, default=choice)
        if times(fastest).seconds < now.seconds:
            choice = fastest
    return choice


def in_pieces(fusion: Fusion, times: TimedChoices, choice: Choice) -> Iterator[Choice]:
    """The choice with each of the reductions in pieces that can be."""
    for name, _ in _possible(fusion):
        yield _in_pieces_too(times, choice, name)


def _in_pieces_too(times: TimedChoices, choice: Choice, name: str) -> Choice:
    """The choice with one more reduction in pieces, which are split as it is where they reduce as
    many elements along each dim."""
    pieces = (*choice.pieces, name)
    whole, base = times.base(choice.pieces), times.base(pieces)
    possible = materializable(base, moved=True)
    kept = tuple(n for n in choice.materialized or () if named(n) in possible)
    by_dims = [split for split in choice.by_dims if split.value != name]
    for split in choice.by_dims:
        if split.value == name:
            extents = reduced_extents(whole.producers[_value(whole, name)])
            alike = (
                v for v in _results(base, name) if reduced_extents(base.producers[v]) == extents
            )
            by_dims += [split._replace(value=value.name) for value in alike]
    return replace(choice, pieces=pieces, materialized=kept, by_dims=tuple(by_dims))


def _value(fusion: Fusion, name: str) -> Value:
    """The computed value of a name."""
    return next(value for value in fusion.producers if value.name == name)


def _results(base: Fusion, name: str) -> list[Value]:
    """The results of the pieces that a reduction is done in."""
    stack, found = [_value(base, name)], list[Value]()
    while stack:
        value = stack.pop()
        node = base.producers[value]
        if isinstance(as_call(node).op.form, Reduction):
            found.append(value)
        else:  # a sum, a concatenation, a cast
            stack += [v for v in node.operands() if v.is_tensor]
    return found


def _possible(fusion: Fusion) -> Iterator[tuple[str, ConcatenatedOperand]]:
    """The names of the reductions that have pieces."""
    if not any(node.op == "cat" for node in fusion.nodes):
        return
    for node in fusion.nodes:
        pieces = pieces_of(fusion, node)
        if pieces is not None and not is_short(node):
            yield node.out.name, pieces


def _is_slow(now: TimedKernels, pieces: ConcatenatedOperand) -> bool:
    """Whether a kernel that computes one of the concatenations takes longer than its bytes need."""
    names = {value.name for value in pieces.concatenated}
    return any(names & each.values for each in now.excesses)
