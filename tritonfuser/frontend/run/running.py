"""Running a definition: ``run``, cached and segmented; ``run_kernel``, one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...errors import ExecutionModeError, InputError
from ...lowering.run_options import RunOptions
from ..inspect.input_text import describe_inputs
from ..record.inputs import Inputs, flatten_inputs, locate_errors
from ..vocabulary.untraced import untraced
from .arguments import Device, Params, ScheduleLike, run_options, with_device
from .bound_plan import BoundPlan, bind
from .executors import KernelExecutor
from .explaining import Explainable
from .recorded import Execute


class Runnable(Explainable):
    """A definition that runs by ``run`` or by ``run_kernel``; one definition uses one of them."""

    # --- running ---------------------------------------------------------------------------

    @untraced
    def run(
        self,
        inputs: Inputs,
        *,
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        device: Device = None,
        save_repro_inputs: bool = False,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[torch.Tensor]:
        """Run the definition: segmented, scheduled and cached automatically.

        The first call for a signature of inputs (sizes, strides, dtypes, device, alignment) cuts
        the definition into segments, chooses params and compiles a kernel for each. Later calls
        find the plan, allocate the outputs and launch, in some microseconds on the host. The plans
        are in ``fd.fec``. To run one kernel with params of your own, see ``run_kernel``.

        ============== ================================================
        segmentation   on: as few kernels as the schedulers accept
        specialisation on: a plan for each signature, or open sizes
        cache          on: an LRU of plans
        scheduling     on, unless ``params`` or ``schedule`` are given
        ============== ================================================

        Parameters
        ----------
        inputs : list or tuple
            Tensors and numbers in the order of the definition; nested lists are flattened. The
            shapes, strides and dtypes are those that ``define_tensor`` declared.
        params : HeuristicParams or list of HeuristicParams, optional
            Params to use in place of ``heuristics(inputs)``, one for each segment.
        schedule : Schedule or dict, optional
            How to cut the definition into kernels, with the params of each, in place of
            ``fd.schedule(inputs)``.
        device : torch.device, str or int, optional
            Where to run a definition that takes no tensors; an int is a CUDA device.
        save_repro_inputs : bool
            Remember the shapes and dtypes of the inputs for ``last_repro_script()``.
        _enable_options, _disable_options : list of str
            Names of nvFuser's options. Two have an effect: ``fuse_matmul`` among the enabled
            makes every matrix product a generated kernel, ``matmul_expr_eval`` among the disabled
            refuses those that would need torch.

        Returns
        -------
        list of Tensor
            The outputs that are not hidden, in order, on the device of the run.

        Raises
        ------
        InputError
            The inputs do not fit the definition; nothing was run. Where an op does not take these
            sizes it is an ``InputShapeError``, which names the op.
        DefinitionError
            An option has an unknown name.
        CacheDirectoryError
            Compiled kernels cannot be written to Triton's cache.
        ParamsError
            ``params`` do not fit the segments, or a field of ``schedule`` cannot be.
        SchedulingError
            ``matmul_expr_eval`` is disabled, and a matrix product cannot be a kernel.
        ExecutionModeError
            ``run_kernel`` was called on this definition before.

        Examples
        --------
        >>> (out,) = fd.run([a, b])
        >>> (chosen,) = fd.heuristics([a, b])
        >>> fd.run([a, b], params=[replace(chosen, num_warps=8)])
        """
        execute = self._fast_path
        if (
            execute is None
            or params is not None
            or schedule is not None
            or save_repro_inputs
            or _enable_options
            or _disable_options
            or (device is not None and not self._decides_device(inputs, device))
        ):
            options = run_options(params, device, _enable_options, _disable_options, schedule)
            return self._run(inputs, options, save_repro_inputs)
        try:
            return execute(inputs)
        except InputError as error:
            return self._run_flattened(execute, inputs, error)

    @untraced
    def plan(
        self,
        inputs: Inputs,
        *,
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        device: Device = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> BoundPlan:
        """The plan of ``run`` for inputs like these, as an object to call.

        Compiles like a first ``run``, and runs nothing. ``plan(inputs)`` takes inputs of this one
        signature; with ``out=`` it writes into given tensors. ``plan.graph(inputs)`` captures it
        as a CUDA graph.

        Parameters
        ----------
        inputs, params, schedule, device, _enable_options, _disable_options
            As for ``run``. The plan keeps none of the tensors.

        Returns
        -------
        BoundPlan

        Raises
        ------
        InputError
            The inputs do not fit the definition.
        ParamsError
            ``params`` do not fit the segments, or a field of ``schedule`` cannot be.
        UnavailableError
            The definition is over a mesh of devices.

        Examples
        --------
        >>> plan = fd.plan([a, b])
        >>> out = plan([a, b])
        >>> plan([a, b], out=out)
        """
        fusion = self._ready()
        options = run_options(params, device, _enable_options, _disable_options, schedule)
        given = self._checked_inputs(inputs)
        with locate_errors(fusion):
            options = with_device(options, given, gpu_only=self._gpu_only())
            return bind(self._core(), given, fusion, options)

    @untraced
    def run_kernel(self, inputs: Inputs, params: Params | None = None) -> list[torch.Tensor]:
        """Run the definition as one kernel, compiled for these inputs: for benchmarks and tests.

        The whole definition must fit one kernel: nothing is segmented, and a reduction that
        ``run`` would split into two kernels is done by one. The kernel is kept for calls with
        inputs of the same signature. Other inputs or params compile a new one, which takes a tenth
        of a second or more. The kernel is in ``fd.ke``.

        ============== ==========================================
        segmentation   off: one kernel, or an error
        specialisation on: for the inputs of the call
        cache          off: the last kernel only
        scheduling     on, unless ``params`` are given
        ============== ==========================================

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        params : HeuristicParams, optional
            Params to use in place of the proposed ones, or of those that ``fd.sched.schedule``
            set; ``fd.ke.params`` has those of the last call.

        Returns
        -------
        list of Tensor
            The outputs that are not hidden, in order.

        Raises
        ------
        SchedulingError
            The definition takes more than one kernel; the message lists the cuts of ``run``.
        ParamsError
            ``params`` do not fit.
        ExecutionModeError
            ``run`` was called on this definition before.

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
        given = self._checked_inputs(inputs)
        if self._ke is None:
            fusion.dump()
        kernel = self._ke or KernelExecutor()
        chosen = fusion.scheduled if params is None else params
        made = kernel.core.fits(given) and params is None
        if not made or (chosen is not None and chosen != kernel.params):
            options = with_device(run_options(chosen), given, gpu_only=self._gpu_only())
            kernel.compile(fusion, given, chosen, device=options.device)
        self._ke = kernel
        return kernel.run(given)

    def _run(
        self,
        inputs: Inputs,
        options: RunOptions,
        save_repro_inputs: bool,
    ) -> list[torch.Tensor]:
        fusion = self._ready()
        if self._ke is not None:
            raise ExecutionModeError(
                "KernelExecutor already exists! Use manual_execute() to execute the fusion.",
                hint="run_kernel() was called on this definition; record another one for run().",
            )
        given = self._checked_inputs(inputs)
        cache = self._executor_cache()
        if self._fec is None:
            fusion.dump()
        if save_repro_inputs:
            self._repro_inputs = describe_inputs(fusion.ir, given)
        with locate_errors(fusion):
            options = with_device(options, given, gpu_only=self._gpu_only())
            outputs = cache.core.execute(given, options)
        if self._fec is None:
            self.fec = cache
        return outputs

    def _run_flattened(
        self, execute: Execute, inputs: Inputs, error: InputError
    ) -> list[torch.Tensor]:
        """Flatten the inputs and run them; raise ``error`` where they were flat before."""
        given = flatten_inputs(inputs)
        with locate_errors(self._ready()):
            if given is inputs:
                raise error
            return execute(given)
