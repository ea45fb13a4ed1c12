"""``FusionCache`` of nvFuser's first frontend: every definition of a process, once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ...cache.plan.execution_plan import ExecutionPlan
from ...errors import DefinitionError, InputError
from ...pickling import Unpicklable
from ..definition import FusionDefinition
from ..record.layouts import compute_tensor_descriptor
from ..run.executors import FusionExecutorCache
from ..vocabulary.location import user_line
from .definition_cache import LRUCache


class FusionCache(Unpicklable):
    """The definitions recorded with the legacy frontend; equal ones share what is compiled.

    Not made by hand: ``FusionCache.get()``.
    """

    send_instead = "Each process has its own: send the definitions, which are added to it."
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

    namespace = "nvfuser"

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._restored()

    def _restored(self) -> None:
        if self.fusion.defined():
            self._cache = FusionCache.get().add(self)

    def fusion_ir(self) -> str:
        """The ops as text, as ``print(fd.fusion)`` shows them."""
        return str(self.fusion)

    def last_cuda_code(self, intrinsic_code: bool = False, **options: Any) -> str:
        """The kernels of the last run: Triton source, where nvFuser gives CUDA.

        Parameters
        ----------
        intrinsic_code : bool
            Accepted and not read, as are ``options``.

        Raises
        ------
        InputError
            Nothing was executed yet.
        """
        sources = self._last_run("last_cuda_code").lowered.sources
        return "\n".join(source.text for source in sources if source is not None)

    def last_scheduled_fusion_ir(self, tensor_transforms: bool = False, **options: Any) -> str:
        """The segments of the last run with their ops and params, as text.

        Parameters
        ----------
        tensor_transforms : bool
            Accepted and not read, as are ``options``.

        Raises
        ------
        InputError
            Nothing was executed yet.
        """
        return str(self._last_run("last_scheduled_fusion_ir").lowered.segmented)

    def _last_run(self, what: str) -> ExecutionPlan:
        executor = self._fec if self._ke is None else self._ke
        plan = None if executor is None else executor.core.newest()
        if plan is None:
            raise InputError(
                f"{what}: nothing was executed yet",
                loc=user_line(),
                hint="Call fd.execute(inputs) or fd.manual_execute(inputs) first.",
            )
        return plan


def compute_contiguity(sizes: Sequence[int], strides: Sequence[int]) -> list[bool | None]:
    """The contiguity alone of what ``compute_tensor_descriptor`` gives."""
    return compute_tensor_descriptor(sizes, strides)[0]
