"""``Launch``: which kernel computes a segment, and how it overlaps with the kernels beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How a segment is launched.

    Attributes
    ----------
    finishes : str
        The segment whose kernel computes it too: each of its tiles by the last program that arrives
        of those that make what the tile reads. Empty for a kernel of its own.
    beside : str
        The segment whose launch it shares: programs are divided among both. Empty for a launch of
        its own.
    overlap : bool
        Its kernel may start while the one before it ends, where the device can do that.
    follows : bool
        Its kernel starts while the one before it ends (programmatic dependent launch).
    followed : bool
        The kernel after it starts while this one ends.
    """

    finishes: str = ""
    beside: str = ""
    overlap: bool = True
    follows: bool = False
    followed: bool = False

    @property
    def launched_by(self) -> str:
        """The segment whose kernel computes it; empty for one of its own, if it has any."""
        return self.finishes or self.beside
