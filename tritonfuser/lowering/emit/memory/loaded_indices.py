"""Text of indices that are read at run time: clamped, wrapped or asserted to be in their dims."""

from __future__ import annotations

from ....dtypes import DataType
from ....errors import SourceLoc
from ....shapes import INT32_LIMIT
from ....symbolic.loaded_index import Indexed, Outside
from ....symbolic.queries import is_known_less
from ....symbolic.sizes import hint
from ..lines import Line, place_text

_FUNCTIONS = {
    Outside.CLAMPED: ("clamped_index", "clamped_long_index"),
    Outside.WRAPPED: ("wrapped_index", "wrapped_long_index"),
    Outside.GUARDED: ("checked_index", "checked_index"),
}
"""The functions of the device library that make an index safe: for dims of fewer than 2**31
elements, and for any. They take the index, the extent of its dim, and the mask."""


def safe_index(index: str, dim: Indexed, mask: str) -> str:
    """The call that makes an index safe to use."""
    short, long = _FUNCTIONS[dim.outside]
    return f"{short if _is_short(dim) else long}({index}, {dim.extent}, {mask})"


def safe_index_dtype(dtype: DataType, dim: Indexed) -> DataType:
    """The dtype of the result of ``safe_index`` for an index of some dtype."""
    becomes_short = _is_short(dim) and dim.outside is not Outside.GUARDED
    return DataType.Int32 if becomes_short else dtype


def _is_short(dim: Indexed) -> bool:
    return is_known_less(dim.extent, INT32_LIMIT)


def bounds_assertion(index: str, dim: Indexed, mask: str, loc: SourceLoc | None) -> Line:
    """The line that asserts that an index is inside its dim."""
    least = -dim.extent if dim.outside is Outside.WRAPPED else 0
    # No kernel serves another extent than that of this run, see ``assume_index_dims``.
    size = "1 element" if hint(dim.extent) == 1 else f"{hint(dim.extent)} elements"
    message = f"{dim.op}{f' at {place_text(loc)}' if loc else ''}: index out of range for a dim of"
    condition = f"index_within({index}, {least}, {dim.extent})"
    return Line(f'tl.device_assert({condition}, "{message} {size}", {mask})', loc)
