"""Checks of data that may come from anywhere: what is expected, and where something else is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from ...dtypes import DataType
from ...errors import DefinitionError, SourceLoc, TritonFuserError

LONGEST_PATH = 4096
"""Characters of a file name."""
SHOWN = 60
"""Characters of a wrong value that an error shows."""


def refuse(where: str, expected: str, given: Any) -> NoReturn:
    """Raise the error for data that is no definition.

    Raises
    ------
    DefinitionError
        Always.
    """
    text = repr(given)
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    raise DefinitionError(
        f"from_dict: {where}: expected {expected}, got {shown}",
        hint="The data must be what to_dict() of this or an older version gave.",
    )


@contextmanager
def taken_at(where: str) -> Iterator[None]:
    """While what is at a place of the data is recorded: a refusal says that it came from there.

    Raises
    ------
    DefinitionError
        For any error of ours: wrong arguments are wrong data too.
    """
    try:
        yield
    except TritonFuserError as error:
        message = f"from_dict: {where}: {error.message}"
        raise DefinitionError(message, loc=error.loc, hint=error.hint) from error.__cause__


def record(
    given: Any, where: str, needed: Sequence[str], optional: Sequence[str] = ()
) -> Mapping[str, Any]:
    """A dict with these keys and no others."""
    if not isinstance(given, dict):
        refuse(where, f"a dict with {', '.join(needed)}", given)
    for key in needed:
        if key not in given:
            refuse(where, f"the key {key!r}", [*given])
    for key in given:
        if key not in needed and key not in optional:
            refuse(where, f"no keys but {', '.join((*needed, *optional))}", key)
    return given


def items(given: Any, where: str) -> Sequence[Any]:
    """A list; a tuple is taken for one."""
    if not isinstance(given, list | tuple):
        refuse(where, "a list", given)
    return given


def integer(given: Any, where: str) -> int:
    """An int, and no bool."""
    if type(given) is not int:
        refuse(where, "an int", given)
    return given


def flag(given: Any, where: str) -> bool:
    """True or False."""
    if type(given) is not bool:
        refuse(where, "True or False", given)
    return given


def text(given: Any, where: str) -> str:
    """A string."""
    if type(given) is not str:
        refuse(where, "a string", given)
    return given


def dtype(given: Any, where: str) -> DataType:
    """A DataType by its name."""
    found = DataType.__members__.get(text(given, where))
    if found is None:
        refuse(where, "the name of a DataType", given)
    return found


def loc_data(loc: SourceLoc | None) -> list[Any] | None:
    """A line of a program, as ``loc`` takes it: a file may have any name, such as one in a folder
    whose name has a no-break space."""
    return None if loc is None else [_shown(loc.file), loc.line]


def _shown(file: str) -> str:
    """The end of a file's name, with a question mark for each character that is not printable."""
    kept = file[-LONGEST_PATH:]
    return kept if kept.isprintable() else "".join(c if c.isprintable() else "?" for c in kept)


def loc(given: Any, where: str) -> SourceLoc | None:
    """A line of a program that may be on another machine: its file is never opened."""
    if given is None:
        return None
    if len(items(given, where)) != 2:
        refuse(where, "a file and a line", given)
    file, line = text(given[0], where), integer(given[1], where)
    if line < 0 or len(file) > LONGEST_PATH or not file.isprintable():
        refuse(where, "a file and a line", given)
    return SourceLoc(file, line, here=False)
