"""The error for arguments of a wrong type, shared by all public functions."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from ...ops.arguments import shown


def expect(what: str, wanted: type[Any] | tuple[type[Any], ...], given: object) -> None:
    """Refuse an argument that is of another type.

    Parameters
    ----------
    what : str
        The function.
    wanted : type or tuple of type
        What it takes; a bool is no int.

    Raises
    ------
    ArgumentError
        Names the function, the types it takes and what came.
    """
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    if isinstance(given, kinds) and not (isinstance(given, bool) and bool not in kinds):
        return
    names = " or ".join(kind.__name__ for kind in kinds)
    raise ArgumentError(
        f"{what}(): incompatible function arguments: expected a {names}, got {shown(given)}"
    )


LISTED = (list, tuple)
"""What lists of arguments are given as."""
