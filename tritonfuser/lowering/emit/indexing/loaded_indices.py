"""Indices that are read at run time as text: clamped, wrapped or asserted to be in their dims."""

from __future__ import annotations

from dataclasses import replace

from ....dtypes import DataType
from ....errors import SourceLoc
from ....shapes.memory import INT32_LIMIT
from ....symbolic.loaded_index import Indexed, LoadedIndex, Outside
from ....symbolic.queries import is_known_less
from ....symbolic.sizes import hint
from ...access.reads import Guards, Read
from ..lines import Line, place_text
from ..names import Name, Run
from ..writer import Scope, Writer
from .masks import MaskWriter

_FUNCTIONS = {
    Outside.CLAMPED: ("clamped_index", "clamped_long_index"),
    Outside.WRAPPED: ("wrapped_index", "wrapped_long_index"),
    Outside.GUARDED: ("checked_index", "checked_index"),
}
"""The functions of the device library that make an index safe: for dims of fewer than 2**31
elements, and for any. They take the index, the extent of its dim and the mask. Those that clamp or
wrap also take the number of neighbours that have the same index."""


class LoadedIndexWriter:
    """Writes the indices that a kernel reads at run time as ones that are safe to use, each once.

    Parameters
    ----------
    check_bounds : bool
        Whether the kernel asserts that they are indices of their dims.
    """

    def __init__(self, writer: Writer, masks: MaskWriter, check_bounds: bool) -> None:
        self.writer = writer
        self.masks = masks
        self.check_bounds = check_bounds

    def index(self, loaded: LoadedIndex) -> Name:
        """A value read at run time, which is bound, as an index that is safe to use."""
        value = self.writer.find(loaded.key)
        assert value is not None, "an index is written before the value it reads"
        dim, known = loaded.dim, self.writer.find(loaded)
        if dim is None or known is not None:
            return known or value
        assert isinstance(loaded.key, Read)
        guards = loaded.key.guards
        dims = value.dims | self.masks.guard_dims(guards)
        mask = self.masks.name(dims, guards) or "True"
        scope, mask_scope = self.writer.scope_for(value.dims), self.writer.scope_for(dims)
        if self.check_bounds:
            mask_scope.lines.append(_bounds_assertion(value.text, dim, mask, loaded.loc))
        name = self.writer.numbered("i")
        if mask_scope is not scope:
            # The mask is known in an inner loop only: there the interpreter checks the index.
            call = _safe_index(value.text, dim, mask)
            mask_scope.lines.append(Line(call, loaded.loc, op=dim.op))
            mask = "False"
        found = Name(name, _safe_index_dtype(value.dtype, dim), value.dims)
        shared = None if value.run is None else self._run_mask(value.run, dims, guards, mask)
        if value.run is not None and shared is not None:
            found = _of_run(scope, found, value.run, shared, loaded)
        else:
            call = _safe_index(value.text, dim, mask, value.run)
            scope.lines.append(Line(f"{name} = {call}", loaded.loc, op=dim.op))
        scope.names[loaded] = found
        return found

    def _run_mask(self, run: Run, dims: frozenset[str], guards: Guards, mask: str) -> str | None:
        """The mask of what neighbours have in common; None where they differ in theirs."""
        name = run.repeat.tile.name
        if mask == "False":
            return mask
        if name in self.masks.guard_dims(guards):
            return None
        if name not in dims:
            return mask
        return run.repeat.mask(run.number, self.masks.name(dims - {name}, guards)) or "True"


def _of_run(scope: Scope, name: Name, run: Run, mask: str, loaded: LoadedIndex) -> Name:
    """Write an index that neighbours have in common once for each run of them, and spread it."""
    assert loaded.dim is not None
    each = replace(name, text=f"{name.text}_lane")
    call = _safe_index(run.each.text, loaded.dim, mask)
    scope.lines.append(Line(f"{each.text} = {call}", loaded.loc, op=loaded.dim.op))
    spread = f"spread_index({each.text}, {run.repeat.count}, {loaded.dim.extent})"
    if loaded.dim.outside is Outside.GUARDED:
        spread = f"spread({each.text}, {run.repeat.count})"
    scope.lines.append(Line(f"{name.text} = {spread}"))
    if not scope.axes.isdisjoint(name.dims):
        scope.axes |= {each.text}  # its quotients are written there too
    return replace(name, run=replace(run, each=each))


def _safe_index(index: str, dim: Indexed, mask: str, run: Run | None = None) -> str:
    """The call that makes an index safe to use; ``run`` if neighbours have it in common."""
    short, long = _FUNCTIONS[dim.outside]
    told = ""
    if run is not None and dim.outside is not Outside.GUARDED:
        told = f", {run.repeat.count}"
    return f"{short if _is_short(dim) else long}({index}, {dim.extent}, {mask}{told})"


def _safe_index_dtype(dtype: DataType, dim: Indexed) -> DataType:
    """The dtype of the result of ``_safe_index`` for an index of some dtype."""
    becomes_short = _is_short(dim) and dim.outside is not Outside.GUARDED
    return DataType.Int32 if becomes_short else dtype


def _bounds_assertion(index: str, dim: Indexed, mask: str, loc: SourceLoc | None) -> Line:
    """The line that asserts that an index is inside its dim."""
    least = -dim.extent if dim.outside is Outside.WRAPPED else 0
    # No kernel serves another extent than that of this run, see ``assume_index_dims``.
    size = "1 element" if hint(dim.extent) == 1 else f"{hint(dim.extent)} elements"
    message = f"{dim.op}{f' at {place_text(loc)}' if loc else ''}: index out of range for a dim of"
    condition = f"index_within({index}, {least}, {dim.extent})"
    return Line(f'tl.device_assert({condition}, "{message} {size}", {mask})', loc)


def _is_short(dim: Indexed) -> bool:
    return is_known_less(dim.extent, INT32_LIMIT)
