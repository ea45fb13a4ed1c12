"""The compiled variants of a definition: with constant sizes, or with sizes as arguments.

Signatures that differ in numbers alone are a family. The first ``STATIC_SIGNATURES`` of a family
are compiled with constant sizes. For the next one, the sizes that vary become arguments of the
kernels: an open variant. It is correct for all signatures of the family that pass its guards. It
serves those for which heuristics would choose the same schedule. For any other signature a further
variant is compiled, unless it has the same kernels, or the family has ``MAX_VARIANTS`` already.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .. import options
from ..ir import Fusion
from ..lowering.passes.concretize import InputSignature
from ..symbolic.shape_env import ShapeEnv
from .hot_sizes import HotSizes
from .keys.conditions import Conditions
from .keys.open_sizes import KeyReader, OpenSignature, SplitKey, with_open_sizes
from .keys.recompiles import Recompile
from .keys.schedule_choices import ScheduleChoices
from .keys.signature import Key
from .lru import LRU
from .open_variant import Fit, OpenVariant
from .plan.execution_plan import ExecutionPlan
from .variant_family import Family

MAX_FAMILIES = 64
"""Families kept."""

MAX_RECORDS = 256
"""Compilations kept on record."""

Compile = Callable[[InputSignature, "ShapeEnv | None"], ExecutionPlan]


@dataclass(frozen=True)
class Request:
    """A signature that has no plan yet.

    Attributes
    ----------
    key : Key
        The key of the inputs.
    extra : tuple
        What a family depends on besides the key: the device and the ``RunOptions``.
    signature : callable
        Returns the signature of the inputs, for lowering.
    compile : callable
        Compiles a plan for a signature: with constant sizes, or with the symbols of an env.
    hot : HotSizes, optional
        Counts the calls of plans with open sizes. None where no size gets kernels of its own.
    """

    key: Key
    extra: tuple[object, ...]
    signature: Callable[[], InputSignature]
    compile: Compile
    hot: HotSizes | None = None


def log_fallback(error: Exception) -> None:
    """Log why a lowering with open sizes failed, so that constant sizes are compiled."""
    options.log("cache", f"sizes stay written out: {type(error).__name__}: {error}")


class Variants:
    """Finds or compiles the variant for a signature that has no plan yet.

    Attributes
    ----------
    records : deque of Recompile
        The last compilations, in order.
    """

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.records: deque[Recompile] = deque(maxlen=MAX_RECORDS)
        self._reader = KeyReader(fusion)
        self._families: LRU[object, Family] = LRU(MAX_FAMILIES)
        self._last: SplitKey | None = None

    def clear(self) -> None:
        """Drop all variants; ``records`` stays."""
        self._families.clear()

    def serve(self, request: Request) -> ExecutionPlan:
        """A plan for a signature: of a variant that serves it, else newly compiled."""
        split = self._reader.split(request.key)
        family = self._families.get_or_make((split.family, request.extra), Family)
        with family.lock:
            fit = family.best_fit(split.numbers)
            if fit is not None and family.serves(fit):
                family.note_served(fit.variant)
                return self._watched(request, fit.variant.serve(fit.atoms))
            reason = self._reason(split, family, fit)
            opened = self._open_signature(request, split, family, fit)
            family.remember(split.numbers)
            if opened is not None:
                plan = self._compile_open(request, split, family, reason, opened, fit)
                if plan is not None:
                    return plan
            if fit is not None:
                return self._watched(request, fit.variant.serve(fit.atoms))
            family.static += 1
        plan = self._compile_static(request, split, family, reason)
        if opened is not None:
            # Sizes that are refused either way say nothing of open ones: those raised above.
            with family.lock:
                family.failures += 1
        return plan

    def peek(self, request: Request) -> ExecutionPlan | OpenSignature | None:
        """What ``serve`` would do; nothing is compiled or remembered.

        Returns
        -------
        ExecutionPlan, OpenSignature or None
            The plan of a variant that is there, else the signature that would be compiled with
            open sizes. None where constant sizes would be compiled.
        """
        split = self._reader.split(request.key)
        family = self._families.peek((split.family, request.extra))
        if family is None:
            return None
        with family.lock:
            fit = family.best_fit(split.numbers)
            opened = None
            if fit is None or not family.serves(fit):
                opened = self._open_signature(request, split, family, fit)
            return fit.variant.plan.at(fit.atoms) if opened is None and fit is not None else opened

    def _open_signature(
        self, request: Request, split: SplitKey, family: Family, fit: Fit | None
    ) -> OpenSignature | None:
        """The signature with symbols for its varying sizes; None where sizes stay constant."""
        if not options.current().dynamic_sizes or not family.may_open:
            return None
        others = family.others(split.numbers)
        if fit is not None:
            # The schedule alone is chosen again: the same sizes vary.
            others = [*fit.variant.open_signature.seen]
        seen, scalars = [*others, split.numbers], self._reader.scalars(split)
        return with_open_sizes(self.fusion, request.signature(), seen, scalars)

    def _compile_static(
        self, request: Request, split: SplitKey, family: Family, reason: str
    ) -> ExecutionPlan:
        """Compile with constant sizes."""
        started = time.perf_counter()
        try:
            plan = request.compile(request.signature(), None)
        except BaseException:
            with family.lock:
                family.static -= 1
            raise
        self._note(Recompile(False, reason, seconds=time.perf_counter() - started), plan, split)
        return plan

    def _compile_open(
        self,
        request: Request,
        split: SplitKey,
        family: Family,
        reason: str,
        opened: OpenSignature,
        fit: Fit | None,
    ) -> ExecutionPlan | None:
        """Compile with open sizes.

        None where that fails, or gives the kernels of ``fit``; then ``fit`` is noted as accepted.
        """
        started = time.perf_counter()
        try:
            plan = request.compile(opened.signature, opened.env)
        except Exception as error:  # constant sizes may work, or give a clearer error
            log_fallback(error)
            family.failures += fit is not None
            return None
        if fit is not None and fit.variant.has_kernels_of(plan):
            fit.variant.choices.accept(fit.atoms)
            return None
        opened.env.close()
        names = self._reader.number_names(split)
        conditions = Conditions(opened.env, opened.numbers, names)
        record = Recompile(
            conditions.is_open,
            reason,
            conditions.symbols,
            (*conditions.multiples, *conditions.guards),
            seconds=time.perf_counter() - started,
        )
        self._note(record, plan, split)
        choices = ScheduleChoices(opened.env)
        family.keep(OpenVariant(plan, opened, conditions, choices, record))
        return self._watched(request, plan) if record.dynamic else plan

    def _watched(self, request: Request, plan: ExecutionPlan) -> ExecutionPlan:
        """The plan. Its calls are counted from now on where ``request.hot`` is given."""
        if request.hot is not None:
            request.hot.watch(plan)
        return plan

    def _note(self, record: Recompile, plan: ExecutionPlan, split: SplitKey) -> None:
        self.note(record, plan)
        self._last = split

    def note(self, record: Recompile, plan: ExecutionPlan) -> None:
        """Keep the record of a compilation."""
        record.kernels = sum(step.source is not None for step in plan.steps)
        self.records.append(record)
        options.log("cache", str(record))

    def _reason(self, split: SplitKey, family: Family, fit: Fit | None) -> str:
        """Why no variant serves a signature."""
        if fit is not None:
            return f"schedule chosen again: {fit.variant.choices.difference(fit.atoms)}"
        if family.variants:
            found = [v.conditions.failing(split.numbers) for v in family.variants]
            return found[0] if all(found) else "a better aligned variant is worth it"
        if family.seen:
            return self._reader.number_difference(split, family.seen)
        if self._last is None:
            return "first call"
        return self._reader.family_difference(self._last.family, split.family)
