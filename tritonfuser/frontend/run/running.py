"""Running a definition: ``run``, cached and segmented; ``run_kernel``, one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch

from ...cache.calls.profiling import measured
from ...cache.executor import device_of
from ...cache.plan.copies import copied
from ...errors import ExecutionModeError, InputError
from ...heuristics.params import HeuristicParams
from ...lowering.product_policy import ProductPolicy
from ..inspect.explain import Explanation, explain_lowered
from ..inspect.repro import describe_inputs
from ..record.inputs import Inputs, device_for, flat, placing
from ..vocabulary.nvfuser_options import products_of
from .bound_plan import BoundPlan, bind
from .executors import KernelExecutor, Params
from .recorded import Execute, Recorded

Device = Union[torch.device, str, int, None]


class Runnable(Recorded):
    """A definition that runs, one of two ways: ``run`` and ``run_kernel`` exclude each other."""

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
            nvFuser's options; their names are checked. ``fuse_matmul`` among the first makes
            matrix products generated kernels, ``matmul_expr_eval`` among the second keeps torch
            from running them.

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
            products = products_of(_enable_options, _disable_options)
            return self._run(inputs, params, device, save_repro_inputs, products)
        try:
            return hot(inputs)
        except InputError as error:
            return self._run_flat(hot, inputs, error)

    def plan(
        self,
        inputs: Inputs,
        *,
        params: Sequence[HeuristicParams] | HeuristicParams | None = None,
        device: Device = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> BoundPlan:
        """What ``run`` would call for inputs like these, to call again and again.

        ``plan(inputs)`` takes inputs of this one signature and looks nothing up; with ``out=`` it
        puts results where it is told to. ``plan.graph(inputs)`` captures it as a CUDA graph.
        Compiles like a first ``run``; nothing is run.

        Parameters
        ----------
        inputs, params, device, _enable_options, _disable_options
            As for ``run``. The plan keeps none of the tensors.

        Raises
        ------
        InputError
            The inputs do not fit the definition.
        ParamsError
            The params do not fit, with the reason.

        Examples
        --------
        >>> plan = fd.plan([a, b])
        >>> out = plan([a, b])
        >>> plan([a, b], out=out)
        """
        fusion = self._ready()
        products = products_of(_enable_options, _disable_options)
        given = self._accepted(inputs)
        core = self._core()
        chosen = [params] if isinstance(params, HeuristicParams) else params
        with placing(fusion):
            where = device_for(fusion.ir, given, device, gpu_only=self._gpu_only())
            return bind(core, given, fusion, params=chosen, device=where, products=products)

    def run_kernel(self, inputs: Inputs, params: Params | None = None) -> list[torch.Tensor]:
        """Run the definition as one kernel, compiled once for these inputs: benchmarks, tests.

        The whole definition must fit one kernel: nothing is segmented, a reduction that ``run``
        would do in two steps is done in one, and what does not fit is refused with the place
        where ``run`` would cut it. The kernel is kept for calls with
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
            To use instead of those it would choose, which are ``fd.ke.params`` after a call.

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
            where = device_for(fusion.ir, given, None, gpu_only=self._gpu_only())
            kernel.compile(fusion, given, params, device=where)
        self._ke = kernel
        return kernel.run(given)

    def explain(
        self,
        inputs: Inputs,
        measure: bool = True,
        *,
        arch: str | None = None,
        varying: Sequence[Inputs] = (),
    ) -> Explanation:
        """What ``run`` would do with inputs like these, and why: to print, or to read as data.

        For each segment: the scheduler and why those before it refused, why it is not in a kernel
        before it, ops, params, grid, bytes to move and the time that takes at the device's
        bandwidth; with tensors on a GPU also the time it takes in truth.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``. They are not written to.
        measure : bool
            Whether to run it some twenty times on a GPU. On a CPU nothing is measured.
        arch : str, optional
            Explain for another GPU, that need not be here: ``"sm_90"``; nothing is measured.
        varying : list of inputs
            Inputs of earlier runs whose sizes differ: sizes that do become arguments of the
            kernels, and what was decided by them is among ``guards``. Nothing is measured.

        Raises
        ------
        InputError
            The inputs do not fit, or those of earlier runs differ in more than sizes.

        Examples
        --------
        >>> print(fd.explain([x, y]))
        >>> fd.explain([x, y]).segments[0].refusals
        """
        fusion = self._ready()
        with placing(fusion):
            given = flat(inputs) if arch is not None else self._accepted(inputs)
            core = self._core()
            earlier = [*map(flat, varying)]
            if not measure or earlier or arch is not None or device_of(given).type == "cpu":
                return explain_lowered(*core.lowered(given, arch=arch, varying=earlier))
            plan = core.plan(given)
        writes = any(out.alias_of is not None for out in fusion.ir.outputs)
        times = measured(plan, copied(given) if writes else given)
        return explain_lowered(plan.lowered, plan.properties, times)

    def _run(
        self,
        inputs: Inputs,
        params: Sequence[HeuristicParams] | HeuristicParams | None,
        device: Device,
        save_repro_inputs: bool,
        products: ProductPolicy,
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
            where = device_for(fusion.ir, given, device, gpu_only=self._gpu_only())
            outputs = cache.core.execute(given, params=chosen, device=where, products=products)
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
