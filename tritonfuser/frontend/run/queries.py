"""Queries of a definition: what a run would do, in params, segments and kernels; nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...cache.keys.recompiles import Recompiles
from ...errors import ArgumentError, ParamsError
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import Schedule
from ...heuristics.search.schedule_space import Legality, ScheduleSpace
from ...lowering.build import KernelReport
from ...lowering.kernel_source import KernelSource
from ...lowering.run_options import RunOptions
from ...lowering.segments.segmented_fusion import SegmentedFusion
from ..record.inputs import Inputs, flat_runs, flatten_inputs, locate_errors
from .arguments import Params, ScheduleLike, run_options, with_device
from .recorded import Recorded


class Queries(Recorded):
    """What the next run of a definition would do with given inputs."""

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
            given, options = self._query_inputs(inputs, arch, options)
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
            schedule=...)`` takes either, changed or not. Nothing is compiled: params that a run
            chooses again, by the registers of its kernels, are those here after it.

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
            given, options = self._query_inputs(inputs, arch, options)
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
            given, options = self._query_inputs(inputs, arch, run_options())
            return self._core().search_space(given, options)

    def is_legal(
        self, schedule: ScheduleLike, inputs: Inputs, *, arch: str | None = None
    ) -> Legality:
        """Whether ``run(inputs, schedule=schedule)`` takes a schedule. Nothing is compiled.

        How many registers a kernel takes, and whether its shared memory suffices, is known when it
        is compiled: a legal schedule may still be refused by a run on a GPU. Where tensors have no
        elements, a schedule that does not fit is legal: the run chooses another.

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
            given, options = self._query_inputs(inputs, arch, run_options())
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
            given, options = self._query_inputs(inputs, arch, options)
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
            given, options = self._query_inputs(inputs, arch, options)
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
        ArgumentError
            ``arch`` is no text.
        InputError
            The inputs do not fit the definition.
        LoweringError
            A kernel does not compile.
        """
        options = run_options(schedule=schedule)
        if not isinstance(arch, str):
            raise ArgumentError(
                f"arch must name a GPU, such as 'sm_90', got {type(arch).__name__}",
                hint="The inputs come behind it: compile_for('sm_90', [x]).",
            )
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

    def _query_inputs(
        self, inputs: Inputs, arch: str | None, options: RunOptions
    ) -> tuple[Inputs, RunOptions]:
        """Flat inputs and options of a query: of the next run, or of a first one on ``arch``."""
        if arch is not None:
            return flatten_inputs(inputs), replace(options, arch=arch)
        given = self._checked_inputs(inputs)
        return given, with_device(options, given, gpu_only=self._gpu_only())
