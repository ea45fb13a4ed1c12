"""Errors for objects that cannot be pickled or copied; each says what to send instead."""

from __future__ import annotations

from typing import Any, ClassVar, SupportsIndex

from .errors import ArgumentError


class Unpicklable:
    """An object that is tied to its process: kernels, memory of a GPU, locks.

    Attributes
    ----------
    send_instead : str
        What a program can send in its place.
    """

    __slots__ = ()
    send_instead: ClassVar[str]

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Refuse.

        Raises
        ------
        ArgumentError
            A TypeError: always.
        """
        raise ArgumentError(
            f"{type(self).__name__}: it is tied to this process, and can be neither copied nor "
            "pickled",
            hint=self.send_instead,
        )
