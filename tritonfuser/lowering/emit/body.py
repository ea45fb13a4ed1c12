"""``Body``: what the writers of all kinds of kernel bodies have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..access.reads import Read
from ..kernel_source import CooperativeWorkspace
from ..segments.store import Store
from .kernel_writers import KernelWriters
from .lines import Line


class Body(ABC):
    """Writes the body of one kernel.

    Attributes
    ----------
    writers : KernelWriters
        Of the values, loads and stores of the kernel.
    """

    writers: KernelWriters

    @property
    def loaded(self) -> Sequence[Read]:
        """All loads by addresses. They are known when the body is written."""
        return self.writers.loads.loaded

    @property
    def stored(self) -> Sequence[Store]:
        """All stores, at the positions of the kernel. They are known when the body is written."""
        return self.writers.stores.stored

    @property
    def workspace(self) -> CooperativeWorkspace | None:
        """The memory that programs of the kernel exchange results in, if they do."""
        return None

    @abstractmethod
    def write(self) -> list[Line]:
        """All lines of the function body."""
