"""``MaskWriter``: the masks of tiles and the guards of reads as variables, each written once."""

from __future__ import annotations

from collections.abc import Callable

from ....dtypes import DataType
from ....symbolic.index_expr import Affine
from ...access.reads import Guards
from ..lines import Line
from ..names import Name
from ..writer import Writer
from .guard_ranges import GuardRanges
from .kernel_axes import KernelAxes


class MaskWriter:
    """Writes under which conditions the positions of a tile are read and stored.

    Parameters
    ----------
    writer : Writer
        The text of the kernel.
    axes : KernelAxes
        The kernel axes. Those that are masked have variables, ``x_mask``, that are written already.
    text : function
        Returns the text of an index expression, as ``IndexWriter.text`` does.

    Attributes
    ----------
    ranges : GuardRanges
        What of guards is left to check in a tile.
    """

    def __init__(self, writer: Writer, axes: KernelAxes, text: Callable[[Affine], str]) -> None:
        self.writer = writer
        self.axes = axes
        self.ranges = GuardRanges(axes.tiles)
        self._text = text

    def name(self, dims: frozenset[str], guards: Guards = ()) -> str:
        """The variable of a mask: the masks of tiles and all guards. Empty where none is needed."""
        inside = self.inside(guards)
        masked = self.axes.masked(dims)  # an axis without a mask moves no mask into its loop
        masks = [f"{d}_mask" for d in sorted(masked)]
        if not inside:
            return self._named(masks, masked, "") if masks else ""
        return self._named([*masks, inside], masked | self.guard_dims(guards), "mask")

    def dims(self, dims: frozenset[str], guards: Guards = ()) -> frozenset[str]:
        """The axes along which the mask of ``name`` varies."""
        return self.axes.masked(dims) | self.guard_dims(guards)

    def inside(self, guards: Guards, given: Guards = ()) -> str:
        """The variable of a condition that all guards hold; empty where they always do.

        Parameters
        ----------
        given : tuple of Guard
            Guards that hold wherever the value is used: what they imply is not checked again.
        """
        found = self._conditions(guards, given)
        return self._named(found, self.guard_dims(guards, given), "inside") if found else ""

    def guard_dims(self, guards: Guards, given: Guards = ()) -> frozenset[str]:
        """The kernel axes that the conditions of guards depend on."""
        remaining = self.ranges.remaining(guards, given)
        return frozenset[str]().union(*(self.axes.dims(place) for place, _, _ in remaining))

    def _conditions(self, guards: Guards, given: Guards) -> list[str]:
        """The conditions of guards that may fail in a tile, each in parentheses."""
        texts: list[str] = []
        for place, low, high in self.ranges.remaining(guards, given):
            text = self._text(place)
            texts += [f"({text} >= {low})"] if low is not None else []
            texts += [f"({text} < {high})"] if high is not None else []
        return list(dict.fromkeys(texts))

    def _named(self, parts: list[str], dims: frozenset[str], series: str) -> str:
        """The variable of a conjunction, defined in the outermost scope where its parts are known.

        Parameters
        ----------
        parts : list of str
            Variables, or conditions in parentheses.
        dims : frozenset of str
            The axes along which it varies.
        series : str
            The prefix of its numbered name. Empty for a name that is made of its parts.
        """
        if len(parts) == 1 and parts[0].isidentifier():
            return parts[0]
        key = ("mask", *parts)
        found = self.writer.find(key)
        if found is None:
            axes = [part.removesuffix("_mask") for part in parts]
            writer = self.writer
            name = writer.numbered(series) if series else writer.fresh("_".join([*axes, "mask"]))
            text = parts[0][1:-1] if len(parts) == 1 else " & ".join(parts)
            writer.scope_for(dims).lines.append(Line(f"{name} = {text}"))
            found = Name(name, DataType.Bool, dims)
            writer.bind(key, found)
        return found.text
