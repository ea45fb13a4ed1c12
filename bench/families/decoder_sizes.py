"""Extents of decoders, and the tables in which they are reduced for a CPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Extents of a decoder; ``cached`` tokens were decoded before, 0 in training."""

    batch: int
    tokens: int
    width: int
    heads: int
    groups: int
    hidden: int
    vocabulary: int
    layers: int = 2
    cached: int = 0

    @property
    def head(self) -> int:
        return self.width // self.heads


def decoder_table(
    batch: int,
    tokens: int,
    width: int,
    heads: int,
    groups: int,
    hidden: int,
    vocabulary: int,
    **more: int,
) -> dict[str, int]:
    """The arguments of a decoder's builder."""
    return {
        "batch": batch,
        "tokens": tokens,
        "width": width,
        "heads": heads,
        "groups": groups,
        "hidden": hidden,
        "vocabulary": vocabulary,
        **more,
    }


TINY = decoder_table(2, 24, 64, 4, 2, 96, 200)
TINY_DECODE = {**TINY, "tokens": 1, "cached": 20}
REDUCED = {"filling": TINY, "small": TINY, "decode": TINY_DECODE}
ONE = {**TINY, "batch": 1}
