"""What can be tried in the place of a schedule, and whether a schedule can be run."""

from __future__ import annotations

import json
import random

import pytest
import torch

from tests.schedules.test_mutated import BODIES, defined
from tritonfuser import DataType, FusionDefinition, InputError, Schedule
from tritonfuser.devices import known


def columns(rows=512):
    """A sum over rows in two steps, on a GPU."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0]))
    return fd, [torch.empty(rows, 64, device="meta")]


def product(m=256):
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Half) for _ in "ab")
        fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))
    return fd, [torch.empty(m, m, dtype=torch.float16, device="meta") for _ in "ab"]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_space_is_plain_data_and_what_is_drawn_runs(body):
    fd, inputs, wanted, _ = defined(body)
    space = fd.search_space(inputs)
    data = json.loads(json.dumps(space.to_dict()))
    assert Schedule.from_dict(data["schedule"]) == space.schedule == fd.schedule(inputs)
    assert len(data["segments"]) == len(space.schedule.segments)
    for piece, found in zip(space.schedule.segments, data["segments"], strict=True):
        names = [s["scheduler"] for s in found["spaces"]]
        assert names[0] == piece.scheduler == found["scheduler"]
        assert not set(names) & set(found["refusals"])
    rng, legal = random.Random(body.__name__), 0
    for drawn in (space.draw(rng) for _ in range(8)):
        if fd.is_legal(drawn, inputs):
            legal += 1
            found = fd.run([x.clone() for x in inputs], schedule=drawn)
            torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-3)
    assert legal >= 2


def test_other_schedulers_of_a_segment():
    fd, inputs = columns(12)
    (piece,) = fd.search_space(inputs, arch="sm_90").segments
    assert piece.scheduler == "reduction"
    assert {s.scheduler for s in piece.spaces} == {
        "reduction",
        "inner_persistent",
        "outer_persistent",
    }
    assert piece.refusals["pointwise"] == "the kernel has reductions"
    assert piece.refusals["expr_eval"] == "torch does not run what is in the kernel"


def test_splits_that_can_be_varied():
    fd, inputs = columns(1 << 14)
    space = fd.search_space(inputs, arch="sm_90")
    (split,) = space.splits
    (chosen,) = space.schedule.rewrites.splits
    assert (split.field, split.place, split.value) == ("splits", 0, chosen.value)
    assert "parts" in split.meaning
    assert chosen.parts in split.parts and len(split.parts) > 3
    loop = {"block_x": 64, "block_r": 64, "persistent": False}
    for parts in split.parts:
        data = space.schedule.to_dict()
        data["splits"][0]["parts"] = parts
        for piece in data["segments"]:
            piece["params"] = loop
        assert fd.is_legal(data, inputs, arch="sm_90")
        assert len(fd.kernels(inputs, schedule=data, arch="sm_90")) == 2
    assert {space.draw(random.Random(n)).rewrites.splits[0].parts for n in range(40)} == {
        *split.parts
    }


WRONG = {
    "schedule: expected a dict": 3,
    "segments: expected a list of dicts, got None": {"version": 1},
    "version: expected 1 to 1, got 7": {"version": 7, "segments": []},
    "segments: tv1 is in none of them": {"version": 1, "segments": []},
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_schedule_is_no_error(text):
    fd, _ = columns()
    found = fd.is_legal(WRONG[text], [torch.ones(4, 4)])
    assert not found
    assert found.reason.startswith(text) and str(found) == found.reason


def test_a_right_one():
    fd, inputs = columns()
    x = torch.randn(8, 5)
    found = fd.is_legal(fd.schedule([x]), [x])
    assert found and found.reason == "" and str(found) == "legal"
    assert fd.is_legal(fd.schedule(inputs, arch="sm_90"), inputs, arch="sm_90")


def test_wrong_inputs_are_an_error():
    fd, _ = columns()
    with pytest.raises(InputError):
        fd.is_legal(fd.schedule([torch.ones(4, 4)]), [torch.ones(4)])
    with pytest.raises(InputError):
        fd.search_space([])


def test_threads_of_a_program():
    fd, inputs = columns()
    data = fd.schedule(inputs, arch="sm_90").to_dict()
    data["segments"][0]["params"]["num_warps"] = 32
    assert fd.is_legal(data, inputs, arch="sm_90")
    refused = fd.is_legal(data, inputs, arch="gfx942")
    assert refused.reason.startswith("segments[0].params: num_warps=32 is 2048 threads")


@pytest.mark.parametrize("stages", range(2, 9))
def test_what_shared_memory_cannot_hold(stages):
    """What is refused would not fit: the compiled kernel takes more than the device has."""
    fd, inputs = product()
    data = fd.schedule(inputs, arch="sm_90", _enable_options=["fuse_matmul"]).to_dict()
    tile = {"block_m": 128, "block_n": 128, "block_k": 64, "num_stages": stages, "num_warps": 8}
    (piece,) = data["segments"]
    piece["params"] |= tile | {"descriptors": False, "programs": 0, "parts": 1}
    found = fd.is_legal(data, inputs, arch="sm_90")
    most = known("sm_90").shared_bytes_per_block
    assert bool(found) == ((stages - 1) * 256 * 64 * 2 <= most)
    if not found:
        assert found.reason.startswith(f"segments[0].params: num_stages={stages} holds ")


def test_what_is_refused_takes_more_shared_memory_than_there_is():
    """The bound is that of a launch: with one step less the kernel fits."""
    fd, inputs = product()
    data = fd.schedule(inputs, arch="sm_90", _enable_options=["fuse_matmul"]).to_dict()
    (piece,) = data["segments"]
    piece["params"] |= {"block_m": 128, "block_n": 128, "block_k": 64, "num_warps": 8}
    piece["params"] |= {"descriptors": False, "programs": 0, "parts": 1}
    used = {}
    for stages in (3, 4, 5):
        piece["params"]["num_stages"] = stages
        (report,) = fd.compile_for("sm_90", inputs, schedule=data)
        used[stages] = report.shared_bytes
    step = 256 * 64 * 2
    assert all(used[n] >= (n - 1) * step for n in used), used
