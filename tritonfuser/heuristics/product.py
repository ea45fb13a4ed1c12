"""The facts of a matrix product that a kernel is built around."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from .params import HeuristicParams, MatmulParams
from .problem import Core, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Product(Core):
    """A matrix product ``[batch, m, k] x [batch, k, n]``, and what is fused with it.

    Attributes
    ----------
    batch, m, n, k : int
        Its extents.
    left_bytes, right_bytes : int
        Bytes loaded for each element of the operand. A prologue that reads several tensors, or
        wider ones, loads more than the element has.
    descriptors : bool
        The device's copy engine (TMA) can load tiles of both operands.
    is_k_part : bool
        It is one part of a product whose K was split.
    reduced_columns : int
        Columns that a reduction in the epilogue runs over. 0 where there is none.
    epilogue_bytes : int
        Bytes that the epilogue reads and writes for each element of the result.
    epilogue_draws_random : bool
        The epilogue draws random numbers.
    """

    scheduler: ClassVar[str] = "matmul"
    words: ClassVar[str] = "a matrix product"

    batch: int
    m: int
    n: int
    k: int
    left_bytes: int = 2
    right_bytes: int = 2
    descriptors: bool = False
    is_k_part: bool = False
    reduced_columns: int = 0
    epilogue_bytes: int = 0
    epilogue_draws_random: bool = False

    def sizes(self) -> Iterator[int]:
        """The facts that may vary between runs."""
        yield from (self.batch, self.m)

    def why_not_params(self, params: HeuristicParams) -> tuple[str, str] | None:
        """Where the epilogue reduces columns, each part of a tile has those of one reduction."""
        if not self.reduced_columns or not isinstance(params, MatmulParams):
            return None
        width = self.reduced_columns
        fitting = [parts for parts in (1, 2) if self.n % (parts * width) == 0]
        if (params.block_n, params.parts) in [(parts * width, parts) for parts in fitting]:
            return None
        choices = (f"block_n={parts * width} with parts={parts}" for parts in fitting)
        return (
            f"reduces {width} columns at a time of {self.n}, "
            f"block_n={params.block_n} in {params.parts} parts has others",
            f"{', or '.join(choices)}.",
        )


def product_of(problem: Problem) -> Product | None:
    """The matrix product that a kernel is built around, if it is."""
    return problem.core if isinstance(problem.core, Product) else None
