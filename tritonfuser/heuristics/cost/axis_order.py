"""The facts of a kernel with its axes in the order that its params give.

The order of axes decides how many sectors a tile touches of each tensor, which programs run soon
after one another, and so how many half used sectors are still in the L2 cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from ..params import HeuristicParams
from ..problem import Problem
from ..streams import Stream
from .memory.runs import contiguous_run

Numbers = tuple[int, ...]


def in_order(problem: Problem, params: HeuristicParams) -> Problem:
    """Facts with the axes in the order of the params, where these name one."""
    axes, across = getattr(params, "axes", ()), getattr(params, "across", ())
    if not problem.order or not (axes or across):
        return problem
    own = tuple(number for group in problem.order for number in group)
    rules = tuple(own[place] for place in problem.across) if hasattr(params, "across") else ()
    along_y = tuple(n for n in across if n in own) or tuple(n for n in rules if n not in axes)
    free = tuple(n for n in own if n not in along_y)
    along_x = (*(n for n in free if n not in axes), *(n for n in axes if n in free))
    if along_y == rules and along_x == free:
        return problem
    return _changed(problem, own if along_x == free else (*along_y, *along_x), along_y)


@lru_cache(maxsize=256)
def _changed(problem: Problem, order: Numbers, across: Numbers) -> Problem:
    """The problem with its axes of x in another order, and others along the second side."""
    own = tuple(number for group in problem.order for number in group)
    along_x, along_r = problem.places
    if len(along_x) != len(own):
        return problem
    places = [*(own.index(number) for number in order), *along_r]
    second = tuple(order.index(number) for number in across)
    made = replace(problem, order=(order,), axes=tuple(problem.axes[place] for place in places))
    return replace(
        made,
        streams=tuple(_moved(stream, places, made) for stream in problem.streams),
        results=tuple(_moved(stream, places, made) for stream in problem.results),
        across=second,
        crossing=prod(made.axes[place] for place in second),
    )


def _moved(stream: Stream, places: Sequence[int], made: Problem) -> Stream:
    """A tensor in the problem ``made``, whose axes had these places before."""
    along_x, _ = made.places
    terms = tuple([term._replace(axis=places.index(term.axis)) for term in stream.stride_terms])
    last = [term for term in terms if along_x and term.axis == along_x[-1]]
    step = last[0].step if len(last) == 1 and last[0].div == 1 else None
    run = contiguous_run(terms, made.axes, along_x)
    return replace(stream, stride_terms=terms, x_stride=step if last else 0, contiguous_run=run)
