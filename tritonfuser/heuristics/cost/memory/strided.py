"""Facts without axes in, the same facts with one axis of x and one of a row out.

The stride terms of each tensor are then its strides along the two. Lowering gives the axes of each
kernel; facts that somebody writes down may leave them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...problem import Problem
from ...streams import Stream, StrideTerm

X, R = 0, 1


def with_axes(problem: Problem) -> Problem:
    """The same facts; those of the problem itself where it has axes."""
    if problem.axes:
        return problem
    rows, row = max(problem.parallel, 1), max(problem.reduced, 1)
    has_rows = row > 1 or problem.reduction_depth > 0
    streams = tuple(replace(s, stride_terms=tuple(_terms(s, rows, row))) for s in problem.streams)
    axes = (rows, row) if has_rows else (rows,)
    return replace(problem, axes=axes, row_axes=int(has_rows), streams=streams)


def _terms(stream: Stream, rows: int, row: int) -> Iterator[StrideTerm]:
    length = row if stream.along_r else 1
    if stream.along_x:
        yield from _along_x(stream, rows, length)
    if length > 1:
        same = max(stream.r_same, 1)
        step = rows if stream.r_stride is None else stream.r_stride
        yield StrideTerm(R, same, max(length // same, 1), step or 1)


def _along_x(stream: Stream, rows: int, length: int) -> Iterator[StrideTerm]:
    run, same = stream.contiguous_run, max(stream.x_same, 1)
    if stream.x_stride != 1 or not 1 < run < rows:
        step = length if stream.x_stride is None else stream.x_stride
        yield StrideTerm(X, same, max(rows // same, 1), step or 1)
        return
    yield StrideTerm(X, 1, run, 1)
    runs = stream.total_bytes // max(run * stream.item_bytes * length, 1)
    if runs > 1:
        yield StrideTerm(X, run, min(runs, rows // run), run * length)
