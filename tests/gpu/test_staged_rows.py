"""Short rows that go through shared memory, on a GPU: values by dtype and length."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import compare, record
from tests.schedules.test_staged import norm_backward, random_inputs, softmax, sums
from tritonfuser.frontend.inspect.oracle import reference

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("body", [softmax, sums, norm_backward])
@pytest.mark.parametrize(
    ("dtype", "rows", "row"),
    [
        (torch.bfloat16, 40_000, 21),
        (torch.bfloat16, 9_999, 49),
        (torch.float, 33_333, 5),
        (torch.double, 999, 17),
        (torch.bool, 7, 21),
    ],
)
def test_values_are_those_of_torch(body: Any, dtype: torch.dtype, rows: int, row: int) -> None:
    inputs = [x.cuda() for x in random_inputs(body, rows, row, dtype)]
    fd = record(body, inputs)
    data = fd.schedule(inputs).to_dict()
    block, staged = 1 << (row - 1).bit_length(), 0
    for segment in data["segments"]:
        params = segment["params"]
        if params.get("staged") is not None and params["block_r"] <= block:
            staged += 1
            params.update(staged=True, block_r=block, tails=[], align=1, num_warps=4)
            params["block_m" if "block_m" in params else "block_x"] = 128
            params |= {"persistent": True} if "persistent" in params else {"prefetch": False}
    assert staged
    found = fd.run(inputs, schedule=data)
    compare([x.cpu() for x in found], [x.cpu() for x in reference(fd.fusion.ir, inputs)], 1e-4)


def test_it_is_chosen_where_rows_are_short_and_odd() -> None:
    x = torch.randn(1_000_003, 21, device="cuda", dtype=torch.bfloat16)
    fd = record(softmax, [x])
    (piece,) = fd.segments([x]).segments
    assert piece.params.row_tiling.staged
    found, top = fd.run([x])
    torch.testing.assert_close(found, torch.softmax(x.float(), 1), atol=1e-5, rtol=1e-4)
    assert torch.equal(top, x.float().amax(1, keepdim=True))
