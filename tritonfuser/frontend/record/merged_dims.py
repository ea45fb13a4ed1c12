"""Two loops as one: splitting it splits the one or the other."""

from __future__ import annotations

from typing import Any

from ...errors import DefinitionError
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line
from .device_mesh import MESH_TYPES
from .iter_domains import Extent, IterDomain, Split
from .statements import Expr


class Merge(Expr):
    """Two loops merged: ``(outer, inner) -> outer * inner``.

    Not made by hand: ``t.merge`` makes one.
    """

    __slots__ = ("_inner", "_made", "_outer")

    def __init__(self, outer: IterDomain, inner: IterDomain) -> None:
        super().__init__(outer.container)
        self._outer, self._inner = outer, inner
        self._made = MergedDomain(self)

    @property
    def op(self) -> str:
        """``Merge``."""
        return "Merge"

    def outer(self) -> IterDomain:
        """The loop that was the outer one."""
        return self._outer

    def inner(self) -> IterDomain:
        """The loop that was the inner one."""
        return self._inner

    def out(self) -> IterDomain:
        """The loop over both."""
        return self._made

    def inputs(self) -> list[Any]:
        """The two loops."""
        return [self._outer, self._inner]

    def outputs(self) -> list[Any]:
        """The loop over both, as a list."""
        return [self._made]

    def __repr__(self) -> str:
        return f"{self._outer}, {self._inner} -> merge -> {self._made}"


class MergedDomain(IterDomain):
    """The loop over two others."""

    __slots__ = ("_merge",)

    def __init__(self, merge: Merge) -> None:
        outer, inner = merge.outer(), merge.inner()
        kind = "r" if outer.is_reduction() else "i"
        super().__init__(merge.container, outer.dim, kind, _product(outer, inner))
        self._merge = merge

    def definition(self) -> Any:
        """The merge that made it."""
        return self._merge

    def pieces(self) -> list[IterDomain]:
        """What it is merged of, outermost first."""
        return [*self._merge.outer().pieces(), *self._merge.inner().pieces()]

    def split_in_two(self, factor: int, inner_split: bool) -> list[IterDomain]:
        """The outer and the inner loop, where the factor divides one of the merged two."""
        outer, inner = self._merge.outer(), self._merge.inner()
        near, far = (inner, outer) if inner_split else (outer, inner)
        if near.length.known is not None and near.length.known % factor == 0:
            ends = near.split_in_two(factor, inner_split)
            return (
                [_merged(outer, ends[0]), ends[1]]
                if inner_split
                else [ends[0], _merged(ends[1], inner)]
            )
        if near.length.known is not None and factor % near.length.known == 0:
            ends = far.split_in_two(factor // near.length.known, inner_split)
            return (
                [ends[0], _merged(ends[1], inner)]
                if inner_split
                else [_merged(outer, ends[0]), ends[1]]
            )
        raise DefinitionError(
            f"split: factor {factor} cuts through {outer} and {inner}, which are merged",
            loc=user_line(),
            hint="Split each of them before merging.",
        )

    def parallelize(self, parallel_type: ParallelType) -> None:
        """As for other loops; what is merged of two cannot be put on a mesh."""
        if parallel_type in MESH_TYPES:
            raise DefinitionError(
                f"parallelize: {self._merge.outer()} and {self._merge.inner()} are merged, and "
                f"both would be on {parallel_type.name}",
                loc=user_line(),
                hint="Split the outer one by the mesh's size and parallelize that part.",
            )
        super().parallelize(parallel_type)


def merged(outer: IterDomain, inner: IterDomain) -> IterDomain:
    """One loop over two; over both parts of a split it is what was split."""
    split = outer.definition()
    if isinstance(split, Split) and split.outputs() == [outer, inner]:
        return split.undone()
    return Merge(outer, inner).out()


def _merged(outer: IterDomain, inner: IterDomain) -> IterDomain:
    if outer.length.known == 1:
        return inner
    return outer if inner.length.known == 1 else Merge(outer, inner).out()


def _product(outer: IterDomain, inner: IterDomain) -> Extent:
    one, two = outer.length, inner.length
    if one.known is not None and two.known is not None:
        return Extent.of(outer.container, one.known * two.known)
    text = f"( {one.text} * {two.text} )"
    return Extent(text, None, lambda: outer.container.call("mul", one.value(), two.value()))
