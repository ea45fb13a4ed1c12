"""From values of the IR to their handles and back: each value of a recording has one handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import Const, Operand, Value
from .statements import Container
from .tensor_view import TensorView
from .val import Val
from .val import restored_handle as restored_handle  # older pickles name it so


def handle_of(container: Container, value: Operand) -> Any:
    """The one handle of a value or a constant."""
    found = container.handles.get(value)
    if found is None:
        kind = TensorView if isinstance(value, Value) and value.is_tensor else Val
        found = container.handles.setdefault(value, kind(container, value))
    return found


def wrap(container: Container, result: Any) -> Any:
    """Values of the IR as handles, in tuples and lists too."""
    if isinstance(result, tuple | list):
        return type(result)(wrap(container, item) for item in result)
    return handle_of(container, result) if isinstance(result, Value | Const) else result


def unwrap(given: Any, check: Callable[[Val], Operand]) -> Any:
    """Handles as values of the IR, in a list or a tuple too; ``check`` sees each handle.

    No op takes lists of lists: what is in an inner one stays as it is.
    """
    if isinstance(given, Val):
        return check(given)
    if isinstance(given, tuple | list):
        return [check(item) if isinstance(item, Val) else item for item in given]
    return given
