"""Values that are put in memory are computed box by box where they are pieced together."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import compare, lowered, planned, record
from tritonfuser import DataType
from tritonfuser.devices import known
from tritonfuser.frontend.inspect.oracle import reference
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import Choice

H200 = known("sm_90")
PARTS = 4


def gates(fd: Any, *parts: Any) -> Any:
    """A layer norm's sums over the gradients of gates, each of which takes special functions."""
    width = parts[0].shape()[1]
    total = None
    for place, part in enumerate(parts):
        wide = fd.ops.cast(part, DataType.Float)
        grad = fd.ops.mul(fd.ops.tanh(wide), fd.ops.sigmoid(fd.ops.exp(wide)))
        padded = fd.ops.pad(grad, [place * width, (PARTS - 1 - place) * width])
        total = padded if total is None else fd.ops.add(total, padded)
    mean = fd.ops.mul(fd.ops.sum(total, [1], keepdim=True), 1 / (PARTS * width))
    return fd.ops.cast(fd.ops.sub(total, mean), DataType.BFloat16), fd.ops.sum(total, [0])


def given(rows: int, width: int) -> list[torch.Tensor]:
    return [noise(rows, width, seed=n).bfloat16() for n in range(PARTS)]


def unfilled(rows: int, width: int) -> list[torch.Tensor]:
    return [torch.empty(rows, width, dtype=torch.bfloat16, device="meta") for _ in range(PARTS)]


def total_of(body: Any, inputs: list[torch.Tensor]) -> str:
    """The name of the sum of all padded parts."""
    nodes = record(body, inputs).fusion.ir.nodes
    return [node.out.name for node in nodes if node.op == "add"][-1]


@pytest.fixture
def in_memory(monkeypatch: Any) -> None:
    """The sum of the padded parts is put in memory."""
    name = total_of(gates, given(8, 16))
    monkeypatch.setattr(
        segment_choice, "refined", lambda _, __, make: make(Choice(materialized=(name,)))
    )


def stores(found: Any) -> list[str]:
    return [store.name for piece in found.segmented.segments for store in piece.stores]


@pytest.mark.usefixtures("in_memory")
def test_a_kernel_stores_all_boxes() -> None:
    found = lowered(gates, unfilled(4096, 1024))
    first = found.segmented.segments[0]
    names = {store.name for store in first.stores}
    assert len(names) == PARTS and {name[-3:] for name in names} == {"[0]", "[1]", "[2]", "[3]"}
    assert not any(guard for store in first.stores for guard in store.guards)


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("special", [False, True])
def test_values_are_those_of_torch(special: bool) -> None:
    inputs = given(96, 256)
    if special:
        inputs[0][1, 2], inputs[1][2, 3], inputs[2][3] = torch.nan, torch.inf, -0.0
    fd = record(gates, inputs)
    found = lowered(fd, inputs, H200)
    compare(planned(found, inputs).run(inputs), reference(fd.fusion.ir, inputs), 1e-3)


def test_the_search_finds_it_and_its_schedule_gives_the_same_kernels() -> None:
    inputs = unfilled(8192, 1024)
    fd = record(gates, inputs)
    schedule = json.loads(json.dumps(fd.schedule(inputs, arch="sm_90").to_dict()))
    boxes = [n for segment in schedule["segments"] for n in segment["stores"] if n.endswith("[1]")]
    assert boxes
    kernels = fd.kernels(inputs, arch="sm_90")
    again = fd.kernels(inputs, arch="sm_90", schedule=schedule)
    assert [k.text for k in kernels] == [k.text for k in again]
