"""Rows that programs share where another reduction splits the dim that is shared out."""

from __future__ import annotations

import json

import pytest
import torch

from tritonfuser import FusionDefinition

LARGE, SMALL = (183, 96, 56, 56), (3, 12, 4, 16)
SIZES = {"block_x": 2, "block_m": 2, "block_r": 16, "tails": [], "persistent": True, "axes": []}


def define(shape):
    """A softmax over rows, a sum over the rows, and a sum of all that the softmax does not read."""
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor(list(shape), contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.sum(x, [0, 1, 2]))
        top = fd.ops.broadcast_in_dim(fd.ops.max(x, [3]), list(shape), [0, 1, 2])
        powers = fd.ops.exp(fd.ops.sub(x, top))
        total = fd.ops.broadcast_in_dim(fd.ops.sum(powers, [3]), list(shape), [0, 1, 2])
        fd.add_output(fd.ops.add(fd.ops.div(powers, total), y))
        fd.add_output(fd.ops.mul(y, fd.ops.sum(y, [0, 1, 2, 3])))
    return fd


def chosen():
    """The schedule of large inputs on a GPU."""
    inputs = [torch.empty(LARGE, device="meta")] * 2
    return json.loads(str(define(LARGE).schedule(inputs, arch="sm_90")))


def test_the_sum_is_in_the_kernel_of_its_rows():
    data = chosen()
    assert len(data["splits"]) == 2
    (shared,) = [s for s in data["segments"] if s["scheduler"] == "inner_outer_persistent"]
    assert len(shared["computes"]) == 3


@pytest.mark.covering
@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("others", [2, 3, 4])
def test_it_is_right_whatever_the_parts_of_both(parts, others):
    data, fd = chosen(), define(SMALL)
    data["splits"][0]["parts"] = [-1, parts, 1]
    data["splits"][1]["parts"] = SMALL[0] * others
    for piece in data["segments"]:
        params = piece["params"]
        params.update({name: value for name, value in SIZES.items() if name in params})
        if piece["scheduler"] == "reduction":
            params["persistent"] = False
    x, y = torch.randn(2, *SMALL)
    found = fd.run([x, y], schedule=data)
    wanted = [x.sum((0, 1, 2)), torch.softmax(x, 3) + y, y * y.sum()]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
