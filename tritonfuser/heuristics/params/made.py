"""``made``: params, made and checked once: many problems have tiles of equal sizes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

from .base import HeuristicParams

_P = TypeVar("_P", bound=HeuristicParams)


def made(kind: type[_P], **values: Any) -> _P:
    """Params of a class with these values: the same object for equal ones."""
    found = _made(kind, tuple(values.items()))  # type: ignore[arg-type]
    assert isinstance(found, kind)
    return found


@lru_cache(maxsize=4096)
def _made(kind: type[HeuristicParams], values: tuple[tuple[str, Any], ...]) -> HeuristicParams:
    return kind(**dict(values))
