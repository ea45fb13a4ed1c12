"""``schedule`` and ``fd.sched``: queries of nvFuser's schedulers.

A kernel is scheduled by the params of its scheduler, so nvFuser's queries have answers here. Its
functions that transform loops raise an error that says what to do instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...cache.dry_run import lower_for
from ...errors import ArgumentError, SchedulingError
from ...heuristics.params import HeuristicParams
from ...lowering.run_options import RunOptions
from ...lowering.segments import Segment
from ..record.inputs import flatten_inputs
from ..vocabulary.enums import SchedulerType
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import SCHEDULE_HINT, Unavailable
from .fusion import Fusion, example_input

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


class Scheduling:
    """Queries of the schedulers about a fusion.

    ``schedule.can_schedule(fusion, SchedulerType.pointwise)`` takes any fusion;
    ``fd.sched.can_schedule(SchedulerType.pointwise)`` takes the definition's own. The last
    argument is ``inputs``; without them symbolic extents are taken as 128.

    Parameters
    ----------
    own : callable, optional
        ``() -> Fusion``: the fusion where none is given.
    """

    def __init__(self, own: Callable[[], Fusion] | None = None) -> None:
        self._own = own

    def find_compatible_schedulers(self, *args: Any) -> list[SchedulerType]:
        """``(fusion, inputs)`` -> the scheduler that takes the fusion as one kernel, in a list.

        Returns
        -------
        list of SchedulerType
            Empty where the fusion takes more than one kernel.
        """
        found = self._segments(*self._fusion_and_rest("find_compatible_schedulers", args))
        return [SchedulerType(found[0].scheduler)] if len(found) == 1 else []

    def can_schedule(self, *args: Any) -> bool:
        """``(fusion, scheduler_type, inputs)`` -> whether that scheduler takes the fusion."""
        fusion, rest = self._fusion_and_rest("can_schedule", args)
        kind, rest = self._kind("can_schedule", rest)
        return self.find_compatible_schedulers(fusion, *rest) == [kind]

    def compute_heuristics(self, *args: Any) -> HeuristicParams:
        """``(fusion, scheduler_type, inputs)`` -> params, to change and give to ``run_kernel``.

        Raises
        ------
        SchedulingError
            The scheduler does not take the fusion as one kernel.
        """
        fusion, rest = self._fusion_and_rest("compute_heuristics", args)
        kind, rest = self._kind("compute_heuristics", rest)
        found = self._segments(fusion, rest)
        if [segment.scheduler for segment in found] != [kind.value]:
            kinds = ", ".join(segment.scheduler for segment in found)
            raise SchedulingError(
                f"Can not schedule the fusion by {kind.name}: it is {len(found)} segments, {kinds}",
                loc=user_line(),
                hint="fd.segments(inputs) shows them; fd.run(inputs) runs them.",
            )
        return found[0].params

    def schedule(self, *args: Any) -> HeuristicParams:
        """``(fusion, scheduler_type, inputs or params)`` -> params that schedule the fusion.

        Nothing is done to the fusion: give the params to ``run_kernel`` or ``manual_execute``.
        """
        fusion, rest = self._fusion_and_rest("schedule", args)
        kind, rest = self._kind("schedule", rest)
        if rest and isinstance(rest[0], HeuristicParams):
            return rest[0]
        return self.compute_heuristics(fusion, kind, *rest)

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

    def _segments(self, fusion: Fusion, rest: Sequence[Any]) -> tuple[Segment, ...]:
        given = (
            flatten_inputs(rest[0])
            if rest
            else [example_input(value) for value in fusion.ir.inputs]
        )
        return lower_for(fusion.ir, given, RunOptions(two_steps=False))[0].segmented.segments

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
