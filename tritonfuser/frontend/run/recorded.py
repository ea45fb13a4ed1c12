"""A recorded definition: its executors, and queries about what a run would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from ... import options
from ...cache import executor
from ...cache.keys.recompiles import Recompiles
from ...errors import DefinitionError, ParamsError, UndefinedFusionError
from ...forks import Lock
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import Schedule
from ...heuristics.search.schedule_space import Legality, ScheduleSpace
from ...lowering.build import KernelReport
from ...lowering.kernel_source import KernelSource
from ...lowering.run_options import DEFAULT, RunOptions
from ...lowering.segments import SegmentedFusion
from ..record.inputs import Inputs, flat_runs, flatten_inputs, locate_errors, refuse_cpu
from ..vocabulary.location import user_line
from .arguments import Params, ScheduleLike, run_options, with_device
from .executors import FusionExecutorCache, KernelExecutor
from .fusion import Fusion

Execute = Callable[[Inputs], list[torch.Tensor]]
"""Runs a definition on inputs without options."""

_lock = Lock()


class Recorded:
    """The fusion of a definition, its executors, and queries that run nothing."""

    cuda_only = False
    """Whether CPU tensors other than scalars are refused, as nvFuser does."""

    _fusion: Fusion | None = None
    _fec: FusionExecutorCache | None = None
    _ke: KernelExecutor | None = None
    _cache: FusionExecutorCache | None = None
    _fast_path: Execute | None = None
    _repro_inputs: list[str] | None = None

    # --- queries ---------------------------------------------------------------------------

    def heuristics(
        self,
        inputs: Inputs,
        *,
        arch: str | None = None,
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[HeuristicParams]:
        """The params that the next ``run`` with inputs like these would use.

        Parameters
        ----------
        inputs, arch, params, schedule, _enable_options, _disable_options
            As for ``kernels``.

        Returns
        -------
        list of HeuristicParams
            One for each segment. Change them with ``dataclasses.replace`` and give them to
            ``run(inputs, params=...)``.

        Raises
        ------
        InputError
            The inputs do not fit the definition.
        """
        options = run_options(params, None, _enable_options, _disable_options, schedule)
        with locate_errors(self._ready()):
            given, options = self._asked(inputs, arch, options)
            return self._core().heuristics(given, options)

    def schedule(
        self,
        inputs: Inputs,
        *,
        arch: str | None = None,
        varying: Sequence[Inputs] = (),
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> Schedule:
        """How the next ``run`` with inputs like these would be cut into kernels, as one value.

        Parameters
        ----------
        inputs, arch, varying, params, schedule, _enable_options, _disable_options
            As for ``kernels``.

        Returns
        -------
        Schedule
            The kernels with all their params. ``to_dict()`` is plain data. ``run(inputs,
            schedule=...)`` takes either, changed or not.

        Raises
        ------
        InputError
            The inputs do not fit the definition.

        Examples
        --------
        >>> data = fd.schedule([a, b]).to_dict()
        >>> data["segments"][0]["params"]["num_warps"] = 8
        >>> fd.run([a, b], schedule=data)
        """
        options = run_options(params, None, _enable_options, _disable_options, schedule)
        with locate_errors(self._ready()):
            given, options = self._asked(inputs, arch, options)
            return self._core().schedule(given, options, flat_runs(varying))

    def search_space(self, inputs: Inputs, *, arch: str | None = None) -> ScheduleSpace:
        """What could be tried in the place of ``fd.schedule(inputs)``, as data.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``. With ``arch`` CPU or meta tensors stand for tensors on that GPU.
        arch : str, optional
            Search for another GPU, which need not be here: ``"sm_90"``.

        Returns
        -------
        ScheduleSpace
            For each segment the fields of its params, their legal values and the conditions
            between them, the other schedulers that could take it, and the splits whose parts can
            be varied. ``to_dict()`` is plain data; ``draw(random.Random(0))`` is a schedule.

        Raises
        ------
        InputError
            The inputs do not fit the definition.

        Examples
        --------
        >>> space = fd.search_space([a, b])
        >>> schedule = space.draw(random.Random(0))
        >>> if fd.is_legal(schedule, [a, b]):
        ...     fd.run([a, b], schedule=schedule)
        """
        with locate_errors(self._ready()):
            given, options = self._asked(inputs, arch, run_options())
            return self._core().search_space(given, options)

    def is_legal(
        self, schedule: ScheduleLike, inputs: Inputs, *, arch: str | None = None
    ) -> Legality:
        """Whether ``run(inputs, schedule=schedule)`` takes a schedule. Nothing is compiled.

        How many registers a kernel takes, and whether its shared memory suffices, is known when it
        is compiled: a legal schedule may still be refused by a run on a GPU.

        Parameters
        ----------
        schedule : Schedule or dict
            As for ``run``. A wrong one is no error here.
        inputs : list or tuple
            As for ``run``. With ``arch`` CPU or meta tensors stand for tensors on that GPU.
        arch : str, optional
            Ask for another GPU, which need not be here: ``"sm_90"``.

        Returns
        -------
        Legality
            True in an ``if``, or False with ``reason``: a sentence that begins with the path of
            the field.

        Raises
        ------
        InputError
            The inputs do not fit the definition.

        Examples
        --------
        >>> fd.is_legal(data, [a, b]).reason
        'segments[0].params.block_r: expected a power of two, 1 to 1048576, got 96'
        """
        with locate_errors(self._ready()):
            given, options = self._asked(inputs, arch, run_options())
            try:
                options = replace(options, schedule=run_options(schedule=schedule).schedule)
            except ParamsError as error:
                return Legality(error.message)
            return self._core().legality(given, options)

    def segments(
        self,
        inputs: Inputs,
        *,
        arch: str | None = None,
        varying: Sequence[Inputs] = (),
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> SegmentedFusion:
        """How the next ``run`` would cut the definition into segments, with the reasons.

        Parameters
        ----------
        inputs, arch, varying, params, schedule, _enable_options, _disable_options
            As for ``kernels``.

        Returns
        -------
        SegmentedFusion
            ``segments`` in the order of a run, ``cuts`` with the reason of each cut.
        """
        options = run_options(params, None, _enable_options, _disable_options, schedule)
        with locate_errors(self._ready()):
            given, options = self._asked(inputs, arch, options)
            return self._core().segments(given, options, flat_runs(varying))

    def kernels(
        self,
        inputs: Inputs,
        *,
        arch: str | None = None,
        varying: Sequence[Inputs] = (),
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[KernelSource]:
        """The kernels that the next ``run`` would launch, as Triton source.

        They are those that are compiled already, where a run of these sizes would take them: with
        sizes as arguments after runs of other sizes. Asking compiles nothing.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``. With ``arch`` CPU or meta tensors stand for tensors on that GPU.
        arch : str, optional
            Show a first run on another GPU, which need not be here: ``"sm_90"``. By default the
            next run on the device of the inputs.
        varying : list of inputs
            Inputs of earlier runs, in place of those that were. Sizes that differ become arguments
            of the kernels.
        params, schedule, _enable_options, _disable_options
            As for ``run``.

        Returns
        -------
        list of KernelSource
            In the order of a run, without the segments that torch runs.

        Raises
        ------
        InputError
            The inputs do not fit, or those of earlier runs differ in more than sizes.
        """
        options = run_options(params, None, _enable_options, _disable_options, schedule)
        with locate_errors(self._ready()):
            given, options = self._asked(inputs, arch, options)
            return self._core().kernels(given, options, flat_runs(varying))

    def compile_for(
        self, arch: str, inputs: Inputs, *, schedule: ScheduleLike | None = None
    ) -> list[KernelReport]:
        """Compile the kernels for a GPU, which need not be here.

        Parameters
        ----------
        arch : str
            ``"sm_80"``, ``"sm_90"``, ``"sm_100"`` or ``"gfx942"``.
        inputs : list or tuple
            CPU or meta tensors that stand for tensors on that GPU, and numbers.
        schedule : Schedule or dict, optional
            As for ``run``.

        Returns
        -------
        list of KernelReport
            One for each kernel: registers, spills, shared memory, and the binary.

        Raises
        ------
        InputError
            The inputs do not fit the definition.
        LoweringError
            A kernel does not compile.
        """
        options = run_options(schedule=schedule)
        with locate_errors(self._ready()):
            return self._core().compile_for(arch, flatten_inputs(inputs), options)

    def explain_recompiles(self) -> Recompiles:
        """The compilations of ``run``, each with its reason.

        The first two signatures are compiled with constant sizes. A further one that differs from
        them in sizes alone gets kernels that take those sizes as arguments. Decisions that depend
        on a size are recorded as guards. Later sizes that pass the guards, and for which heuristics
        choose the same schedule, compile nothing; another schedule is a variant of its own.

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
        """Flat inputs, of which CPU tensors are refused where only GPUs are allowed."""
        given = flatten_inputs(inputs)
        if self._gpu_only():
            refuse_cpu(self._ready().ir, given)
        return given

    def _asked(
        self, inputs: Inputs, arch: str | None, options: RunOptions
    ) -> tuple[Inputs, RunOptions]:
        """Flat inputs and options of a query: of the next run, or of a first one on ``arch``."""
        if arch is not None:
            return flatten_inputs(inputs), replace(options, arch=arch)
        given = self._checked_inputs(inputs)
        return given, with_device(options, given, gpu_only=self._gpu_only())

    def _gpu_only(self) -> bool:
        return self.cuda_only and not options.current().cpu_as_cuda

    def _make_fast_path(self, cache: FusionExecutorCache) -> Execute:
        """What ``run`` calls without options: ``execute``, behind a device check if need be."""
        execute = cache.core.execute
        fusion = cache.core.fusion
        ranks = {p: v.tensor.rank for p, v in enumerate(fusion.inputs) if v.is_tensor}
        if not self._gpu_only() or not ranks:
            return execute
        # The executor refuses inputs on two devices, so one tensor decides: one with dims if any.
        first, count = max(ranks, key=lambda p: ranks[p]), len(fusion.inputs)

        def on_cuda(inputs: Inputs) -> list[torch.Tensor]:
            if len(inputs) == count and getattr(inputs[first], "is_cpu", False):
                refuse_cpu(fusion, inputs)
                return execute(inputs, with_device(DEFAULT, inputs, gpu_only=True))
            return execute(inputs)

        return on_cuda
