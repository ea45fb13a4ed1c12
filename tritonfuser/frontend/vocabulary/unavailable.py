"""Names of nvFuser without a meaning here: using one raises ``UnavailableError``."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import TritonFuserError
from .location import user_line


class UnavailableError(TritonFuserError, RuntimeError):
    """Something of nvFuser's that has no meaning here, or is not there yet."""


class Unavailable:
    """A name to import; calling it, reading an attribute or testing a type raises.

    Parameters
    ----------
    name : str
        As nvFuser has it.
    instead : str
        What to do.
    """

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def _refuse(self, used: str) -> NoReturn:
        raise UnavailableError(
            f"{used} is not available in tritonfuser", loc=user_line(), hint=self._instead
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse(f"{self._name}()")

    def __getattr__(self, attribute: str) -> NoReturn:
        # Tools that look at modules ask for names like __file__ and __wrapped__.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        self._refuse(f"{self._name}.{attribute}")

    def __instancecheck__(self, instance: object) -> NoReturn:
        self._refuse(f"isinstance(..., {self._name})")

    def __repr__(self) -> str:
        return f"<{self._name}: not available in tritonfuser>"


SCHEDULE_HINT = (
    "Kernels are scheduled by params: change those that fd.heuristics(inputs) gives and pass "
    "them to fd.run(inputs, params=[...])."
)
