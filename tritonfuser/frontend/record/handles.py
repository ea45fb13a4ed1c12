"""From values of the IR to their handles and back: each value of a recording has one handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import Const, Operand, Value
from .statements import Home
from .tensor_view import TensorView
from .val import Val
from .val import restored_handle as restored_handle  # older pickles name it so


def handle_of(home: Home, value: Operand) -> Any:
    """The one handle of a value or a constant."""
    found = home.handles.get(value)
    if found is None:
        kind = TensorView if isinstance(value, Value) and value.is_tensor else Val
        found = home.handles.setdefault(value, kind(home, value))
    return found


def wrap(home: Home, result: Any) -> Any:
    """Values of the IR as handles, in tuples and lists too."""
    if isinstance(result, tuple | list):
        return type(result)(wrap(home, item) for item in result)
    return handle_of(home, result) if isinstance(result, Value | Const) else result


def unwrap(given: Any, check: Callable[[Val], Operand]) -> Any:
    """Handles as values of the IR, in a list or a tuple too; ``check`` sees each handle.

    No op takes lists of lists: what is in an inner one stays as it is.
    """
    if isinstance(given, Val):
        return check(given)
    if isinstance(given, tuple | list):
        return [check(item) if isinstance(item, Val) else item for item in given]
    return given
