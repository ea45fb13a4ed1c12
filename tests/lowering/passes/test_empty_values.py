"""Values without elements, and reductions of nothing: kernels read nothing for them."""

from __future__ import annotations

import math

import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

D = DataType
OUTSIDE = 10**6
"""What lies around an index tensor: no index at all."""


def indices(count):
    around = torch.full((count + 40,), OUTSIDE)
    found = around[20 : 20 + count]
    found.copy_(torch.arange(count) % 4)
    return found


TAKEN = {
    "take_along_axis": lambda ops, x, i: ops.take_along_axis(x, i, 0),
    "gather": lambda ops, x, i: ops.gather(x, i, 0),
    "index_select": lambda ops, x, i: ops.index_select(x, i, 0),
    "embedding_fwd": lambda ops, x, i: ops.squeeze(
        ops.embedding_fwd(i, ops.broadcast(x, [False, True])), [1]
    ),
}
USED = {
    "pad": (
        lambda ops, x: ops.pad(x, [2, 1], 3.0),
        lambda x: torch.cat([torch.full((2,), 3.0), x, torch.full((1,), 3.0)]),
    ),
    "sum": (lambda ops, x: ops.sum(x, [0]), torch.sum),
    "prod": (lambda ops, x: ops.prod(x, [0]), torch.prod),
    "max": (lambda ops, x: ops.max(x, [0]), lambda x: torch.cat([x, LOWEST]).max()),
    "cumsum": (lambda ops, x: ops.cumsum(x, 0), lambda x: x.cumsum(0)),
    "sum of pad": (lambda ops, x: ops.sum(ops.pad(x, [2, 1], 3.0), [0]), lambda x: x.sum() + 9),
    "sum of a part": (lambda ops, x: ops.sum(ops.slice(x, [4], [8]), [0]), lambda x: x[4:8].sum()),
    "count": (lambda ops, x: ops.welford(x, [0])[2], lambda x: torch.tensor(x.numel())),
}
LOWEST = torch.tensor([-math.inf])


@pytest.mark.covering
@pytest.mark.parametrize("counts", [(0,), (4,), (7, 9, 0, 11, 5, 4, 0)], ids=str)
@pytest.mark.parametrize("use", USED)
@pytest.mark.parametrize("take", TAKEN)
def test_no_index_is_read_that_is_not_there(take, use, counts):
    """Behind an index tensor lies what is none; on an axis without elements 0 is behind its end."""
    x = torch.tensor([0.5, -1.5, 2.0, 3.0])
    compute, expected = USED[use]
    with FusionDefinition() as fd:
        data = fd.define_tensor([-1], contiguity=True)
        index = fd.define_tensor([-1], contiguity=True, dtype=D.Int)
        fd.add_output(compute(fd.ops, TAKEN[take](fd.ops, data, index)))
    for count in counts:
        i = indices(count)
        (found,) = fd.run([x, i])
        torch.testing.assert_close(found, expected(x[i]))


@pytest.mark.parametrize("dtype", [D.Float, D.Half, D.Int, D.Bool, D.ComplexFloat])
def test_reductions_of_nothing_load_nothing(dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        fd.add_output(fd.ops.sum(x, [1]))
        fd.add_output(fd.ops.prod(x, [1]))
    empty = torch.empty(3, 0, dtype=dtype.info.torch)
    assert [out.tolist() for out in fd.run([empty])] == [[0] * 3, [1] * 3]
    assert all("tl.load" not in kernel.text for kernel in fd.kernels([empty]))


MOVED = {
    "broadcast": lambda ops, x: ops.broadcast(x, [True, False, False]),
    "permute": lambda ops, x: ops.permute(x, [1, 0]),
    "slice": lambda ops, x: ops.slice(x, [1, 0], [3, 9]),
    "reshape": lambda ops, x: ops.reshape(x, [-1, ops.size(x, 0)]),
}


@pytest.mark.parametrize("dtype", [torch.float4_e2m1fn_x2, torch.float8_e8m0fnu])
@pytest.mark.parametrize("move", MOVED)
def test_views_of_what_no_kernel_computes_with(move, dtype):
    """They are views of an input without elements too, of which there are no constants."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=from_torch(dtype))
        fd.add_output(MOVED[move](fd.ops, x))
    for sizes in ((5, 2), (5, 0)):
        given = torch.zeros(sizes, dtype=torch.uint8).view(dtype)
        (found,) = fd.run([given])
        assert found.numel() == (2 if move == "slice" else 5) * sizes[1]
        assert found.dtype is dtype
