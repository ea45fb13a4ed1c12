"""The compiled variants of a definition: with constant sizes, or with sizes as arguments.

Signatures that differ in numbers alone are a family. The first signatures of a family are compiled
with constant sizes. For a further one the sizes that vary become arguments of the kernels. That
variant is right for all signatures of the family that pass its guards, and it serves those of them
for which heuristics would choose the same schedule. Another one opens a variant of its own, unless
it is lowered to the same kernels, or the family has ``MAX_VARIANTS``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import options
from ..forks import Lock
from ..ir import Fusion
from ..lowering.passes.concretize import InputSignature
from ..symbolic.shape_env import ShapeEnv
from .hot_sizes import HotSizes
from .keys.conditions import Conditions
from .keys.open_sizes import KeyReader, Numbers, Opened, Split, opened
from .keys.recompiles import Recompile
from .keys.schedule_choices import ScheduleChoices
from .keys.signature import Key
from .lru import LRU
from .open_variant import Fit, OpenVariant
from .plan.execution_plan import ExecutionPlan

STATIC_SIGNATURES = 2
"""Signatures of a family that are compiled with constant sizes before any have open sizes."""

REMEMBERED_SIGNATURES = 8
"""Signatures of a family that are remembered, to tell which sizes vary."""

MAX_FAILURES = 3
"""Lowerings with open sizes in a row that failed, or made all of them constant, before a family has
constant sizes."""

MAX_VARIANTS = 96
"""Open variants kept for each family: rows over a range of 1,000x are in eight blocks, of four
lengths each, and begin at vectors of three widths."""

MAX_FRUITLESS = 32
"""Open variants in a row that served one signature each, before a family has constant sizes. Of
lengths drawn from ``MAX_VARIANTS`` schedules so many in a row differ once in 300 times."""

MAX_FAMILIES = 64
"""Families kept."""

MAX_RECORDS = 256
"""Compilations kept on record."""

Lower = Callable[[InputSignature, "ShapeEnv | None"], ExecutionPlan]


@dataclass(frozen=True)
class Request:
    """A signature that has no plan yet.

    Attributes
    ----------
    key : Key
        The key of the inputs.
    extra : tuple
        What else separates families: the device and the ``RunOptions``.
    signature : callable
        Gives the signature for lowering.
    lower : callable
        Compiles a plan, with constant sizes or with those of a shape environment open.
    hot : HotSizes, optional
        Counts the calls of plans with open sizes; None where these keep their kernels.
    """

    key: Key
    extra: tuple[object, ...]
    signature: Callable[[], InputSignature]
    lower: Lower
    hot: HotSizes | None = None


@dataclass(eq=False)
class _Family:
    """Signatures that differ in numbers alone, and their variants.

    Attributes
    ----------
    seen : list
        The numbers of the last signatures, the oldest first.
    static : int
        How many were compiled with constant sizes.
    variants : list
        The open variants, the last that served first.
    failures : int
        Lowerings with open sizes in a row that failed, or made all of them constant.
    fruitless : int
        Open variants since one served a second signature.
    """

    seen: list[Numbers] = field(default_factory=list)
    static: int = 0
    variants: list[OpenVariant] = field(default_factory=list)
    failures: int = 0
    fruitless: int = 0
    lock: Lock = field(default_factory=Lock)


def log_fallback(error: Exception) -> None:
    """Log why sizes stay written out: lowering with them open has failed."""
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
        self._families: LRU[object, _Family] = LRU(MAX_FAMILIES)
        self._last: Split | None = None

    def clear(self) -> None:
        """Drop all variants; ``records`` stays."""
        self._families.clear()

    def serve(self, request: Request) -> ExecutionPlan:
        """A plan for a signature: of a variant whose guards it passes, else newly compiled."""
        split = self._reader.split(request.key)
        family = self._families.get_or_make((split.family, request.extra), _Family)
        with family.lock:
            fit = self._fit(split, family)
            if fit is not None and self._serves(fit, family):
                family.variants.remove(fit.variant)
                family.variants.insert(0, fit.variant)
                family.fruitless = 0
                return self._counted(request, fit.variant.serve(fit.atoms))
            reason = self._reason(split, family, fit)
            sizes = self._opened(request, split, family, fit)
            if split.numbers not in family.seen:
                family.seen = [*family.seen[-REMEMBERED_SIGNATURES + 1 :], split.numbers]
            made = None
            if sizes is not None:
                made = self._open(request, split, family, reason, sizes, fit)
            if made is not None:
                return made
            if fit is not None:
                return self._counted(request, fit.variant.serve(fit.atoms))
            family.static += 1
        return self._static(request, split, family, reason)

    def peek(self, request: Request) -> ExecutionPlan | Opened | None:
        """What ``serve`` would do; nothing is compiled or remembered.

        Returns
        -------
        ExecutionPlan, Opened or None
            The plan of a variant that is there, else the signature that would be compiled with
            open sizes. None where constant sizes would be compiled.
        """
        split = self._reader.split(request.key)
        family = self._families.peek((split.family, request.extra))
        if family is None:
            return None
        with family.lock:
            fit = self._fit(split, family)
            sizes = None
            if fit is None or not self._serves(fit, family):
                sizes = self._opened(request, split, family, fit)
            return fit.variant.plan.at(fit.atoms) if sizes is None and fit is not None else sizes

    def _fit(self, split: Split, family: _Family) -> Fit | None:
        """A variant that is right for a signature: one with its schedule, else the most alike."""
        found: list[Fit] = []
        for variant in family.variants:
            atoms = variant.fitting(split.numbers)
            if atoms is not None:
                found.append(Fit(variant, atoms, variant.choices.hold(atoms)))
                if found[-1].as_chosen:
                    return found[-1]
        return max(found, key=lambda fit: fit.variant.choices.agreement(fit.atoms), default=None)

    def _serves(self, fit: Fit, family: _Family) -> bool:
        """Whether a variant serves the sizes that it is right for."""
        return fit.as_chosen or len(family.variants) >= MAX_VARIANTS

    def _opened(
        self, request: Request, split: Split, family: _Family, fit: Fit | None
    ) -> Opened | None:
        """The signature with those of its sizes open that vary; None where none are to be."""
        if not options.current().dynamic_sizes or family.static < STATIC_SIGNATURES:
            return None
        if family.failures >= MAX_FAILURES or family.fruitless >= MAX_FRUITLESS:
            return None
        others = [n for n in family.seen if n != split.numbers]
        if split.numbers not in family.seen:
            others = others[-REMEMBERED_SIGNATURES + 1 :]
        if fit is not None:
            # The schedule alone is chosen again: the same sizes vary.
            others = [*fit.variant.sizes.seen]
        seen, scalars = [*others, split.numbers], self._reader.scalars(split)
        return opened(self.fusion, request.signature(), seen, scalars)

    def _static(
        self, request: Request, split: Split, family: _Family, reason: str
    ) -> ExecutionPlan:
        """Compile with constant sizes."""
        started = time.perf_counter()
        try:
            plan = request.lower(request.signature(), None)
        except BaseException:
            with family.lock:
                family.static -= 1
            raise
        self._note(Recompile(False, reason, seconds=time.perf_counter() - started), plan, split)
        return plan

    def _open(
        self,
        request: Request,
        split: Split,
        family: _Family,
        reason: str,
        sizes: Opened,
        fit: Fit | None,
    ) -> ExecutionPlan | None:
        """Compile with open sizes; None where that fails, or gives the kernels that fit already."""
        started = time.perf_counter()
        try:
            plan = request.lower(sizes.signature, sizes.env)
        except Exception as error:  # written out they may do, or tell what is wrong better
            family.failures += 1
            log_fallback(error)
            return None
        if fit is not None and fit.variant.has_kernels_of(plan):
            fit.variant.choices.accept(fit.atoms)
            return None
        sizes.env.close()
        conditions = Conditions(sizes.env, sizes.numbers, self._reader.words(split))
        record = Recompile(
            conditions.is_open,
            reason,
            conditions.symbols,
            (*conditions.multiples, *conditions.guards),
            seconds=time.perf_counter() - started,
        )
        self._note(record, plan, split)
        self._keep(family, OpenVariant(plan, sizes, conditions, ScheduleChoices(sizes.env), record))
        return self._counted(request, plan) if record.dynamic else plan

    def _counted(self, request: Request, plan: ExecutionPlan) -> ExecutionPlan:
        """The plan, whose calls are counted if the request has them counted."""
        if request.hot is not None:
            request.hot.watch(plan)
        return plan

    def _keep(self, family: _Family, variant: OpenVariant) -> None:
        """Add a variant in front, unless all its sizes turned out constant."""
        if not variant.record.dynamic:
            family.failures += 1
            return
        family.failures = 0
        family.fruitless += 1
        family.variants = [variant, *family.variants[: MAX_VARIANTS - 1]]

    def _note(self, record: Recompile, plan: ExecutionPlan, split: Split) -> None:
        self.note(record, plan)
        self._last = split

    def note(self, record: Recompile, plan: ExecutionPlan) -> None:
        """Keep the record of a compilation."""
        record.kernels = sum(step.source is not None for step in plan.steps)
        self.records.append(record)
        options.log("cache", str(record))

    def _reason(self, split: Split, family: _Family, fit: Fit | None) -> str:
        """Why no variant serves a signature."""
        if fit is not None:
            return f"schedule chosen again: {fit.variant.choices.difference(fit.atoms)}"
        if family.variants:
            found = [v.conditions.failing(split.numbers) for v in family.variants]
            return found[0] if all(found) else "a better aligned variant is worth it"
        if family.seen:
            return self._reader.difference(split, family.seen)
        if self._last is None:
            return "first call"
        return self._reader.other_kind(self._last.family, split.family)
