"""``Family``: signatures that differ in numbers alone, and the open variants that serve them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..forks import Lock
from .keys.open_sizes import KeyNumbers
from .open_variant import Fit, OpenVariant

STATIC_SIGNATURES = 2
"""Signatures of a family that are compiled with constant sizes before any have open sizes."""

REMEMBERED_SIGNATURES = 8
"""Signatures of a family that are remembered, to tell which sizes vary."""

MAX_FAILURES = 3
"""Consecutive lowerings with open sizes that failed, or made all sizes constant, after which a
family is compiled with constant sizes only."""

MAX_VARIANTS = 96
"""Open variants kept for each family. Row lengths over a range of 1,000x need 8 block sizes with 4
length classes each and 3 vector widths: 96."""

MAX_FRUITLESS = 32
"""Consecutive open variants that served one signature each, after which a family is compiled with
constant sizes only. For random lengths with ``MAX_VARIANTS`` schedules that happens once in 300."""


@dataclass(eq=False)
class Family:
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
        Consecutive lowerings with open sizes that failed, or made all sizes constant.
    fruitless : int
        Open variants compiled since one last served a second signature.
    lock : Lock
        Guards the other fields. Variants are compiled under it, constant sizes are not.
    """

    seen: list[KeyNumbers] = field(default_factory=list)
    static: int = 0
    variants: list[OpenVariant] = field(default_factory=list)
    failures: int = 0
    fruitless: int = 0
    lock: Lock = field(default_factory=Lock)

    def remember(self, numbers: KeyNumbers) -> None:
        """Add the numbers of a signature to ``seen``; the oldest are dropped."""
        if numbers not in self.seen:
            self.seen = [*self.seen[-REMEMBERED_SIGNATURES + 1 :], numbers]

    @property
    def may_open(self) -> bool:
        """Whether a further signature may be compiled with open sizes."""
        if self.static < STATIC_SIGNATURES:
            return False
        return self.failures < MAX_FAILURES and self.fruitless < MAX_FRUITLESS

    def others(self, numbers: KeyNumbers) -> list[KeyNumbers]:
        """The numbers to compare those of a signature with, to tell which of them vary."""
        found = [n for n in self.seen if n != numbers]
        return found if numbers in self.seen else found[-REMEMBERED_SIGNATURES + 1 :]

    def best_fit(self, numbers: KeyNumbers) -> Fit | None:
        """The variant to serve a signature, of those that are correct for it; None without any.

        It is the first whose schedule heuristics would choose, else the one with the most answers
        of ``ScheduleChoices`` alike.
        """
        found: list[Fit] = []
        for variant in self.variants:
            atoms = variant.bind(numbers)
            if atoms is not None:
                found.append(Fit(variant, atoms, variant.choices.are_accepted(atoms)))
                if found[-1].has_chosen_schedule:
                    return found[-1]
        return max(found, key=lambda fit: fit.variant.choices.agreement(fit.atoms), default=None)

    def serves(self, fit: Fit) -> bool:
        """Whether a fitting variant serves a signature, so that nothing is compiled for it."""
        return fit.has_chosen_schedule or len(self.variants) >= MAX_VARIANTS

    def note_served(self, variant: OpenVariant) -> None:
        """Put the variant that serves a further signature in front."""
        self.variants.remove(variant)
        self.variants.insert(0, variant)
        self.fruitless = 0

    def keep(self, variant: OpenVariant) -> None:
        """Add a variant in front, unless all its sizes turned out constant."""
        if not variant.record.dynamic:
            self.failures += 1
            return
        self.failures = 0
        self.fruitless += 1
        self.variants = [variant, *self.variants[: MAX_VARIANTS - 1]]
