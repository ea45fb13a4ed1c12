"""Splits of a padded dim: exported with the parts of one run, right at all sizes."""

from __future__ import annotations

import json

import pytest
import torch

from tests.lowering.fuse.test_norm_backwards import UNEVEN, norm_backward
from tests.lowering.fuse.test_programs import tensors
from tests.lowering.harness import record
from tests.schedules.test_round_trip import check_fixed
from tritonfuser import FusionDefinition, ParamsError, Schedule

LOOP = {"block_x": 16, "block_r": 64, "persistent": False}
TALL = [(20001, 33), (16384, 33), (30000, 33)]
WIDE = [(2, 500_001), (2, 400_000), (2, 300_002)]
SUMS = {
    "column sums": (lambda fd, x: fd.ops.sum(x, [0]), lambda x: x.sum(0), TALL),
    "column maxima": (lambda fd, x: fd.ops.max(x, [0]), lambda x: x.amax(0), TALL),
    "row sums": (lambda fd, x: fd.ops.sum(x, [1]), lambda x: x.sum(1), WIDE),
    "a sum of all": (lambda fd, x: fd.ops.sum(x, [0, 1]), lambda x: x.sum(), TALL),
}


def define(body):
    with FusionDefinition() as fd:
        fd.add_output(body(fd, fd.define_tensor([-1, -1], contiguity=True)))
    return fd


def ordered_by_rules(schedule):
    """Without the order of axes, which ``LOOP`` leaves to the rules."""
    data = schedule.to_dict()
    for piece in data["segments"]:
        del piece["params"]["axes"]
    return Schedule.from_dict(data)


def exported(fd, shapes):
    """Of a kernel with open sizes on a GPU, as JSON."""
    given = [[torch.empty(shape, device="meta")] for shape in shapes]
    return json.loads(str(fd.schedule(given[0], arch="sm_90", varying=given[1:])))


@pytest.mark.parametrize("name", SUMS)
def test_it_is_right_at_all_sizes(name):
    body, wanted, shapes = SUMS[name]
    fd = define(body)
    data = exported(fd, shapes)
    (split,) = data["splits"]
    assert (split["padded"] == 0) != split["remainder"] and split["parts"] >= 2
    split["parts"] = 8
    for piece in data["segments"]:
        piece["params"] = LOOP
    sizes = [(2001, 33), (1999, 33), (3000, 33), (64, 33), (9, 33), (16, 33), (3000, 16)]
    for n, m in sizes:
        x = torch.randn(n, m) if shapes is TALL else torch.randn(m, n)
        (found,) = fd.run([x], schedule=data)
        torch.testing.assert_close(found, wanted(x), rtol=1e-4, atol=1e-3)
        assert ordered_by_rules(fd.schedule([x], schedule=data)) == Schedule.from_dict(data)
    assert len(fd.explain_recompiles()) < len(sizes)


@pytest.mark.parametrize("name", SUMS)
def test_the_parts_are_those_of_the_sizes_asked_for(name):
    """Exported at other sizes they may be others; the split is the same but for that."""
    body, _, shapes = SUMS[name]
    fd = define(body)
    one, other = (exported(fd, order) for order in (shapes, shapes[::-1]))
    for data in (one, other):
        assert data["splits"][0].pop("parts") <= 528
    assert one["splits"] == other["splits"]


def test_interleaved_or_not():
    fd = define(SUMS["column sums"][0])
    x = torch.randn(50, 7)
    (name,) = [n for piece in fd.schedule([x]).segments for n in piece.computes]
    texts = []
    for interleave in (0, 1):
        split = {"value": name, "parts": 4, "padded": 0, "interleave": interleave}
        pieces = [
            {"scheduler": "reduction", "computes": [n], "params": LOOP} for n in ("tv4", name)
        ]
        data = {"version": 1, "splits": [split], "segments": pieces}
        torch.testing.assert_close(fd.run([x], schedule=data), [x.sum(0)])
        texts.append(fd.kernels([x], schedule=data)[0].text)
    assert texts[0] != texts[1]


def test_what_cannot_be_padded():
    fd = define(SUMS["column sums"][0])
    x = torch.randn(50, 7)
    data = fd.schedule([x]).to_dict()
    data["splits"] = [{"value": "tv1", "parts": 4, "padded": 1}]
    with pytest.raises(ParamsError, match=r"one of 1 reduced dims that can be padded, got 1"):
        fd.run([x], schedule=data)
    data["splits"][0] |= {"parts": 51, "padded": 0}
    with pytest.raises(ParamsError, match=r"splits\[0\].parts: expected parts of the reduced"):
        fd.run([x], schedule=data)


@pytest.mark.parametrize("like", [*UNEVEN, (16, 9, 48)], ids=str)
def test_a_schedule_of_shares_gives_the_same_kernels(like):
    """Of sums over rows of two dims, and of one that keeps a dim of those."""
    for sums in (("weight", "bias"), ("weight", "bias", 0)):
        body, shapes = norm_backward(like, *sums)
        inputs = tensors(shapes, torch.float32)
        check_fixed(record(body, inputs), inputs)


@pytest.mark.parametrize("parts", [[-1, 4, 1], [1, 4, -1], [-1, 4, -1]], ids=str)
@pytest.mark.parametrize("interleave", [0, 1])
def test_parts_for_each_position_of_other_dims(interleave, parts):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1, -1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0, 1, 2]))
    split = {"value": "tv1", "parts": parts, "padded": 1, "interleave": interleave}
    pieces = [
        {"scheduler": "reduction", "computes": [name], "params": LOOP} for name in ("tv4", "tv1")
    ]
    data = {"version": 1, "values": "tv0..1", "splits": [split], "segments": pieces}
    for shape in [(3, 100, 2, 33), (5, 130, 3, 7), (2, 50, 2, 16)]:
        x = torch.randn(shape)
        (found,) = fd.run([x], schedule=data)
        torch.testing.assert_close(found, x.sum((0, 1, 2)), rtol=1e-4, atol=1e-4)
        assert ordered_by_rules(fd.schedule([x], schedule=data)) == Schedule.from_dict(data)


@pytest.mark.parametrize(
    ("parts", "padded"),
    [([-1, 1, 1], 1), ([2, 4, 1], 1), ([-1, 4, 2], 1), ([1, 4, 1], 1), ([-1, 4, 1], 0)],
)
def test_parts_for_each_position_are_of_one_dim(parts, padded):
    with FusionDefinition() as fd:
        x = fd.define_tensor([4, 10, 2, 33], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0, 1, 2]))
    x = torch.randn(4, 10, 2, 33)
    data = fd.schedule([x]).to_dict()
    data["splits"] = [{"value": "tv1", "parts": parts, "padded": padded}]
    with pytest.raises(ParamsError, match=r"splits\[0\].parts: expected 2 or more parts of the"):
        fd.run([x], schedule=data)


def test_what_can_have_no_remainder():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0, 2]))
    x = torch.randn(50, 3, 7)
    data = fd.schedule([x]).to_dict()
    data["splits"] = [{"value": "tv1", "parts": 4, "remainder": True}]
    with pytest.raises(ParamsError, match=r"splits\[0\].remainder: expected false but for"):
        fd.run([x], schedule=data)
    fd = define(SUMS["column sums"][0])
    x = torch.randn(50, 7)
    data = fd.schedule([x]).to_dict()
    data["splits"] = [{"value": "tv1", "parts": 4, "padded": 0, "remainder": True}]
    with pytest.raises(ParamsError, match=r"splits\[0\].padded: expected -1 with a remainder"):
        fd.run([x], schedule=data)


@pytest.mark.parametrize(
    ("shape", "split"),
    [
        ((1, 1), {"remainder": True, "interleave": 4}),
        ((1, 1), {"padded": 0}),
        ((1, 3), {"padded": 0}),
    ],
)
def test_parts_of_one_element_have_no_moments(shape, split):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.var_mean(x, [0, 1], correction=0)[0])
    inputs = [torch.ones(shape)]
    data = fd.schedule(inputs).to_dict()
    (value,) = data["segments"][0]["computes"]
    data["splits"] = [{"value": value, "parts": 2, **split}]
    with pytest.raises(ParamsError, match=r"splits\[0\]\.parts: .* leave something to both steps"):
        fd.run(inputs, schedule=data)
