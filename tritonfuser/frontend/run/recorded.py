"""A recorded definition: its state, and what running it would do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import torch

from ... import options
from ...cache import executor
from ...cache.keys.recompiles import Recompiles
from ...errors import DefinitionError, UndefinedFusionError
from ...heuristics.params import HeuristicParams
from ...lowering.build import KernelReport
from ...lowering.kernel_source import KernelSource
from ...lowering.segments import SegmentedFusion
from ..record.inputs import Inputs, device_for, flat, placing, refuse_cpu
from ..vocabulary.location import user_line
from .executors import FusionExecutorCache, KernelExecutor
from .fusion import Fusion

Execute = Callable[[Inputs], list[torch.Tensor]]

_lock = threading.Lock()


class Recorded:
    """The fusion of a definition, the executors made for it, and a look at what they would do."""

    cuda_only = False
    """Whether CPU tensors other than scalars are refused, as nvFuser does."""

    _fusion: Fusion | None = None
    _fec: FusionExecutorCache | None = None
    _ke: KernelExecutor | None = None
    _looked_at: FusionExecutorCache | None = None
    _hot: Execute | None = None
    _repro_inputs: list[str] | None = None

    # --- looking inside --------------------------------------------------------------------

    def heuristics(self, inputs: Inputs) -> list[HeuristicParams]:
        """The params that ``run`` would use for inputs like these, one a segment."""
        with placing(self._ready()):
            return self._core().heuristics(self._accepted(inputs))

    def segments(
        self, inputs: Inputs, *, arch: str | None = None, varying: Sequence[Inputs] = ()
    ) -> SegmentedFusion:
        """How ``run`` would cut the definition, with the reasons; here or on another GPU.

        Parameters
        ----------
        varying : list of inputs
            As for ``kernels``.
        """
        with placing(self._ready()):
            given = self._accepted(inputs)
            return self._core().segments(given, arch=arch, varying=[*map(flat, varying)])

    def kernels(
        self, inputs: Inputs, *, arch: str | None = None, varying: Sequence[Inputs] = ()
    ) -> list[KernelSource]:
        """The kernels that ``run`` would launch, as Triton source, in order.

        Parameters
        ----------
        inputs : list or tuple
            CPU or meta tensors stand for tensors on another GPU.
        arch : str, optional
            Another GPU, that need not be here: ``"sm_90"``.
        varying : list of inputs
            Inputs of earlier runs whose sizes differ: sizes that do become arguments of the
            kernels.

        Raises
        ------
        InputError
            The inputs do not fit, or those of earlier runs differ in more than sizes.
        """
        with placing(self._ready()):
            given = self._accepted(inputs)
            return self._core().kernels(given, arch=arch, varying=[*map(flat, varying)])

    def compile_for(self, arch: str, inputs: Inputs) -> list[KernelReport]:
        """Compile the kernels for a GPU that need not be here; what came out, one a kernel.

        Parameters
        ----------
        arch : str
            ``"sm_80"``, ``"sm_90"``, ``"sm_100"`` or ``"gfx942"``.
        inputs : list or tuple
            CPU or meta tensors that stand for tensors on that GPU, and numbers.
        """
        with placing(self._ready()):
            return self._core().compile_for(arch, flat(inputs))

    def explain_recompiles(self) -> Recompiles:
        """Each time ``run`` compiled: for which sizes or for any, and what made it necessary.

        The first signatures are compiled with their sizes written out. When one more differs from
        them in sizes alone, kernels are made that take those sizes as arguments; what was decided
        by them is among the guards, and other sizes that pass those compile nothing.

        Examples
        --------
        >>> print(fd.explain_recompiles())
        >>> fd.explain_recompiles()[-1].reason
        'size0 <= 4096 does not hold: size0 is 8192 (tv0.shape[1])'
        """
        self._ready()
        return self._core().recompiles()

    # --- state -----------------------------------------------------------------------------

    @property
    def fec(self) -> FusionExecutorCache:
        """The cache behind ``run``, once it was called; may be set to one made elsewhere."""
        if self._fec is None:
            raise AttributeError("fd.fec exists after fd.run(inputs)")
        return self._fec

    @fec.setter
    def fec(self, cache: FusionExecutorCache) -> None:
        self._fec = self._looked_at = cache
        self._hot = self._checked(cache)

    @property
    def ke(self) -> KernelExecutor:
        """The kernel behind ``run_kernel``, once it was called."""
        if self._ke is None:
            raise AttributeError("fd.ke exists after fd.run_kernel(inputs)")
        return self._ke

    @ke.setter
    def ke(self, kernel: KernelExecutor) -> None:
        self._ke = kernel

    def definition(self) -> None:
        """What a subclass overrides to record its ops when it is first run."""
        raise UndefinedFusionError(
            "Fusion does not exist! Use `with FusionDefinition() as fd: ...` to define a fusion.",
            loc=user_line(),
        )

    def _ready(self) -> Fusion:
        """The recorded fusion.

        Raises
        ------
        UndefinedFusionError
            Nothing was recorded, or no output.
        """
        if self._fusion is None and self._fec is not None:
            return self._fec.fusion()
        if self._fusion is None:
            self._define()
        fusion = self._fusion
        assert fusion is not None, "definition() returned without recording"
        if fusion.open:
            raise DefinitionError(
                "the definition is still being recorded",
                loc=user_line(),
                hint="Run it after the `with` block.",
            )
        if not fusion.defined():
            raise UndefinedFusionError(
                "Fusion is empty!", loc=user_line(), hint="Record ops and fd.add_output(...)."
            )
        return fusion

    def _define(self) -> None:
        self.definition()

    def _core(self) -> executor.FusionExecutorCache:
        return self._look().core

    def _look(self) -> FusionExecutorCache:
        """The cache, without choosing between ``run`` and ``run_kernel`` yet."""
        if self._looked_at is None:
            fusion = self._ready()
            with _lock:
                if self._looked_at is None:
                    self._looked_at = FusionExecutorCache(fusion)
        return self._looked_at

    def _accepted(self, inputs: Inputs) -> Inputs:
        given = flat(inputs)
        if self._gpu_only():
            refuse_cpu(self._ready().ir, given)
        return given

    def _gpu_only(self) -> bool:
        return self.cuda_only and not options.current().cpu_as_cuda

    def _checked(self, cache: FusionExecutorCache) -> Execute:
        """What ``run`` calls: the cache's executor, behind a look at the device where needed."""
        execute = cache.core.execute
        fusion = cache.core.fusion
        ranks = {p: v.tensor.rank for p, v in enumerate(fusion.inputs) if v.is_tensor}
        if not self._gpu_only() or not ranks:
            return execute
        # Tensors on two devices are refused anyway: one look tells, at one with dims if there is.
        first, count = max(ranks, key=lambda p: ranks[p]), len(fusion.inputs)

        def on_cuda(inputs: Inputs) -> list[torch.Tensor]:
            if len(inputs) == count and getattr(inputs[first], "is_cpu", False):
                refuse_cpu(fusion, inputs)
                return execute(inputs, device=device_for(fusion, inputs, None, gpu_only=True))
            return execute(inputs)

        return on_cuda
