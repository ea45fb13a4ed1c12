"""How wide vectors are at some sizes, and what sizes must be multiples of for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.cache.abstract_variants import AbstractVariants
from tests.cache.test_open_and_static_schedules import define
from tests.e2e.checking import CPU
from tests.lowering.graphs import meta
from tritonfuser import DataType
from tritonfuser.cache.keys.open_sizes import OpenSignature, with_open_sizes
from tritonfuser.cache.keys.signature import signature

KINDS = {torch.float32: DataType.Float, torch.bfloat16: DataType.BFloat16}


def opened_at(
    body: Callable[..., Any], dtype: torch.dtype, *shapes: tuple[tuple[int, ...], ...]
) -> OpenSignature:
    """Opened at the last of some calls' shapes, where each call has the same number of tensors."""
    fd = define(body, [len(shape) for shape in shapes[0]], KINDS[dtype])
    specs = [signature(fd.fusion.ir, [meta(*s, dtype=dtype) for s in call], CPU) for call in shapes]
    seen = [
        tuple(n for spec in found for n in (*spec.sizes, *spec.strides))  # type: ignore[union-attr]
        for found in specs
    ]
    made = with_open_sizes(fd.fusion.ir, specs[-1], seen)
    assert made is not None
    return made


def copied(fd: Any, x: Any) -> Any:
    return fd.ops.neg(x)


def transposed(fd: Any, x: Any) -> Any:
    return fd.ops.permute(x, [1, 0])


@pytest.mark.parametrize(
    ("dtype", "columns", "multiple"),
    [
        (torch.bfloat16, 4816, 8),
        (torch.bfloat16, 7508, 2),
        (torch.bfloat16, 1058, 2),
        (torch.bfloat16, 1057, 1),
        (torch.float32, 3240, 4),
        (torch.float32, 1058, 1),
    ],
)
def test_columns_are_multiples_of_what_vectors_need(
    dtype: torch.dtype, columns: int, multiple: int
) -> None:
    made = opened_at(copied, dtype, ((41, 41),), ((72, 73),), ((424, columns),))
    assert [atom.multiple for atom in made.env.atoms] == [1, multiple]


def test_rows_matter_where_they_are_columns_of_an_output() -> None:
    shapes = ((41, 41),), ((75, 73),), ((424, 4816),)
    assert [a.multiple for a in opened_at(copied, torch.bfloat16, *shapes).env.atoms] == [1, 8]
    assert [a.multiple for a in opened_at(transposed, torch.bfloat16, *shapes).env.atoms] == [8, 8]


def test_lengths_between_constant_widths_matter_not() -> None:
    """Strides are multiples of a vector whatever the length is."""
    shapes = ((2, 5, 64),), ((2, 6, 64),), ((2, 48, 64),)
    made = opened_at(copied, torch.float32, *shapes)
    assert [atom.multiple for atom in made.env.atoms] == [1]
    assert not made.misses_vectors([96])


def test_sizes_with_wider_vectors_are_not_served() -> None:
    made = opened_at(copied, torch.bfloat16, ((41, 41),), ((72, 73),), ((424, 1058),))
    assert [atom.multiple for atom in made.env.atoms] == [1, 2]
    assert made.misses_vectors([424, 1600 // 2])
    assert not made.misses_vectors([424, 1604 // 2])  # vectors of 8 bytes have no kernels
    assert not made.misses_vectors([4096, 1602 // 2])


def test_sizes_that_do_not_fit_are_left_to_lowering() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.add(x, y)

    made = opened_at(body, torch.float32, ((4, 5), (4, 5)), ((4, 6), (4, 6)), ((4, 7), (4, 8)))
    assert len(made.env.atoms) == 2


def test_a_softmax_of_columns_counts_on_them_after_odd_ones() -> None:
    """The number of rows is a multiple of 8 alone."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.div(x, fd.ops.sum(x, [0], keepdim=True))

    served = AbstractVariants(define(body, [2], DataType.BFloat16))
    for rows, columns in ((41, 41), (72, 73), (100, 101), (424, 4816)):
        found = served.serve([meta(rows, columns, dtype=torch.bfloat16)])
    (source,) = [s for s in found.sources if s is not None]
    assert "size1 = size1 // 8 * 8" in source.text
