"""``FusionExecutorCache``: a definition with its compiled plans, one for each signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Union

import torch

from .. import options as settings
from ..device import DeviceProperties
from ..errors import TritonFuserError
from ..ir import Fusion
from ..lowering.build import hash_triton_ahead
from ..lowering.lowered import Lowered
from ..lowering.memo import Memo, no_memo
from ..lowering.passes.concretize import InputSignature
from ..lowering.pipeline import lower
from ..lowering.run_options import DEFAULT, RunOptions
from ..symbolic.shape_env import ShapeEnv
from .abstract_run import AbstractRun
from .calls.diagnosis import refuse_unlisted
from .calls.gradient_warning import warn_detached
from .calls.guarded_calls import GuardedCall, NoGuardedCall, guarded_call
from .calls.profiling import register_plan
from .dry_run import checked_device, lower_for, lower_with_open_sizes, properties_of
from .hot_sizes import HotSizes
from .keys.open_sizes import OpenSignature
from .keys.recompiles import Recompiles
from .keys.signature import MISFIT_ERRORS, key_maker, signature
from .keys.storage import is_abstract_run, modes_active
from .lru import LRU
from .plan.capture import refuse_first_run
from .plan.execution_plan import ExecutionPlan, make_plan
from .register_feedback import with_register_feedback
from .run_queries import RunQueries
from .stored_schedules import StoredSchedules, log_unused
from .tuned.keys import StoreKey
from .variants import Request, Variants

Tune = Callable[["FusionExecutorCache", Sequence[Any], Union[torch.device, None]], None]
"""Tunes a definition, given its executor, for flat inputs on a device."""


class FusionExecutorCache(RunQueries):
    """A definition with its compiled plans: an LRU with one for each signature of inputs.

    Inputs are flat in all methods: tensors and Python numbers, in the order of the definition.

    Parameters
    ----------
    fusion : Fusion
        The recorded definition.
    max_plans : int
        Plans kept.
    fusion_id : int
        The number of the definition in profiles.
    hot_sizes : bool
        Whether sizes that run often may get kernels of their own.
    tune : callable, optional
        Tunes the definition for the inputs of a first run, and stores the schedule, where
        ``TRITONFUSER_AUTOTUNE`` asks for it.
    memo : Memo
        Memoizes what runs under other schedules have in common, until an environment variable of
        this package changes.
    """

    def __init__(
        self,
        fusion: Fusion,
        *,
        max_plans: int = 256,
        fusion_id: int = 0,
        hot_sizes: bool = True,
        tune: Tune | None = None,
        memo: Memo = no_memo,
    ) -> None:
        self.fusion = fusion
        self._memo = memo
        self._tune = tune
        self._stored = StoredSchedules(fusion)
        self._fusion_id = fusion_id
        self._key = key_maker(fusion)
        self._plans: LRU[Any, ExecutionPlan] = LRU(max_plans)
        self._abstract_run = AbstractRun(fusion, max_plans)
        self._variants = Variants(fusion)
        self._hot = HotSizes(fusion, fusion_id, self._variants.note) if hot_sizes else None
        self._settings = settings.current()
        self._find = self._plans.get
        self._last: GuardedCall | type[NoGuardedCall] = NoGuardedCall
        # Without tensors torch's current device decides, which no guard looks at.
        self._may_guard = any(value.is_tensor for value in fusion.inputs)

    # -- running -------------------------------------------------------------

    def execute(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> list[torch.Tensor]:
        """Run the definition.

        Raises
        ------
        InputError, UnsupportedDeviceError
            The inputs do not fit the definition.
        ParamsError
            ``options.params`` do not fit the segments.
        SchedulingError
            ``options.products`` excludes torch, and a matrix product cannot be a kernel.
        """
        if options is DEFAULT and settings.current() is self._settings:
            return self._last.run(inputs, self._guard_missed)
        return self._checked_run(inputs, options)

    def _guard_missed(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Run inputs that the last guarded call refused, by their key.

        The next call tries the guard of the plan that is found.
        """
        refuse_unlisted(inputs)
        try:
            plan = None if modes_active() else self._find(self._key(inputs))
        except MISFIT_ERRORS:
            plan = None
        if plan is None:
            return self._checked_run(inputs, DEFAULT)
        if plan.heat is not None:
            plan = self._count_call(plan, inputs)
        if self._may_guard and not modes_active():
            self._last = guarded_call(plan, self.fusion, inputs, self._last)
        return plan.run(inputs)

    def _checked_run(self, inputs: Sequence[Any], options: RunOptions) -> list[torch.Tensor]:
        """Run inputs that have no plan yet. Fake and meta tensors give outputs of their kind."""
        refuse_unlisted(inputs)
        if is_abstract_run(inputs):
            self._drop_if_settings_changed()
            return self._abstract_run(inputs, options)
        warn_detached(inputs)
        return self.plan(inputs, options).run(inputs)

    def plan(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> ExecutionPlan:
        """The plan for inputs like these, compiled if there is none; errors as ``execute``."""
        self._drop_if_settings_changed()
        request, cached = self._request(inputs, options)
        self._last = NoGuardedCall  # ``newest`` is this plan from now on
        plan = self._plans.get_or_make(
            cached, lambda: register_plan(self._new_plan(request, inputs, options))
        )
        return plan if plan.heat is None else self._count_call(plan, inputs)

    def _count_call(self, plan: ExecutionPlan, inputs: Sequence[Any]) -> ExecutionPlan:
        """Count a call of a plan with open sizes. Returns the plan for this call and later ones.

        That is a new plan with constant sizes where ``HotSizes`` compiles one.
        """
        made = plan if self._hot is None else self._hot.counted(plan, inputs)
        if made is not plan:
            self._plans.replace(self._key(inputs), plan, register_plan(made))
        return made

    def _new_plan(
        self, request: Request, inputs: Sequence[Any], options: RunOptions
    ) -> ExecutionPlan:
        """Make the plan for a request: with the stored schedule if there is one.

        Where ``TRITONFUSER_AUTOTUNE`` asks for it, a schedule is searched and stored before.
        """
        tuned = self._stored.options(inputs, options)
        if tuned is None and self._tunes_first(request, inputs, options):
            tuned = self._stored.options(inputs, options)
        if tuned is not None:
            try:
                return self._variants.serve(self._request(inputs, tuned)[0])
            except TritonFuserError as error:
                log_unused(error)
        return self._variants.serve(request)

    def _tunes_first(self, request: Request, inputs: Sequence[Any], options: RunOptions) -> bool:
        """Tune the definition for a first run, where that is asked for; whether it did."""

        def is_served() -> bool:
            """Whether an open variant serves the run, or is compiled for it."""
            return self._variants.peek(request) is not None

        if self._tune is None or not self._stored.begins_search(inputs, options, is_served):
            return False
        self._tune(self, inputs, options.device)
        return True

    def _request(self, inputs: Sequence[Any], options: RunOptions) -> tuple[Request, Any]:
        """The request to the variants, and the key of its plan in ``_plans``."""
        where = checked_device(self.fusion, inputs, options.device)
        if options.device is not None:
            options = replace(options, device=where)
        key = self._key(inputs)
        request = Request(
            key=key,
            # A stored schedule is for one signature, so each of them is a family of its own.
            extra=(where, options, key if options.origin else None),
            signature=lambda: signature(self.fusion, inputs, where),
            compile=lambda found, env: self._compile(inputs, found, env, where, options),
            hot=self._hot if options == DEFAULT else None,
        )
        return request, key if options == DEFAULT else (key, options)

    def _compile(
        self,
        inputs: Sequence[Any],
        found: InputSignature,
        env: ShapeEnv | None,
        where: torch.device,
        options: RunOptions,
    ) -> ExecutionPlan:
        refuse_first_run(where)
        properties = properties_of(where, options)
        if not properties.is_cpu:
            hash_triton_ahead()
        lowered = lower(self.fusion, found, properties, options, env, self._memo)
        lowered = with_register_feedback(self.fusion, lowered, inputs, properties, options, where)
        return make_plan(lowered, inputs, where, properties, self._fusion_id)

    def _drop_if_settings_changed(self) -> None:
        """Drop all plans where environment variables changed since they were compiled."""
        if settings.current() is not self._settings:
            self._plans.clear()
            self._memo = no_memo
            self._abstract_run.clear()
            self._variants.clear()
            if self._hot is not None:
                self._hot.clear()
            self._key = key_maker(self.fusion)
            self._settings = settings.current()

    # -- tuned schedules -----------------------------------------------------

    def store_key(self, inputs: Sequence[Any], device: torch.device | None = None) -> StoreKey:
        """The key of the schedule that is stored for inputs like these."""
        return self._stored.key(inputs, device)

    def signature(
        self, inputs: Sequence[Any], device: torch.device | None = None
    ) -> InputSignature:
        """The signature of inputs: the properties that schedules and kernels depend on."""
        where = checked_device(self.fusion, inputs, device)
        return signature(self.fusion, inputs, where)

    def forget(self, inputs: Sequence[Any]) -> None:
        """Drop the plan for inputs like these, so that the next run looks for a stored schedule."""
        self._plans.drop(self._key(inputs))
        self._last = NoGuardedCall

    # -- what was run --------------------------------------------------------

    def recompiles(self) -> Recompiles:
        """The compilations for runs, in order, each with its reason."""
        return Recompiles(self._variants.records)

    def is_compiled(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs like these have been run."""
        try:
            return self._key(inputs) in self._plans
        except MISFIT_ERRORS:
            return False

    def newest(self) -> ExecutionPlan | None:
        """The plan that ran last."""
        return self._plans.newest()

    # -- what would be run ---------------------------------------------------

    def lowered(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> tuple[Lowered, DeviceProperties]:
        """Segments, params and kernels of the next run, and the device they are for.

        They are those of the existing plan, else of the plan that the next run would compile after
        the runs so far, before params are chosen again by the registers of its kernels: nothing is
        compiled or remembered. With ``options.arch`` or ``varying``, and for fake and meta tensors,
        earlier runs do not count; see ``lower_for``.
        """
        first = settings.current() is not self._settings or is_abstract_run(inputs)
        if first or options.arch is not None or varying:
            return lower_for(self.fusion, inputs, options, varying)
        request, cached = self._request(inputs, options)
        found: ExecutionPlan | OpenSignature | None = self._plans.peek(cached)
        tuned = None if found is not None else self._stored.options(inputs, options)
        if tuned is not None:
            try:
                return lower_for(self.fusion, inputs, tuned)
            except TritonFuserError as error:  # as in a run
                log_unused(error)
        found = found or self._variants.peek(request)
        if isinstance(found, ExecutionPlan):
            alone = None if self._hot is None else self._hot.next(found)
            return alone or found.lowered, found.properties
        if found is not None:
            made = lower_with_open_sizes(self.fusion, inputs, options, found)
            if made is not None:
                return made
        return lower_for(self.fusion, inputs, options)
