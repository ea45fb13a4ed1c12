"""``FusionCache`` of nvFuser's first frontend: every definition of a process, once."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...errors import DefinitionError
from ..definition import FusionDefinition
from ..record.layouts import compute_tensor_descriptor
from ..run.executors import FusionExecutorCache
from ..vocabulary.location import user_line
from .definition_cache import LRUCache


class FusionCache:
    """The definitions recorded with the legacy frontend; equal ones share what is compiled.

    Not made by hand: ``FusionCache.get()``.
    """

    _only: FusionCache | None = None

    def __init__(self, max_fusions: int) -> None:
        self._max = max_fusions
        self._fusions = LRUCache(max_fusions)

    @classmethod
    def get(cls, max_fusions: int = 8192) -> FusionCache:
        """The one cache; ``max_fusions`` counts where it is made."""
        if cls._only is None:
            cls._only = cls(max_fusions)
        return cls._only

    @classmethod
    def reset(cls) -> None:
        """Forget all definitions."""
        cls._only = None

    def num_fusions(self) -> int:
        """How many different definitions there are."""
        return self._fusions.num_fusions()

    def stats(self) -> str:
        """Counts of definitions, look-ups and hits."""
        return self._fusions.stats()

    def print_stats(self) -> None:
        """Print ``stats()``."""
        sys.stdout.write(self.stats())

    def add(self, fd: FusionDefinition) -> FusionExecutorCache:
        """What runs a definition, shared with all equal ones.

        Raises
        ------
        DefinitionError
            There is no room for another definition.
        """
        before = self.num_fusions()
        if before >= self._max and not self._fusions.knows(fd.fusion):
            raise DefinitionError(
                f"the FusionCache is full: {self._max} fusions",
                loc=user_line(),
                hint="FusionCache.reset(), then FusionCache.get(max_fusions=...) for more.",
            )
        return self._fusions.cache_compile(fd.fusion)


class LegacyFusionDefinition(FusionDefinition):
    """A FusionDefinition that goes into the FusionCache when its ``with`` block ends."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if kind is None and self.fusion.defined():
            self._cache = FusionCache.get().add(self)


def compute_contiguity(sizes: Sequence[int], strides: Sequence[int]) -> list[bool | None]:
    """The contiguity alone of what ``compute_tensor_descriptor`` gives."""
    return compute_tensor_descriptor(sizes, strides)[0]
