"""Running a definition: the cached way, the one-kernel way, and looking at what they would do."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Union

import torch

from .. import options
from ..cache import executor
from ..errors import DefinitionError, ExecutionModeError, InputError, UndefinedFusionError
from ..heuristics.params import HeuristicParams
from ..lowering.build import KernelReport
from ..lowering.kernel import KernelSource
from ..lowering.segments import SegmentedFusion
from .executors import FusionExecutorCache, KernelExecutor, Params
from .fusion import Fusion
from .inputs import Inputs, device_for, flat, placing, refuse_cpu
from .location import user_line
from .nvfuser_options import check_options
from .repro import describe_inputs

Device = Union[torch.device, str, int, None]
Execute = Callable[[Inputs], list[torch.Tensor]]

_deprecated_used = False
_lock = threading.Lock()


def _warn_deprecated(old: str, new: str) -> None:
    """The one warning of this process, at the line that called the alias."""
    global _deprecated_used
    if _deprecated_used:
        return
    _deprecated_used = True
    quiet = alias(Runnable.run, Runnable.execute)
    setattr(Runnable, quiet.__name__, quiet)
    warnings.warn(
        f"FusionDefinition.{old} is nvFuser's name for FusionDefinition.{new}; "
        f"use {new}, or import tritonfuser.compat.nvfuser_direct",
        DeprecationWarning,
        stacklevel=3,
    )


def alias(function: Any, named: Any) -> Any:
    """``function`` under the name and docstring of ``named``: a call costs what it costs."""
    copy = FunctionType(function.__code__, function.__globals__, named.__name__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(
        copy,
        named,
        assigned=("__module__", "__qualname__", "__doc__", "__annotations__"),
        updated=(),
    )


class Runnable:
    """What a definition can do once it is recorded.

    Two ways to run it exclude each other on one definition: ``run`` and ``run_kernel``.
    """

    cuda_only = False
    """Whether CPU tensors other than scalars are refused, as nvFuser does."""

    _fusion: Fusion | None = None
    _fec: FusionExecutorCache | None = None
    _ke: KernelExecutor | None = None
    _looked_at: FusionExecutorCache | None = None
    _hot: Execute | None = None
    _repro_inputs: list[str] | None = None

    # --- the two ways ----------------------------------------------------------------------

    def run(
        self,
        inputs: Inputs,
        *,
        params: Sequence[HeuristicParams] | HeuristicParams | None = None,
        device: Device = None,
        save_repro_inputs: bool = False,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[torch.Tensor]:
        """Run the definition: cached, segmented and scheduled automatically. The way to use it.

        The first call for a signature of inputs (sizes, strides, dtypes, device, alignment) cuts
        the definition into segments, chooses params and compiles one kernel for each; later ones
        look the result up, allocate and launch: some microseconds on the host. Backed by
        ``FusionExecutorCache``. For one kernel with params of your own, see ``run_kernel``.

        ============== ==========================================
        segmentation   on: as few kernels as schedulers accept
        specialisation on: a variant for each signature
        cache          on: an LRU of variants
        scheduling     on, unless ``params`` are given
        ============== ==========================================

        Parameters
        ----------
        inputs : list or tuple
            Tensors and numbers in the order of definition; nested lists are flattened.
        params : list of HeuristicParams, optional
            To use instead of what ``heuristics(inputs)`` gives, one a segment.
        device : torch.device or str, optional
            Where to run a definition that takes no tensors.
        save_repro_inputs : bool
            Remember what the inputs look like for ``last_repro_script()``.
        _enable_options, _disable_options : list of str
            nvFuser's options; their names are checked.

        Returns
        -------
        list of Tensor
            The outputs that are not hidden, in order.

        Raises
        ------
        InputError
            The inputs do not fit; nothing was run.
        ParamsError
            The params do not fit, with the reason.

        Examples
        --------
        >>> (out,) = fd.run([a, b])
        >>> (chosen,) = fd.heuristics([a, b])
        >>> fd.run([a, b], params=[replace(chosen, num_warps=8)])
        """
        hot = self._hot
        if (
            hot is None
            or params is not None
            or device is not None
            or save_repro_inputs
            or _enable_options
            or _disable_options
        ):
            check_options(_enable_options, _disable_options)
            return self._run(inputs, params, device, save_repro_inputs)
        try:
            return hot(inputs)
        except InputError as error:
            return self._run_flat(hot, inputs, error)

    def run_kernel(self, inputs: Inputs, params: Params | None = None) -> list[torch.Tensor]:
        """Run the definition as one kernel, compiled once for these inputs: benchmarks, tests.

        The whole definition must fit one kernel: nothing is segmented, and what does not fit is
        refused with the place where ``run`` would cut it. The kernel is kept for calls with
        inputs of the same signature; other inputs or other params compile anew (a tenth of a
        second and more). Backed by ``KernelExecutor``.

        ============== ==========================================
        segmentation   off: one kernel, or an error
        specialisation on: for the inputs at hand
        cache          off: the last kernel only
        scheduling     on, unless ``params`` are given
        ============== ==========================================

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        params : HeuristicParams, optional
            To use instead of what ``heuristics(inputs)`` gives.

        Raises
        ------
        SchedulingError
            It takes more than one kernel.
        ParamsError
            The params do not fit, with the reason.

        Examples
        --------
        >>> (chosen,) = fd.heuristics([a, b])
        >>> (out,) = fd.run_kernel([a, b], replace(chosen, num_warps=8))
        """
        fusion = self._ready()
        if self._fec is not None:
            raise ExecutionModeError(
                "FusionExecutorCache already exists! Use execute() to execute the fusion.",
                hint="run() was called on this definition; record another one for run_kernel().",
            )
        given = self._accepted(inputs)
        if self._ke is None:
            fusion.dump()
        kernel = self._ke or KernelExecutor()
        if params is not None or not kernel.core.fits(given):
            kernel.compile(fusion, given, params)
        self._ke = kernel
        return kernel.run(given)

    def execute(
        self,
        inputs: Inputs,
        *,
        params: Sequence[HeuristicParams] | HeuristicParams | None = None,
        device: Device = None,
        save_repro_inputs: bool = False,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[torch.Tensor]:
        """Deprecated alias of ``run``, under nvFuser's name.

        Warns once a process. Programs that keep nvFuser's names import
        ``tritonfuser.compat.nvfuser_direct``, where they are the right ones.
        """
        _warn_deprecated("execute", "run")
        return self.run(
            inputs,
            params=params,
            device=device,
            save_repro_inputs=save_repro_inputs,
            _enable_options=_enable_options,
            _disable_options=_disable_options,
        )

    def manual_execute(
        self, inputs: Inputs, heuristic_params: Params | None = None
    ) -> list[torch.Tensor]:
        """Deprecated alias of ``run_kernel``, under nvFuser's name; see ``execute``."""
        if not _deprecated_used:
            _warn_deprecated("manual_execute", "run_kernel")
        return self.run_kernel(inputs, heuristic_params)

    # --- looking inside --------------------------------------------------------------------

    def heuristics(self, inputs: Inputs) -> list[HeuristicParams]:
        """The params that ``run`` would use for inputs like these, one a segment."""
        with placing(self._ready()):
            return self._core().heuristics(self._accepted(inputs))

    def segments(self, inputs: Inputs, *, arch: str | None = None) -> SegmentedFusion:
        """How ``run`` would cut the definition, with the reasons; here or on another GPU."""
        with placing(self._ready()):
            return self._core().segments(self._accepted(inputs), arch=arch)

    def kernels(self, inputs: Inputs, *, arch: str | None = None) -> list[KernelSource]:
        """The kernels that ``run`` would launch, as Triton source, in order."""
        with placing(self._ready()):
            return self._core().kernels(self._accepted(inputs), arch=arch)

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

    def _run(
        self,
        inputs: Inputs,
        params: Sequence[HeuristicParams] | HeuristicParams | None,
        device: Device,
        save_repro_inputs: bool,
    ) -> list[torch.Tensor]:
        fusion = self._ready()
        if self._ke is not None:
            raise ExecutionModeError(
                "KernelExecutor already exists! Use manual_execute() to execute the fusion.",
                hint="run_kernel() was called on this definition; record another one for run().",
            )
        given = self._accepted(inputs)
        cache = self._look()
        if self._fec is None:
            fusion.dump()
        if save_repro_inputs:
            self._repro_inputs = describe_inputs(given)
        chosen = [params] if isinstance(params, HeuristicParams) else params
        with placing(fusion):
            where = device_for(fusion.ir, given, device)
            outputs = cache.core.execute(given, params=chosen, device=where)
        if self._fec is None:
            self.fec = cache
        return outputs

    def _run_flat(self, execute: Execute, inputs: Inputs, error: InputError) -> list[torch.Tensor]:
        """Once more with nested lists opened; the error as it was where there are none."""
        given = flat(inputs)
        with placing(self._ready()):
            if given is inputs:
                raise error
            return execute(given)

    def _accepted(self, inputs: Inputs) -> Inputs:
        given = flat(inputs)
        if self.cuda_only and not options.current().cpu_as_cuda:
            refuse_cpu(given)
        return given

    def _checked(self, cache: FusionExecutorCache) -> Execute:
        """What ``run`` calls: the cache's executor, behind a look at the device where needed."""
        execute = cache.core.execute
        fusion = cache.core.fusion
        places = [p for p, v in enumerate(fusion.inputs) if v.is_tensor and v.tensor.rank]
        if not self.cuda_only or options.current().cpu_as_cuda or not places:
            return execute
        # Tensors on two devices are refused anyway: one look tells.
        first, count = places[0], len(fusion.inputs)

        def on_cuda(inputs: Inputs) -> list[torch.Tensor]:
            if len(inputs) == count and getattr(inputs[first], "is_cpu", False):
                refuse_cpu(inputs)
            return execute(inputs)

        return on_cuda
