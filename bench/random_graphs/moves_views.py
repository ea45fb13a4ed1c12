"""Steps that move elements: transposes, heads, halves, joins, pads, rows picked."""

from __future__ import annotations

from collections.abc import Callable

from .graph import Axis, D, Dims, Graph, Term, Unfit, has_dims

ROWS = 50_000
"""Rows of a table that rows are picked from."""

TABLE_ELEMENTS = 1 << 32
"""Elements of such a table at most: rows that take more memory together have fewer."""


def _replaced(dims: Dims, place: int, axes: tuple[Axis, ...]) -> Dims:
    return (*dims[:place], axes, *dims[place + 1 :])


def _add(graph: Graph, term: Term, handle: object, dims: Dims, size: float | None = None) -> None:
    graph.used.add(term)
    graph.terms.append(Term(handle, dims, term.size if size is None else size))


def permuted(graph: Graph) -> None:
    """Dims in another order: mostly two swapped."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    rank = len(term.dims)
    order = list(range(rank))
    if graph.chance(0.7):
        a, b = graph.rng.sample(order, 2)
        order[a], order[b] = order[b], order[a]
    else:
        graph.rng.shuffle(order)
    dims = tuple(term.dims[place] for place in order)
    _add(graph, term, graph.op("permute", term.handle, dims=order), dims)


def split(graph: Graph) -> None:
    """A dim of several axes becomes several: rows or heads."""
    term = graph.term(lambda t: any(len(dim) > 1 for dim in t.dims))
    graph.split(term)


def merged(graph: Graph) -> None:
    """Neighbouring dims become one: mostly the first two."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    place = 0 if graph.chance(0.7) else graph.rng.randrange(len(term.dims) - 1)
    joined = term.dims[place] + term.dims[place + 1]
    dims = (*term.dims[:place], joined, *term.dims[place + 2 :])
    _add(graph, term, graph.reshaped(term.handle, term.dims, dims), dims)


def _part(graph: Graph, term: Term, place: int, begin: int, end: int) -> object:
    begins, ends = [0] * len(term.dims), term.shape
    begins[place], ends[place] = begin, end
    return graph.op("slice", term.handle, begins, ends)


def rotated(graph: Graph) -> None:
    """Rotary embedding: halves swapped, one negated, times cos and sin of places and columns."""
    term = graph.term(lambda t: len(t.dims) >= 2 and len(t.dims[-1]) == 1)
    last, length = len(term.dims) - 1, term.shape[-1]
    x = graph.wide(term)
    wide = Term(x, term.dims, term.size)
    half = (length + 1) // 2
    left, right = _part(graph, wide, last, 0, half), _part(graph, wide, last, half, length)
    turned = graph.op("cat", [graph.op("neg", right), left], dim=last)
    axes = [*term.dims[-2], *term.dims[-1]]
    cos, sin = graph.weight(term, axes), graph.weight(term, axes)
    out = graph.op("add", graph.op("mul", x, cos), graph.op("mul", turned, sin))
    graph.add(out, term.dims, 2 * term.size)


def cut(graph: Graph) -> None:
    """A part of a term along a dim."""
    term = graph.term(lambda t: len(t.dims) > 0 and t.size > 0)
    place = graph.rng.randrange(len(term.dims)) if graph.chance(0.4) else len(term.dims) - 1
    length = term.shape[place]
    begin, end = graph.rng.choice(((0, length - length // 4), (length // 2, length)))
    part = Axis(f"part of {place}", end - begin)
    dims = _replaced(term.dims, place, (part,))
    _add(graph, term, _part(graph, term, place, begin, end), dims)


def chunks(graph: Graph) -> None:
    """Two or three equal parts of a new input's last dim, each used by itself: q, k, v; gates."""
    like = graph.term(has_dims)
    last, number = len(like.dims) - 1, graph.rng.choice((2, 2, 3))
    joined = _replaced(like.dims, last, (Axis("parts", number), *like.dims[last]))
    whole, length = graph.tensor(joined), like.shape[last]
    parts = [
        Term(_part(graph, whole, last, k * length, (k + 1) * length), like.dims)
        for k in range(number)
    ]
    if number == 2 and graph.chance(0.6):
        gate = graph.op(graph.rng.choice(("silu", "sigmoid")), graph.wide(parts[0]))
        graph.add(graph.op("mul", gate, graph.wide(parts[1])), like.dims)
    else:
        graph.terms.extend(parts)


def joined(graph: Graph) -> None:
    """Two or three terms of the same axes, or a term and new inputs, joined along a dim."""
    term = graph.term(has_dims)
    place = graph.rng.randrange(len(term.dims)) if graph.chance(0.4) else len(term.dims) - 1
    alike = [t for t in graph.terms if t is not term and t.dims == term.dims]
    graph.rng.shuffle(alike)
    others = alike[: graph.rng.choice((1, 2))] or [graph.tensor(term.dims)]
    parts = [graph.stored(graph.wide(t)) for t in (term, *others)]
    axes = (Axis("joined", len(parts)), *term.dims[place])
    size = max(t.size for t in (term, *others))
    _add(graph, term, graph.op("cat", parts, dim=place), _replaced(term.dims, place, axes), size)


def shifted(graph: Graph) -> None:
    """A term moved by one along a dim, zeros moving in, and mixed with itself."""
    term = graph.term(has_dims)
    place = graph.rng.randrange(len(term.dims))
    length, x = term.shape[place], graph.wide(term)
    kept = _part(graph, Term(x, term.dims), place, 0, max(length - 1, 1))
    widths = [0] * (2 * len(term.dims))
    widths[2 * (len(term.dims) - 1 - place)] = min(1, length - 1)
    moved = graph.op("pad", kept, widths)
    if graph.chance(0.3):
        graph.add(moved, term.dims, term.size)
    else:
        graph.add(graph.op("sub", x, graph.op("mul", moved, 0.5)), term.dims, 1.5 * term.size)


def padded(graph: Graph) -> None:
    """Zeros at one or both ends of a dim."""
    term = graph.term(has_dims)
    place = graph.rng.randrange(len(term.dims))
    before, after = graph.rng.choice(((0, 1), (1, 1), (0, 8), (2, 2)))
    widths = [0] * (2 * len(term.dims))
    back = 2 * (len(term.dims) - 1 - place)
    widths[back : back + 2] = before, after
    longer = Axis("padded", term.shape[place] + before + after)
    dims = _replaced(term.dims, place, (longer,))
    _add(graph, term, graph.op("pad", term.handle, widths), dims)


def slices_backward(graph: Graph) -> None:
    """The gradient of two overlapping parts: each padded to the whole, and added."""
    term = graph.term(has_dims)
    place = len(term.dims) - 1
    length = term.shape[place]
    quarter = length // 4
    whole = Axis("whole", length + quarter)
    widths = [0] * (2 * len(term.dims))
    other = graph.wide(graph.tensor(term.dims))
    first = graph.op("pad", graph.wide(term), [0, quarter, *widths[2:]])
    second = graph.op("pad", other, [quarter, 0, *widths[2:]])
    graph.add(graph.op("add", first, second), _replaced(term.dims, place, (whole,)), term.size + 1)


def embedded(graph: Graph) -> None:
    """Rows of a table, picked for each place and added to a term."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    count = min(ROWS, max(TABLE_ELEMENTS // max(term.shape[-1], 1), 1))
    table = graph.tensor(((Axis("rows of a table", count),), term.dims[-1]))
    rows = term.dims[:-1]
    at = graph.tensor(rows, D.Int)
    flat: Dims = (tuple(axis for dim in rows for axis in dim),)
    index = graph.reshaped(at.handle, rows, flat)
    picked = graph.op("index_select", table.handle, index, dim=0)
    found = Term(graph.reshaped(picked, (*flat, term.dims[-1]), term.dims), term.dims)
    graph.add(graph.op("add", graph.wide(term), graph.wide(found)), term.dims, term.size + 1)


def gathered(graph: Graph) -> None:
    """An element of each row, or rows of a term in another order."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    if graph.chance(0.5):
        place = graph.rng.randrange(len(term.dims) - 1)
        picked = Axis("picked", (term.shape[place] + 1) // 2)
        at = graph.tensor(((picked,),), D.Int)
        dims = _replaced(term.dims, place, (picked,))
        _add(graph, term, graph.op("index_select", term.handle, at.handle, dim=place), dims)
        return
    if graph.chance(0.5):
        raise Unfit
    picked = Axis("picked", 8)
    dims = _replaced(term.dims, len(term.dims) - 1, (picked,))
    at = graph.tensor(dims, D.Int)
    found = graph.op("take_along_axis", term.handle, at.handle, dim=len(term.dims) - 1)
    _add(graph, term, found, dims)


MOVES: dict[Callable[[Graph], None], float] = {
    permuted: 6,
    split: 3,
    merged: 2,
    rotated: 3,
    cut: 2,
    chunks: 4,
    joined: 3,
    shifted: 1.5,
    padded: 1,
    slices_backward: 1,
    embedded: 1.5,
    gathered: 1.5,
}
"""Each step, and how often it is taken beside the others."""
