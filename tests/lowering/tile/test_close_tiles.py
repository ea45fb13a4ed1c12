"""Rows of a varying length whose tiles fit registers only if they reach little past the end."""

from __future__ import annotations

import pytest
import torch

from tests.e2e.opened import compile_open
from tests.lowering.graphs import softmax
from tests.lowering.harness import record, small
from tritonfuser import DataType
from tritonfuser.cache.keys.open_sizes import KeyReader
from tritonfuser.cache.keys.signature import key_maker


def body(fd, x, y):
    total = fd.ops.add(*(fd.ops.cast(v, DataType.Float) for v in (x, y)))
    return fd.ops.cast(softmax(fd, total), DataType.BFloat16)


def noise(columns, rows=9):
    return [torch.randn(rows, columns).to(torch.bfloat16) for _ in range(2)]


def meta(columns):
    return [torch.empty(835, columns, dtype=torch.bfloat16, device="meta")] * 2


@pytest.mark.parametrize(
    ("columns", "tails"),
    [
        (7_003, "TBLOCK=2048, UBLOCK=1024"),  # an eighth of a block of 8192 fits
        (9_479, "TBLOCK=1024, UBLOCK=512"),  # tails of 2048 would take 16 warps, which do not
    ],
)
def test_tiles_are_as_close_as_they_have_to_be(columns, tails):
    (kernel,) = record(body, meta(columns)).kernels(
        meta(columns), arch="sm_90", varying=[meta(columns - 4), meta(columns - 2)]
    )
    assert "for " not in kernel.text.partition("def launch")[0]
    assert tails in kernel.text


def test_values_and_guards():
    lengths = (9_479, 9_473, 9_487, 9_727, 8_217, 10_239, 8_193, 8_200, 10_241, 10_256)
    given = [noise(n) for n in lengths]
    fd = record(body, given[0])
    made = compile_open(fd, given[0], given[1:3], small(1))
    assert made is not None
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    served = []
    for inputs in given:
        plan = made.at(reader.split(key(inputs)))
        served.append(plan is not None)
        if plan is not None:
            (found,) = plan.run(inputs)
            wanted = torch.softmax(inputs[0].double() + inputs[1].double(), 1)
            torch.testing.assert_close(found.double(), wanted, rtol=1e-2, atol=1e-9)
    # Tiles of 8192, 2048 and 16 elements, from the first vector on.
    assert served == [True] * 6 + [False] * 4
