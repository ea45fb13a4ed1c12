"""Loads and stores without a run that Triton proves are of the block whose dim 0 is nearer."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, check, lowered, record, small, texts
from tritonfuser.lowering.backend.compile import compile_kernel


def odd_columns(fd: Any, x: Any) -> Any:
    """Sums of rows whose elements are in pieces of an odd number."""
    return fd.ops.sum(fd.ops.exp(x), [1, 3])


def pairs_and_transposed(fd: Any, x: Any) -> Any:
    """Halves of pairs, in the order of the rows and in that of the columns."""
    second = fd.ops.slice(x, [0, 0, 1], [*x.shape()[:2], 2], [1, 1, 1])
    first = fd.ops.slice(x, [0, 0, 0], [*x.shape()[:2], 1], [1, 1, 1])
    turned = fd.ops.cat([fd.ops.neg(second), first], 2)
    return turned, fd.ops.add(fd.ops.permute(turned, [2, 1, 0]), 1.0)


def gathered(fd: Any, x: Any, place: Any) -> Any:
    """Columns of rows, at indices from memory."""
    return fd.ops.sum(fd.ops.index_select(x, place, 1), [1])


def repeated(fd: Any, x: Any, statistics: Any) -> Any:
    """Sums of columns, of a tensor less what some successive rows have in common."""
    less = fd.ops.sub(x, fd.ops.broadcast(statistics, [False, True, False]))
    return fd.ops.sum(less, [0, 1]), less


CASES = {
    "odd columns": (odd_columns, [noise(96, 3, 2, 33)]),
    "masked odd columns": (odd_columns, [noise(77, 3, 3, 37)]),
    "repeated for successive rows": (repeated, [noise(6, 50, 33), noise(6, 33)]),
    "halves of pairs": (pairs_and_transposed, [noise(70, 40, 2)]),
    "gathered": (gathered, [noise(50, 30), torch.randint(0, 30, (45,))]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_torch(name: str) -> None:
    body, inputs = CASES[name]
    for facts in (H200, small(1), CPU):
        check(body, *inputs, facts=facts, tolerance=1e-4)


def test_values_that_are_not_finite() -> None:
    x = noise(96, 3, 2, 33)
    x[3, 0, 0, 0], x[4, 2, 1, 32], x[5] = torch.nan, -torch.inf, -0.0
    check(odd_columns, x, facts=small(1), tolerance=1e-4)


def test_rows_in_odd_pieces_are_loaded_along_themselves() -> None:
    given = [noise(4096, 3, 2, 33)]
    (text,) = texts(lowered(record(odd_columns, given), given, H200))
    assert "tl.load(tl.trans(tv0_ptr + " in text and "mask=tl.trans(" in text


def test_columns_that_repeat_are_loaded_along_themselves() -> None:
    """Down a column neighbours mostly share an element, of one sector, where a row of them fills a
    cache line. H200, with a pipeline: 6.4 ms by lanes down columns, 1.2 along rows."""
    given = [noise(40, 1000, 333), noise(40, 333)]
    first, *_ = texts(lowered(record(repeated, given), given, H200))
    assert "% 333" in first or "remainder(x, 333)" in first
    assert "tl.trans(" not in first


def test_runs_that_are_proven_stay_as_they_are() -> None:
    given = [noise(4096, 3, 2, 32)]
    (text,) = texts(lowered(record(odd_columns, given), given, H200))
    assert "tl.trans(" not in text


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_kernels_compile(arch: str) -> None:
    given = [noise(4096, 3, 2, 33)]
    found = lowered(record(odd_columns, given), given, H200)
    (source,) = found.sources
    assert compile_kernel(source, arch, (True,) * len(source.args)).spilled_bytes == 0


def test_an_index_from_memory_is_one_of_its_dim() -> None:
    """What divides it away below its dim's elements is not written."""

    def body(fd: Any, x: Any, place: Any) -> Any:
        rows = fd.ops.index_select(fd.ops.reshape(x, [6, 20, 32]), place, 1)
        return fd.ops.neg(fd.ops.reshape(fd.ops.permute(rows, [1, 0, 2]), [45, 192]))

    def folded(fd: Any, x: Any, place: Any) -> Any:
        turned = fd.ops.reshape(fd.ops.permute(fd.ops.reshape(x, [6, 640]), [1, 0]), [20, 192])
        return fd.ops.neg(fd.ops.index_select(turned, place, 0))

    given = [noise(6, 20, 32), torch.randint(0, 20, (45,))]
    for each in (body, folded):
        check(each, *given, tolerance=1e-4)
        (text,) = texts(lowered(record(each, given), given, H200))
        assert "i0 //" not in text and "i0 %" not in text


@pytest.mark.parametrize("op", ["sum", "max"])
def test_rows_of_any_length_are_runs(op: str) -> None:
    """A position along a row whose length varies is not written as a remainder."""
    given = [noise(5000, 900)]
    seen = [noise(4000, 800), noise(3000, 700)]
    fd = record(lambda fd, x: (getattr(fd.ops, op)(x, [1]), fd.ops.sum(x, [0])), given)
    found = fd.kernels(given, arch="sm_90", varying=[[x] for x in seen])
    assert any(source.sizes for source in found)
    assert not any("tl.trans(" in source.text for source in found)
