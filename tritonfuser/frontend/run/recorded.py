"""The state of a definition: the recorded fusion and the executors made for it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ... import options
from ...cache import executor
from ...errors import DefinitionError, UndefinedFusionError
from ...forks import Lock
from ...lowering.run_options import DEFAULT
from ..record.inputs import Inputs, flatten_inputs, refuse_cpu
from ..vocabulary.location import user_line
from .arguments import with_device
from .executors import FusionExecutorCache, KernelExecutor
from .fusion import Fusion

Execute = Callable[[Inputs], list[torch.Tensor]]
"""Runs a definition on inputs without options."""

_lock = Lock()


class Recorded:
    """The fusion of a definition and its executors, each made when it is first needed."""

    cuda_only = False
    """Whether CPU tensors other than scalars are refused, as nvFuser does."""

    _fusion: Fusion | None = None
    _fec: FusionExecutorCache | None = None
    _ke: KernelExecutor | None = None
    _cache: FusionExecutorCache | None = None
    _fast_path: Execute | None = None
    _device_input: int | None = None
    """The input, of most dims, whose device is that of a run; None where none is a tensor."""

    _repro_inputs: list[str] | None = None

    @property
    def fec(self) -> FusionExecutorCache:
        """The executor cache of ``run``, after its first call; may be set to another one."""
        if self._fec is None:
            raise AttributeError("fd.fec exists after fd.run(inputs)")
        return self._fec

    @fec.setter
    def fec(self, cache: FusionExecutorCache) -> None:
        self._fec = self._cache = cache
        self._fast_path = self._make_fast_path(cache)

    @property
    def ke(self) -> KernelExecutor:
        """The kernel executor of ``run_kernel``, after its first call."""
        if self._ke is None:
            raise AttributeError("fd.ke exists after fd.run_kernel(inputs)")
        return self._ke

    @ke.setter
    def ke(self, kernel: KernelExecutor) -> None:
        self._ke = kernel

    def definition(self) -> None:
        """To be overridden by a subclass: records the ops before the first run."""
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
        return self._executor_cache().core

    def _executor_cache(self) -> FusionExecutorCache:
        """The executor cache, made if need be; queries use it before ``run`` sets ``fec``."""
        if self._cache is None:
            fusion = self._ready()
            with _lock:
                if self._cache is None:
                    self._cache = FusionExecutorCache(fusion)
        return self._cache

    def _checked_inputs(self, inputs: Inputs) -> Inputs:
        """The inputs as a flat list. CPU tensors are refused where only GPU tensors are allowed."""
        given = flatten_inputs(inputs)
        if self._gpu_only():
            refuse_cpu(self._ready().ir, given)
        return given

    def _gpu_only(self) -> bool:
        return self.cuda_only and not options.current().cpu_as_cuda

    def _make_fast_path(self, cache: FusionExecutorCache) -> Execute:
        """What ``run`` calls without options: ``execute``, behind a device check if need be."""
        execute = cache.core.execute
        fusion = cache.core.fusion
        ranks = {p: v.tensor.rank for p, v in enumerate(fusion.inputs) if v.is_tensor}
        # The executor refuses inputs on two devices, so one tensor decides: one with dims if any.
        first = self._device_input = max(ranks, key=lambda p: ranks[p], default=None)
        if not self._gpu_only() or first is None:
            return execute
        count = len(fusion.inputs)

        def on_cuda(inputs: Inputs) -> list[torch.Tensor]:
            if len(inputs) == count and getattr(inputs[first], "is_cpu", False):
                refuse_cpu(fusion, inputs)
                return execute(inputs, with_device(DEFAULT, inputs, gpu_only=True))
            return execute(inputs)

        return on_cuda

    def _decides_device(self, inputs: Inputs, device: object) -> bool:
        """Whether the inputs decide for the device that was asked for, so that nothing is left to
        ask. Tracers name it in every call."""
        place = self._device_input
        if place is None or not isinstance(inputs, list | tuple) or place >= len(inputs):
            return False
        given = inputs[place]
        if not isinstance(given, torch.Tensor) or not (given.is_cuda or given.dim()):
            return False
        if type(device) is int:
            return given.is_cuda and given.get_device() == device
        return isinstance(device, torch.device) and given.device == device
