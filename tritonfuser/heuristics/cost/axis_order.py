"""The facts of a kernel with its axes in the order that its params give, and merged where they are
one for all tensors.

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
from ..streams import Stream, StrideTerm
from .footprint import contiguous_run_along

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
    stride_terms = tuple(
        replace(term, axis=places.index(term.axis)) for term in stream.stride_terms
    )
    found, (along_x, _) = replace(stream, stride_terms=stride_terms), made.places
    last = [term for term in stride_terms if along_x and term.axis == along_x[-1]]
    step = last[0].step if len(last) == 1 and last[0].div == 1 else None
    run = contiguous_run_along(found, made.axes, along_x)
    return replace(found, x_stride=step if last else 0, contiguous_run=run)


def with_merged_axes(problem: Problem) -> Problem:
    """The facts with neighbouring axes of a side merged that all tensors run along as along one.

    A tile of such axes is contiguous where a tensor is, and begins where it would along one axis:
    rows of 4,456 elements behind one another are one long row, of which each run of 32 elements
    begins at a sector.
    """
    groups: list[list[int]] = []
    for place in range(len(problem.axes)):
        if groups and _are_one_axis(problem, groups[-1][-1], place):
            groups[-1].append(place)
        else:
            groups.append([place])
    if len(groups) == len(problem.axes):
        return problem
    axes = tuple(prod(problem.axes[place] for place in group) for group in groups)
    found = {group[0]: number for number, group in enumerate(groups)}
    return replace(
        problem,
        axes=axes,
        row_axes=sum(group[0] in problem.places[1] for group in groups),
        across=tuple(found[place] for place in problem.across if place in found),
        streams=tuple(_merged(stream, groups, axes) for stream in problem.streams),
        results=tuple(_merged(stream, groups, axes) for stream in problem.results),
    )


def _are_one_axis(problem: Problem, outer: int, inner: int) -> bool:
    tensors = (*problem.streams, *problem.results)
    is_one = (_is_one_axis(stream, problem.axes, outer, inner) for stream in tensors)
    return _are_neighbours(problem, outer, inner) and all(is_one)


def _are_neighbours(problem: Problem, outer: int, inner: int) -> bool:
    """Whether two axes lie beside one another along a side of tiles, whichever sides they have."""
    rows, across = problem.places[1], problem.across
    if (outer in rows) != (inner in rows) or (outer in across) != (inner in across):
        return False
    return outer not in across or across.index(inner) == across.index(outer) + 1


def _is_one_axis(stream: Stream, axes: Numbers, outer: int, inner: int) -> bool:
    """Whether the offset of a tensor is linear in the position along two axes as along one."""
    above, below = (
        [term for term in stream.stride_terms if term.axis == axis] for axis in (outer, inner)
    )
    if not above and not below:
        return True
    if len(above) != 1 or len(below) != 1:
        return False
    (first,), (last,) = above, below
    if first.is_indexed or last.is_indexed or not first.div == last.div == 1:
        return False
    is_whole = (first.extent, last.extent) == (axes[outer], axes[inner])
    return is_whole and first.step == last.extent * last.step


def _merged(stream: Stream, groups: Sequence[Sequence[int]], axes: Numbers) -> Stream:
    """A tensor by the merged axes, of which each has a group of places."""
    terms: list[StrideTerm] = []
    for number, group in enumerate(groups):
        found = [term for term in stream.stride_terms if term.axis == group[-1]]
        if len(group) > 1 and found:
            terms.append(StrideTerm(number, 1, axes[number], found[0].step))
        else:
            terms.extend(replace(term, axis=number) for term in found)
    return replace(stream, stride_terms=tuple(terms))
