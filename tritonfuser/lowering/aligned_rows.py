"""Traffic in, where rows begin out: whether their tiles can begin at vectors, where rows do not."""

from __future__ import annotations

from collections.abc import Iterable

from ..affine import Affine, Axis, without
from ..sizes import is_size
from .grouping import extent
from .traffic import Traffic
from .vectors import VECTOR


def row_start(
    traffic: Iterable[Traffic], parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]
) -> Affine | None:
    """Where in a vector rows begin, in elements from where one does; the same for all tensors.

    None where not all tensors that run along the rows say the same, or sizes vary.
    """
    whole = _whole(traffic, parallel, reduced)
    if len(reduced) != 1 or is_size(extent(parallel)) or is_size(extent(reduced)):
        return None
    starts = {without(item.offset, reduced[0]) for item in whole}
    found = {start and start.split(_vector(whole))[1] for start in starts}
    start = found.pop() if len(found) == 1 else None
    return None if start is None or start.axes() - set(parallel) else start


def vector_of_rows(
    traffic: Iterable[Traffic],
    parallel: tuple[Axis, ...],
    reduced: tuple[Axis, ...],
    chunked: tuple[Axis, ...],
) -> int:
    """Elements of a vector where rows begin inside of one and tiles could begin at one, else 1.

    The rows that a program walks over must begin alike: those along all axes but ``chunked``.
    """
    whole = _whole(traffic, parallel, reduced)
    start = row_start(whole, parallel, reduced)
    if start is None or start == Affine() or (chunked and not start.axes() <= set(chunked)):
        return 1
    return _vector(whole)


def _whole(
    traffic: Iterable[Traffic], parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]
) -> list[Traffic]:
    """What runs along rows and over them."""
    return [t for t in traffic if t.runs_along(parallel) and t.runs_along(reduced)]


def _vector(whole: Iterable[Traffic]) -> int:
    """Elements of a vector of the narrowest tensor: of others they are several vectors."""
    return VECTOR // min(item.item_bytes for item in whole)


def unalignable(
    start: Affine | None,
    walked: Iterable[Axis],
    row: int,
    block: int,
    tails: tuple[int, ...],
    vector: int,
) -> str | None:
    """None, or why tiles of a row cannot begin at vectors."""
    if start is None:
        return "its tensors do not all have such rows, or its sizes vary"
    if start.split(vector)[1].axes() & set(walked):
        return "the rows of a program begin at different places of a vector"
    held, edges = block + sum(tails[:-1]), tails[-1] if tails else 0
    if held < row // vector * vector or edges < 2 * vector:
        return (
            f"block_r={block} and tails={tails} hold {held} elements in whole vectors and {edges} "
            f"beside them, of {row // vector * vector} and {2 * vector}"
        )
    return None
