"""The order of a kernel's axes is the params' to say: programs, and tiles, run along it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser import DataType, FusionDefinition, ParamsError, Schedule

Data = dict[str, Any]
Body = Callable[..., Any]


def turned(fd, x, y):
    return fd.ops.add(fd.ops.permute(x, [0, 2, 1]), y)


def columns(fd, x):
    return fd.ops.sum(x, [1])


def softmax_like(fd, x):
    return fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [3], keepdim=True)))


def normed_columns(fd, x):
    return fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True))


def scan(fd, x):
    return fd.ops.cumsum(x, 2)


def backward(fd, x, g):
    """Sums along the rows, and over two of three axes of rows."""
    along = fd.ops.sum(fd.ops.mul(x, g), [3], keepdim=True)
    made = fd.ops.sub(g, fd.ops.mul(x, along))
    return made, fd.ops.sum(fd.ops.mul(g, x), [1, 2])


def group_norm(fd, x):
    var, mean = fd.ops.var_mean(x, [2, 3], correction=0, keepdim=True)
    made = fd.ops.div(fd.ops.sub(x, mean), fd.ops.sqrt(fd.ops.add(var, 1.0)))
    return made, fd.ops.sum(x, [3])


CASES: dict[str, tuple[Body, list[tuple[int, ...]]]] = {
    "turned": (turned, [(3, 20, 33), (3, 33, 20)]),
    "columns": (columns, [(5, 40, 6)]),
    "softmax_like": (softmax_like, [(5, 4, 6, 33)]),
    "normed_columns": (normed_columns, [(5, 40, 6, 7)]),
    "scan": (scan, [(5, 4, 40, 6)]),
    "backward": (backward, [(3, 4, 6, 33), (3, 4, 6, 33)]),
    "group_norm": (group_norm, [(2, 3, 4, 10)]),
}


def made(name: str) -> tuple[Any, list[torch.Tensor], Data]:
    """A definition, its inputs, and the schedule that an H200 has for it."""
    body, shapes = CASES[name]
    inputs = [noise(*shape, seed=n) for n, shape in enumerate(shapes)]
    fd = record(body, inputs)
    return fd, inputs, fd.schedule(on_meta(inputs), arch="sm_90").to_dict()


def on_meta(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.empty_like(given, device="meta") for given in inputs]


def changed(data: Data, place: int, **params: Any) -> Data:
    found = copy.deepcopy(data)
    found["segments"][place]["params"].update(params)
    return found


def as_transpose(data: Data, **params: Any) -> Data:
    """A flat kernel with tiles of two sides."""
    found = copy.deepcopy(data)
    found["segments"][0]["scheduler"] = "transpose"
    found["segments"][0]["params"] = {"block_x": 8, "block_y": 4, **params}
    return found


def texts(fd: Any, inputs: Sequence[torch.Tensor], data: Data) -> list[str]:
    return [kernel.text for kernel in fd.kernels(on_meta(inputs), arch="sm_90", schedule=data)]


def check_numbers(fd: Any, inputs: list[torch.Tensor], data: Data) -> None:
    for one, other in zip(fd.run(inputs, schedule=data), fd.run(inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_any_legal_order_is_another_kernel_with_the_same_numbers(name: str) -> None:
    fd, inputs, data = made(name)
    ran, legal = set(), 0
    for place, piece in enumerate(data["segments"]):
        for order in itertools.permutations(piece["params"]["axes"]):
            given = changed(data, place, axes=list(order))
            if not fd.is_legal(given, inputs):
                continue
            check_numbers(fd, inputs, given)
            ran.add((place, *texts(fd, inputs, given)))
            legal += 1
    assert len(ran) == legal > len(data["segments"])


def test_either_side_of_a_transpose_may_have_any_axes() -> None:
    fd, inputs, data = made("turned")
    found = set()
    for order in itertools.permutations(range(3)):
        for first, cut in itertools.product("xy", (1, 2)):
            axes, across = list(order[:cut]), list(order[cut:])
            given = as_transpose(data, axes=axes, across=across, first=first)
            check_numbers(fd, inputs, given)
            found.update(texts(fd, inputs, given))
    assert len(found) == 24


def test_programs_run_along_the_side_that_is_first() -> None:
    fd, inputs, data = made("turned")
    for first, x, y in (("x", 0, 1), ("y", 1, 0)):
        (text,) = texts(fd, inputs, as_transpose(data, axes=[0, 2], across=[1], first=first))
        assert f"x = tl.minimum(tl.program_id({x}) * XBLOCK, " in text
        assert f"y = tl.minimum(tl.program_id({y}) * YBLOCK, " in text


def test_a_schedule_says_the_order_that_its_kernels_have() -> None:
    fd, inputs, data = made("softmax_like")
    assert data["segments"][0]["params"]["axes"] == [0, 1, 2]
    bare = copy.deepcopy(data)
    del bare["segments"][0]["params"]["axes"]
    meta = on_meta(inputs)
    segments = fd.segments(meta, arch="sm_90", schedule=bare).segments
    assert segments[0].params == Schedule.from_dict(data).segments[0].params
    assert texts(fd, inputs, bare) == texts(fd, inputs, data)


def test_a_stored_transpose_without_the_fields_is_that_of_the_rules() -> None:
    def body(fd, x):
        return fd.ops.neg(fd.ops.permute(x, [0, 2, 1]))

    inputs = [torch.empty(4, 300, 200, device="meta")]
    fd = record(body, inputs)
    data = fd.schedule(inputs, arch="sm_90").to_dict()
    params = data["segments"][0]["params"]
    assert (params["axes"], params["across"], params["first"]) == ([0, 2], [1], "x")
    bare = copy.deepcopy(data)
    for field in ("axes", "across", "first"):
        del bare["segments"][0]["params"][field]
    assert texts(fd, inputs, bare) == texts(fd, inputs, data)


def test_orders_are_the_same_through_json() -> None:
    _, _, data = made("turned")
    given = Schedule.from_dict(as_transpose(data, axes=[2, 0], across=[1], first="y"))
    assert Schedule.from_dict(json.loads(str(given))) == given


def test_numbers_are_those_of_dims_so_a_dim_of_one_position_keeps_them() -> None:
    """A schedule of four images is right for one, and that of one for four."""

    def body(fd, x):
        return fd.ops.sub(x, fd.ops.max(x, [3], keepdim=True))

    one, four = noise(1, 5, 6, 33), noise(4, 5, 6, 33)
    fd = record(body, [four])
    assert fd.schedule([one]).to_dict()["segments"][0]["params"]["axes"] == [1, 2]
    for made_for, order in ((four, [2, 0, 1]), (one, [2, 1])):
        data = fd.schedule([made_for]).to_dict()
        data = changed(data, 0, axes=order)
        for given in (one, four):
            check_numbers(fd, [given], data)


@pytest.mark.parametrize("widths", [[-1, 2], [0, 0, -1, 2]], ids=["columns", "rows"])
def test_a_box_of_one_position_keeps_the_numbers_of_its_dims(widths: list[int]) -> None:
    """Params of open sizes, where what a pad leaves of the input has axes, are right for one."""
    fd = record(lambda fd, x: fd.ops.pad(x, widths), [noise(4, 4)])
    for size in (130, 3, 16, 2):
        inputs = [noise(size, size)]
        found = fd.run(inputs)
        assert torch.equal(fd.run(inputs, params=fd.heuristics(inputs))[0], found[0]), size


def test_a_number_beside_a_box_of_one_position_takes_no_numbers_away() -> None:
    with FusionDefinition() as fd:
        y = fd.define_tensor(shape=[], contiguity=[], dtype=DataType.Float)
        n = fd.define_scalar(None, dtype=DataType.Int)
        fd.add_output(fd.ops.neg(y))
        wide = fd.ops.expand(fd.ops.broadcast(y, [True, True]), [n, n])
        fd.add_output(fd.ops.pad(wide, [0, -1, -1, 1]))
    for size in (130, 3, 16, 2):
        inputs = [torch.tensor(2.0), size]
        found = fd.run(inputs)
        assert torch.equal(fd.run(inputs, params=fd.heuristics(inputs))[1], found[1]), size


REFUSED = [
    ({"axes": [0, 0]}, r"params\.axes\[1\]: expected each item once, got 0 again"),
    ({"axes": [-1]}, r"params\.axes\[0\]: expected 0 to 127, got -1"),
    ({"axes": [0, 9]}, r"segments\[0\]\.params: .*axes has axis 9, and there are 3"),
    ({"axes": [0], "across": [0]}, "axes and across both have 0"),
    ({"across": [7]}, "across has axis 7, and there are 3"),
    ({"first": "z"}, r"params\.first: expected one of '', 'x', 'y', got 'z'"),
]


@pytest.mark.parametrize(("params", "reason"), REFUSED)
def test_what_is_no_order_is_refused(params: Data, reason: str) -> None:
    fd, inputs, data = made("turned")
    with pytest.raises(ParamsError, match=reason):
        fd.run(inputs, schedule=as_transpose(data, **params))


def test_axes_that_a_program_loops_over_come_last() -> None:
    fd, inputs, data = made("backward")
    assert data["segments"][0]["scheduler"] == "inner_outer_persistent"
    with pytest.raises(ParamsError, match=r"segments\[0\]\.params: .*loops over is before"):
        fd.run(inputs, schedule=changed(data, 0, axes=[3, 0, 1, 2]))


def test_a_grid_has_room_for_the_side_that_is_not_first() -> None:
    def body(fd, x):
        return fd.ops.neg(x)

    inputs = [torch.empty(1 << 20, 4, device="meta")]
    fd = record(body, inputs)
    data = as_transpose(fd.schedule(inputs, arch="sm_90").to_dict(), axes=[1], across=[0])
    found = fd.segments(inputs, arch="sm_90", schedule=data).segments[0].params
    assert found.first == "y"
    reason = fd.is_legal(changed(data, 0, first="x"), inputs, arch="sm_90").reason
    assert "leaves 262144 tiles along the other side, a grid has 65535 there" in reason
