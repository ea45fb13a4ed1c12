"""What a family is, and which are held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Table = Mapping[str, Any]
"""Arguments of a family's builder."""


@dataclass(frozen=True)
class Step:
    """A step to record.

    Attributes
    ----------
    run : callable
        A module, or a function of tensors.
    inputs : tuple
        Its arguments, with tensors of the meta device.
    training : bool
        Whether the backward is recorded too.
    limits : tuple of int
        Where a step is run with random inputs: below what the integers of each input are; 2 for
        inputs that it does not reach.
    """

    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    training: bool = True
    limits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes
    ----------
    name : str
        Its name in the corpus.
    build : callable
        Makes the step from the arguments of a table, on the meta device.
    sizes : mapping
        The tables at which it is recorded: ``filling`` a GPU, ``small``, ``decode``.
    reduced : mapping
        For each size a table at which a CPU interprets the same definitions in seconds.
    """

    name: str
    build: Callable[..., Step]
    sizes: Mapping[str, Table]
    reduced: Mapping[str, Table]


def table_of(names: str, *extents: Any) -> dict[str, Any]:
    """A table of named arguments: ``"batch width", 2, 8`` -> ``{"batch": 2, "width": 8}``."""
    return dict(zip(names.split(), extents, strict=True))
