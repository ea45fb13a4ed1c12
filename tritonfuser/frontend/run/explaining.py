"""``explain``: what a run would do and why, with the times of its kernels where there is a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ...cache.calls.profiling import measured
from ...cache.keys.run_device import device_of
from ...cache.plan.copies import copied
from ..inspect.explain import Explanation, explain_lowered
from ..record.inputs import Inputs, flat_runs, locate_errors
from ..vocabulary.untraced import untraced
from .arguments import Params, ScheduleLike, run_options
from .queries import Queries


class Explainable(Queries):
    """A definition that says what a run of it does."""

    @untraced
    def explain(
        self,
        inputs: Inputs,
        measure: bool = True,
        *,
        arch: str | None = None,
        varying: Sequence[Inputs] = (),
        params: Params | None = None,
        schedule: ScheduleLike | None = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> Explanation:
        """What the next ``run`` would do with inputs like these, and why; prints as a report.

        For each segment: its scheduler and the reasons of those that refused, the reason of the
        cut before it, ops, params, grid, bytes moved, the time these bytes take at the device's
        peak bandwidth, and the least time that any kernel could take, with what limits it. With
        tensors on a GPU also the measured time.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``. They are not written to.
        measure : bool
            Whether to time some twenty runs on a GPU. On a CPU nothing is measured.
        arch : str, optional
            Explain a first run on another GPU, which need not be here: ``"sm_90"``. Nothing is
            measured.
        varying : list of inputs
            Inputs of earlier runs, in place of those that were. Sizes that differ become arguments
            of the kernels, and decisions that depend on them are listed in ``guards``. Nothing is
            measured.
        params, schedule, _enable_options, _disable_options
            As for ``run``.

        Returns
        -------
        Explanation

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
        options = run_options(params, None, _enable_options, _disable_options, schedule)
        with locate_errors(fusion):
            given, options = self._query_inputs(inputs, arch, options)
            core = self._core()
            earlier = flat_runs(varying)
            if not measure or earlier or arch is not None or device_of(given).type == "cpu":
                return explain_lowered(*core.lowered(given, options, earlier))
            plan = core.plan(given, options)
        writes = any(out.alias_of is not None for out in fusion.ir.outputs)
        times = measured(plan, copied(given) if writes else given)
        return explain_lowered(plan.lowered, plan.properties, times)
