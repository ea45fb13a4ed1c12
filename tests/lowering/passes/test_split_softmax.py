"""A softmax over columns of odd width: maxima and sums of parts, joined, and a flat kernel."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import lowered, planned, poisoned, schedulers, small
from tritonfuser.device import DeviceProperties
from tritonfuser.dtypes import DataType

FEW = small(4)


def in_parts(names):
    """Sums of parts, sums of those, and a flat kernel behind them."""
    return names[:-1] == ["outer_persistent"] * 2 and names[-1] in ("pointwise", "transpose")


@pytest.fixture(autouse=True)
def little_is_much(monkeypatch):
    """Sizes that tests can have are worth whole lines of memory: none is read in a launch."""
    monkeypatch.setattr(DeviceProperties, "launch_bytes", 0)


def of_columns(fd, x):
    wide = DataType.Double if x.dtype() is DataType.Double else DataType.Float
    return fd.ops.cast(softmax(fd, fd.ops.cast(x, wide), 0), x.dtype())


def run(x, body=of_columns):
    found = lowered(body, [x], FEW)
    with poisoned():
        return planned(found, [x], FEW).run([x]), schedulers(found)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("columns", [37, 38, 101])
def test_as_torch_has_it(columns, dtype):
    x = (noise(2048, columns) * 8).to(dtype)
    (found,), names = run(x)
    assert in_parts(names)
    tolerance = {torch.bfloat16: 1e-2, torch.float32: 1e-5, torch.float64: 1e-9}[dtype]
    expected = torch.softmax(x.double(), 0)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=1e-30)


def test_what_is_not_finite():
    x = noise(2048, 37)
    x[::8, 0] = -torch.inf  # all of a part, as rows go to parts in turn
    x[:, 1] = -torch.inf
    x[7, 2], x[8, 3], x[9, 4] = torch.nan, torch.inf, -torch.inf
    x[:, 5], x[:, 6] = -3.4e38, 3.4e38
    (found,), names = run(x)
    assert in_parts(names)
    torch.testing.assert_close(found, torch.softmax(x, 0), equal_nan=True)


def test_the_maximum_is_a_result_too():
    x = noise(2048, 37)

    def body(fd, x):
        top = fd.ops.max(x, [0], keepdim=True)
        powers = fd.ops.exp(fd.ops.sub(x, top))
        total = fd.ops.sum(powers, [0], keepdim=True)
        return fd.ops.div(powers, total), top, fd.ops.add(fd.ops.log(total), top)

    (shares, top, logarithm), _ = run(x, body)
    torch.testing.assert_close(shares, torch.softmax(x, 0))
    assert torch.equal(top, x.amax(0, keepdim=True))
    torch.testing.assert_close(logarithm, torch.logsumexp(x, 0, keepdim=True))


@pytest.mark.parametrize("shape", [(2048, 64), (2047, 37), (128, 37)])
def test_one_kernel_where_it_has_whole_lines_or_no_parts(shape):
    x = noise(*shape)
    (found,), names = run(x)
    assert names == ["outer_persistent"]
    torch.testing.assert_close(found, torch.softmax(x, 0))
