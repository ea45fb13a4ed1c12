"""Methods of nvFuser's tensors that are refused: kernels are scheduled by heuristics here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..vocabulary.location import user_line
from ..vocabulary.unavailable import SCHEDULE_HINT, UnavailableError

LOOP_METHODS = (
    "swizzle",
    "inline_at",
    "cache_before",
    "cache_after",
    "cache_fork",
    "circular_buffer",
    "compute_with",
    "promote_reuse",
    "double_buffer",
    "apply_mma_swizzle",
)
"""Methods of nvFuser's that schedule the loops of a kernel by hand."""


def refused(name: str) -> Callable[..., NoReturn]:
    """A method of ``TensorView`` that raises: it says what is there instead."""

    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnavailableError(
            f"TensorView.{name}() is not available in tritonfuser",
            loc=user_line(),
            hint=SCHEDULE_HINT,
        )

    method.__name__ = name
    method.__qualname__ = f"TensorView.{name}"
    method.__doc__ = f"Not available: {SCHEDULE_HINT}"
    return method
