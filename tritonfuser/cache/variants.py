"""The compiled variants of a definition: for one set of sizes, or for any that pass its guards.

The first signatures of a kind are compiled with their sizes written out. When one more differs
from those in nothing but numbers, the numbers that vary become arguments, and what is made then
serves all signatures that its guards let through.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import options
from ..ir import Fusion
from ..lowering.passes.concretize import InputSignature
from ..symbolic.shape_env import Ledger
from .keys.conditions import Conditions
from .keys.open_sizes import KeyReader, Numbers, Split, opened
from .keys.recompiles import Recompile
from .keys.signature import Key
from .lru import LRU
from .plan.execution_plan import ExecutionPlan

STATIC = 2
"""Signatures of a kind that are compiled with their sizes written out before any are opened."""

SEEN = 8
"""Signatures of a kind that are remembered, to tell what varies."""

FRUITLESS = 3
"""Variants in a row that served nobody else, before a kind is compiled for its sizes alone."""

MOST = 16
"""Open variants of a kind that are kept."""

KINDS = 64
"""Kinds of signatures that are kept."""

RECORDS = 256
"""Compilations that are kept on record."""

Lower = Callable[[InputSignature, "Ledger | None"], ExecutionPlan]


@dataclass(frozen=True)
class Request:
    """A signature to be served.

    Attributes
    ----------
    key : Key
        Its key.
    extra : tuple
        What else tells kinds apart: who computes products.
    signature : callable
        What lowering needs to know of it.
    lower : callable
        Compiles it, at its sizes or with those of a ledger open.
    reason : str
        Why it is to be compiled for itself, whatever there is; empty if it is not.
    """

    key: Key
    extra: tuple[object, ...]
    signature: Callable[[], InputSignature]
    lower: Lower
    reason: str = ""


@dataclass(eq=False)
class _Variant:
    """An open variant."""

    plan: ExecutionPlan
    conditions: Conditions
    record: Recompile

    def fitting(self, numbers: Numbers) -> ExecutionPlan | None:
        """The plan at these numbers; None where they do not fit, or fit a better variant."""
        atoms = self.conditions.bind(numbers)
        if atoms is None or self.conditions.misses_alignment(atoms):
            return None
        self.record.served += 1
        return self.plan.at(atoms)


@dataclass(eq=False)
class _Kind:
    """Signatures that differ in numbers alone."""

    seen: list[Numbers] = field(default_factory=list)
    static: int = 0
    variants: list[_Variant] = field(default_factory=list)
    fruitless: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Variants:
    """Serves signatures that have no plan yet.

    Attributes
    ----------
    records : deque of Recompile
        What was compiled, in order; the oldest go.
    """

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.records: deque[Recompile] = deque(maxlen=RECORDS)
        self._reader = KeyReader(fusion)
        self._kinds: LRU[object, _Kind] = LRU(KINDS)
        self._last: Split | None = None

    def clear(self) -> None:
        """Forget all variants; what was compiled stays on record."""
        self._kinds.clear()

    def serve(self, request: Request) -> ExecutionPlan:
        """A plan for a signature: of a variant that takes it, or newly compiled."""
        split = self._reader.split(request.key)
        if request.reason:
            return self._static(request, split, _Kind(), request.reason)
        kind = self._kinds.get_or_make((split.family, request.extra), _Kind)
        with kind.lock:
            found = self._fitting(kind, split.numbers)
            if found is not None:
                return found
            reason = self._reason(split, kind)
            if split.numbers not in kind.seen:
                kind.seen = [*kind.seen[-SEEN + 1 :], split.numbers]
            if options.current().dynamic_sizes and kind.static >= STATIC:
                made = self._open(request, split, kind, reason)
                if made is not None:
                    return made
            kind.static += 1
        return self._static(request, split, kind, reason)

    def _fitting(self, kind: _Kind, numbers: Numbers) -> ExecutionPlan | None:
        return next((p for v in kind.variants if (p := v.fitting(numbers)) is not None), None)

    def _static(self, request: Request, split: Split, kind: _Kind, reason: str) -> ExecutionPlan:
        """Compiled with its sizes written out."""
        started = time.perf_counter()
        try:
            plan = request.lower(request.signature(), None)
        except BaseException:
            with kind.lock:
                kind.static -= 1
            raise
        self._note(Recompile(False, reason, seconds=time.perf_counter() - started), plan, split)
        return plan

    def _open(
        self, request: Request, split: Split, kind: _Kind, reason: str
    ) -> ExecutionPlan | None:
        """Compiled with those of its sizes open that vary; None where that gives nothing."""
        if kind.fruitless >= FRUITLESS:
            return None
        numbers = [n for n in kind.seen if n != split.numbers]
        scalars = self._reader.scalars(split)
        seen = [*numbers, split.numbers]
        # Others take it already, without counting on what sizes are multiples of.
        aligned = any(not v.conditions.failing(split.numbers) for v in kind.variants)
        sizes = opened(self.fusion, request.signature(), seen, scalars, aligned=aligned)
        if sizes is None:
            return None
        started = time.perf_counter()
        try:
            plan = request.lower(sizes.signature, sizes.ledger)
        except Exception as error:  # written out they may do, or tell what is wrong better
            kind.fruitless += 1
            options.log("cache", f"sizes stay written out: {type(error).__name__}: {error}")
            return None
        sizes.ledger.close()
        conditions = Conditions(sizes.ledger, sizes.numbers, self._reader.words(split))
        record = Recompile(
            conditions.is_open,
            reason,
            conditions.symbols,
            (*conditions.multiples, *conditions.guards),
            seconds=time.perf_counter() - started,
        )
        self._note(record, plan, split)
        self._keep(kind, _Variant(plan, conditions, record))
        return plan

    def _keep(self, kind: _Kind, variant: _Variant) -> None:
        """The newest first; not one that takes no other signature."""
        last = kind.variants[0].record if kind.variants else None
        if not variant.record.dynamic or (last is not None and last.served == 1):
            kind.fruitless += 1
        else:
            kind.fruitless = 0
        if variant.record.dynamic:
            kind.variants = [variant, *kind.variants[: MOST - 1]]

    def _note(self, record: Recompile, plan: ExecutionPlan, split: Split) -> None:
        record.kernels = sum(step.source is not None for step in plan.steps)
        self.records.append(record)
        self._last = split

    def _reason(self, split: Split, kind: _Kind) -> str:
        """Why no variant takes a signature."""
        if kind.variants:
            found = [v.conditions.failing(split.numbers) for v in kind.variants]
            return found[0] if all(found) else "a better aligned variant is worth it"
        if kind.seen:
            return self._reader.difference(split, kind.seen)
        if self._last is None:
            return "first call"
        return self._reader.other_kind(self._last.family, split.family)
