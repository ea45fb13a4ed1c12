"""``schedule`` and ``fd.sched``: queries of nvFuser's schedulers.

A kernel is scheduled by the params of its scheduler, so nvFuser's queries have answers here. Its
functions that transform loops raise an error that says what to do instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from ...cache.dry_run import lower_for
from ...errors import ArgumentError, ParamsError, SchedulingError
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import Schedule
from ...heuristics.schedulers import SCHEDULERS
from ...lowering.legality.scheduler import why_not_scheduler
from ...lowering.run_options import RunOptions
from ...lowering.schedules import schedule_of
from ...lowering.segments.segment import Segment
from ...lowering.segments.segmented_fusion import SegmentedFusion
from ..record.inputs import flatten_inputs
from ..vocabulary.enums import SchedulerType
from ..vocabulary.location import user_line
from ..vocabulary.nvfuser_params import editable, plain
from ..vocabulary.unavailable import SCHEDULE_HINT, Unavailable
from .example_inputs import example_inputs
from .fusion import Fusion

BY_HAND = (
    "apply_mma_swizzle",
    "bounded_transform_backward",
    "bounded_transform_forward",
    "bounded_transform_both",
    "cache_after",
    "cache_and_fork_outputs",
    "cache_before",
    "cache_fork",
    "cache_inputs",
    "circular_buffer",
    "clear_memory_space",
    "create_matmul_params",
    "inline_all_at",
    "inline_at",
    "inline_like",
    "inline_most",
    "inline_selected_at",
    "is_reduction",
    "merge",
    "parallelize",
    "parallelize_all_like",
    "parallelize_like",
    "propagate_parallelization",
    "reduction_factor",
    "reorder",
    "rfactor",
    "set_all_input_vectorization",
    "set_memory_type",
    "split",
    "swizzle",
    "to_string",
    "transform_like",
    "transform_propagate_to_all_from",
    "user_schedule_ir",
    "warp_specialize",
)
"""Names of nvFuser's functions that transform the loops of a kernel, of both frontends."""


_NO_SCHEDULERS = {
    "none": "it stands for no scheduler",
    "resize": "slices, pads and concatenations are index maps here, in kernels of any scheduler",
}
"""What nvFuser's enumeration has beside schedulers of ours."""


class Answer(int):
    """True or False, with the reason of a False. (A bool has no subclasses.)

    Attributes
    ----------
    reason : str
        Why not. Empty for True.
    """

    reason: str

    def __new__(cls, reason: str = "") -> Answer:
        made = super().__new__(cls, not reason)
        made.reason = reason
        return made

    def __repr__(self) -> str:
        return f"False: {self.reason}" if self.reason else "True"

    def __reduce__(self) -> tuple[Any, ...]:
        return Answer, (self.reason,)


class _KernelQuery:
    """A fusion at given sizes, as one kernel, and what its schedulers say of it."""

    def __init__(self, fusion: Fusion, rest: Sequence[Any]) -> None:
        self._ir = fusion.ir
        self._inputs = flatten_inputs(rest[0]) if rest else example_inputs(fusion.ir)
        self._found = self._lowered(RunOptions(two_steps=False))

    @property
    def first(self) -> str:
        """The scheduler of the kernel."""
        return self._found.segments[0].scheduler if self._found.segments else ""

    def of(self, kind: SchedulerType) -> HeuristicParams | str:
        """The params that a scheduler proposes, or why it does not take the fusion."""
        if kind.value in _NO_SCHEDULERS:
            return _NO_SCHEDULERS[kind.value]
        segments = self._found.segments
        if len(segments) != 1:
            kinds = ", ".join(segment.scheduler for segment in segments)
            cuts = "; ".join(self._found.cuts)
            return f"it is {len(segments)} segments, {kinds}{': ' if cuts else ''}{cuts}"
        (segment,) = segments
        if segment.scheduler == kind.value:
            return segment.params
        return self._alternative(segment, kind.value)

    def _alternative(self, segment: Segment, name: str) -> HeuristicParams | str:
        reason = why_not_scheduler(name, segment.problem)
        row = next((row for row in SCHEDULERS if row.name == name), None)
        if reason is not None or row is None or segment.problem is None:
            return reason or f"its scheduler is {segment.scheduler}"
        reason = row.reject_reason(segment.problem)
        if reason is not None:
            return reason
        params = row.propose(segment.problem)
        (own,) = schedule_of(self._found).segments
        schedule = Schedule(segments=(replace(own, params=params),))
        try:
            self._lowered(RunOptions(schedule=schedule))
        except ParamsError as error:
            return error.message
        return params

    def _lowered(self, options: RunOptions) -> SegmentedFusion:
        return lower_for(self._ir, self._inputs, options)[0].segmented


class Scheduling:
    """Queries of the schedulers about a fusion.

    ``schedule.can_schedule(fusion, SchedulerType.pointwise)`` takes any fusion;
    ``fd.sched.can_schedule(SchedulerType.pointwise)`` takes the definition's own. The last
    argument is ``inputs``; without them symbolic extents are taken as 128, as by ``print_kernel``.

    Parameters
    ----------
    own : callable, optional
        ``() -> Fusion``: the fusion where none is given.
    """

    def __init__(self, own: Callable[[], Fusion] | None = None) -> None:
        self._own = own

    def find_compatible_schedulers(self, *args: Any) -> list[SchedulerType]:
        """``(fusion, inputs)`` -> the schedulers that take the fusion as one kernel.

        Returns
        -------
        list of SchedulerType
            That of the next ``run_kernel`` first. Empty where the fusion takes more than one
            kernel.
        """
        fusion, rest = self._fusion_and_rest("find_compatible_schedulers", args)
        asked = _KernelQuery(fusion, rest)
        kinds = [kind for kind in SchedulerType if not isinstance(asked.of(kind), str)]
        return sorted(kinds, key=lambda kind: kind.value != asked.first)

    def can_schedule(self, *args: Any) -> Answer:
        """``(fusion, scheduler_type, inputs)`` -> whether that scheduler takes the fusion.

        Returns
        -------
        Answer
            Equal to True or False; ``.reason`` says why not.
        """
        fusion, rest = self._fusion_and_rest("can_schedule", args)
        kind, rest = self._kind("can_schedule", rest)
        found = _KernelQuery(fusion, rest).of(kind)
        return Answer(found if isinstance(found, str) else "")

    def compute_heuristics(self, *args: Any) -> HeuristicParams:
        """``(fusion, scheduler_type, inputs)`` -> params, to change and give to ``run_kernel``.

        Their fields can be set, under nvFuser's names too where the thing exists.

        Raises
        ------
        SchedulingError
            The scheduler does not take the fusion as one kernel; the text says why.
        """
        fusion, rest = self._fusion_and_rest("compute_heuristics", args)
        kind, rest = self._kind("compute_heuristics", rest)
        found = _KernelQuery(fusion, rest).of(kind)
        if isinstance(found, str):
            raise SchedulingError(
                f"Can not schedule the fusion by {kind.name}: {found}",
                loc=user_line(),
                hint="fd.segments(inputs) shows its kernels; fd.run(inputs) runs them.",
            )
        return editable(found)

    def schedule(self, *args: Any) -> HeuristicParams:
        """``(fusion, scheduler_type, inputs or params)`` -> params that schedule the fusion.

        From then on ``run_kernel`` and ``manual_execute`` take them where none are given.

        Raises
        ------
        ParamsError
            The params are those of another scheduler.
        SchedulingError
            The scheduler does not take the fusion as one kernel.
        """
        fusion, rest = self._fusion_and_rest("schedule", args)
        kind, rest = self._kind("schedule", rest)
        if rest and isinstance(rest[0], HeuristicParams):
            params = rest[0]
            if params.scheduler != kind.value:
                raise ParamsError(
                    f"schedule: expected the params of {kind.name}, got {params}",
                    loc=user_line(),
                    hint=f"compute_heuristics(fusion, SchedulerType.{kind.name}) gives some.",
                )
        else:
            params = self.compute_heuristics(fusion, kind, *rest)
        fusion.scheduled = plain(params)
        return params

    # --- arguments ---------------------------------------------------------------------------

    def _fusion_and_rest(self, name: str, args: Sequence[Any]) -> tuple[Fusion, Sequence[Any]]:
        if args and isinstance(args[0], Fusion):
            return args[0], args[1:]
        if self._own is None:
            raise _incompatible(name, f"expected a Fusion first, got {list(args)}")
        return self._own(), args

    def _kind(self, name: str, args: Sequence[Any]) -> tuple[SchedulerType, Sequence[Any]]:
        if not args or not isinstance(args[0], SchedulerType):
            raise _incompatible(name, f"expected a SchedulerType, got {list(args)}")
        return args[0], args[1:]

    def __getattr__(self, name: str) -> NoReturn:
        near = difflib.get_close_matches(name, dir(type(self)), n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(f"schedule has no function {name!r}{hint}")


def _incompatible(name: str, what: str) -> ArgumentError:
    return ArgumentError(f"{name}(): incompatible function arguments: {what}")


for _name in BY_HAND:
    setattr(Scheduling, _name, Unavailable(f"schedule.{_name}", SCHEDULE_HINT))

schedule = Scheduling()
"""Queries about any fusion."""


IDM_HINT = (
    "There are no loop graphs: fd.segments(inputs) shows the loop nest of each kernel, "
    "fd.fusion.ir the ops."
)


class IdModel:
    """nvFuser's graph of the loops of a kernel. There is none here: making one says so."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Unavailable("idm.IdModel", IDM_HINT)(*args, **kwargs)


class _Idm:
    """``idm``: a namespace of one name."""

    IdModel = IdModel


idm = _Idm()
"""nvFuser's submodule of loop graphs."""
