"""Values in memory with their dims in another order, for kernels over more axes than tiles have."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser import DataType
from tritonfuser.errors import ParamsError

ROWS, COLUMNS = 1600, 112


def along_three_axes(fd: Any, x: Any) -> tuple[Any, Any]:
    """Results that are contiguous along dim 0 and along dim 1 of what is along dim 2."""
    soft = fd.ops.tanh(x)
    results = fd.ops.permute(soft, [2, 1, 0]), fd.ops.exp(fd.ops.permute(soft, [2, 0, 1]))
    return tuple(fd.ops.cast(result, DataType.BFloat16) for result in results)


def large() -> tuple[Any, list[torch.Tensor]]:
    given = [torch.empty(ROWS, COLUMNS, COLUMNS, dtype=torch.bfloat16, device="meta")]
    return record(along_three_axes, given), given


def exported(names: list[str] | None = None) -> dict[str, Any]:
    fd, given = large()
    data = json.loads(str(fd.schedule(given, arch="sm_90")))
    return data if names is None else data | {"invariants": names}


def microseconds(fd: Any, given: list[torch.Tensor], schedule: Any = None) -> float:
    found = fd.explain(given, arch="sm_90", measure=False, schedule=schedule)
    return 1e6 * sum(float(piece.model.seconds) for piece in found.segments)


def test_an_input_is_copied_into_an_order_that_leaves_two_axes() -> None:
    fd, given = large()
    schedule = fd.schedule(given, arch="sm_90")
    (name,) = schedule.rewrites.invariants
    assert re.fullmatch(r"tv0\.permute\(\d, \d, \d\)", name)
    assert [piece.scheduler for piece in schedule.segments] == ["transpose", "transpose"]
    one = json.loads(str(schedule)) | {"invariants": []}
    one["segments"] = one["segments"][1:]
    assert microseconds(fd, given) < 0.75 * microseconds(fd, given, one)


def test_two_axes_are_for_tiles_of_two_sides() -> None:
    def body(fd: Any, x: Any) -> tuple[Any, Any]:
        soft = fd.ops.tanh(x)
        return soft, fd.ops.permute(soft, [0, 2, 1])

    given = [torch.empty(ROWS, COLUMNS, COLUMNS, device="meta")]
    assert not record(body, given).schedule(given, arch="sm_90").rewrites.invariants


def test_dims_of_one_element_lie_anywhere() -> None:
    given = [torch.empty(ROWS, COLUMNS, 1, COLUMNS, 1, dtype=torch.bfloat16, device="meta")]

    def body(fd: Any, x: Any) -> tuple[Any, Any]:
        return along_three_axes(fd, fd.ops.squeeze(x, [2, 4]))

    (name,) = record(body, given).schedule(given, arch="sm_90").rewrites.invariants
    assert name in ("tv0.permute(0, 2, 3, 4, 1)", "tv0.permute(1, 2, 3, 4, 0)")


@pytest.mark.covering
@pytest.mark.parametrize("dims", ["0, 2, 1", "1, 2, 0", "2, 0, 1", "2, 1, 0"])
@pytest.mark.parametrize("shape", [(8, 6, 4), (1, 5, 3), (3, 1, 2)])
def test_results_are_the_same(dims: str, shape: tuple[int, ...]) -> None:
    given = [noise(*shape)]
    fd = record(along_three_axes, given)
    wanted = fd.run(given)
    data = json.loads(str(fd.schedule(given)))
    data["invariants"] = [f"tv0.permute({dims})"]
    copied = {
        "scheduler": "pointwise",
        "stores": [name_of_copy(fd, given, data)],
        "params": {"block_x": 64, "num_warps": 1},
    }
    data["segments"] = [copied, *data["segments"]]
    found = fd.schedule(given, schedule=data)
    assert found.to_dict()["invariants"] == data["invariants"]
    for result, value in zip(fd.run(given, schedule=data), wanted, strict=True):
        torch.testing.assert_close(result, value, rtol=0, atol=0)


def name_of_copy(fd: Any, given: list[torch.Tensor], data: dict[str, Any]) -> str:
    """The name of the copy, as the error has it that misses it."""
    try:
        fd.run(given, schedule=data)
    except ParamsError as error:
        found = re.search(r"segments: (\w+) is in none", str(error))
        return found[1] if found else ""
    return ""


BAD = {
    "invariants[0]: expected another order of the 3 dims of tv0": [
        ["tv0.permute(0, 1, 2)"],
        ["tv0.permute(1, 0)"],
        ["tv0.permute(0, 0, 1)"],
        ["tv0.permute(1, 2, 3)"],
    ],
    "invariants[0]: expected a tensor that kernels compute": [
        ["tv99.permute(1, 0, 2)"],
        ["tv0.permute(1, 0, -1)"],
        ["tv0.permute()"],
        ["tv0.permute(01, 0, 2)"],
        ["tv0.permute(2, 0, 1); tv1"],
        [f"tv0.permute(0, 2, {'1' * 5000})"],
    ],
    "invariants[1]: tv0 is there already": [["tv0.permute(0, 2, 1)", "tv0"], ["tv0", "tv0"]],
}


@pytest.mark.parametrize(("text", "names"), [(text, n) for text, all_ in BAD.items() for n in all_])
def test_others_are_refused(text: str, names: list[str]) -> None:
    fd, given = large()
    with pytest.raises(ParamsError, match=re.escape(text)):
        fd.schedule(given, arch="sm_90", schedule=exported(names))
