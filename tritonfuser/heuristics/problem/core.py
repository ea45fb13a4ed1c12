"""``Core``: the facts of the op that a kernel is built around, as a matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..params import HeuristicParams


@dataclass(frozen=True, kw_only=True, slots=True)
class Core:
    """The op that a kernel is built around, with a prologue before it and an epilogue after it.

    The base of one class for each such op, which has the op's facts.

    Attributes
    ----------
    scheduler : str
        The name of the scheduler of such kernels.
    words : str
        The name of the op in texts.
    """

    scheduler: ClassVar[str]
    words: ClassVar[str]

    def sizes(self) -> Iterator[int]:
        """The facts that may vary between runs."""
        raise NotImplementedError

    def why_not_params(self, params: HeuristicParams) -> tuple[str, str] | None:
        """None, or why a kernel around the op would be wrong under params, and what to change."""
        raise NotImplementedError
