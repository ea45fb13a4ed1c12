"""Segments that need nothing of one another in one launch: the same results."""

from __future__ import annotations

import json

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check
from tests.lowering.tile.test_finished_by_last import define, drawn, same
from tritonfuser import DataType, FusionDefinition, ParamsError
from tritonfuser.devices import known


def three_sums(fd, x, y, z):
    """Bias gradients of other widths: six kernels in two launches."""
    for value in (x, y, z):
        fd.add_output(fd.ops.sum(value, [0]))


def sums_and_maps(fd, x, y, z):
    fd.add_output(fd.ops.sum(x, [1]))
    fd.add_output(fd.ops.relu(y))
    fd.add_output(fd.ops.max(z, [0]))
    fd.add_output(fd.ops.exp(fd.ops.sum(y, [0, 1])))


def norms(fd, x, y, z):
    for value in (x, y):
        e = fd.ops.exp(value)
        total = fd.ops.broadcast(fd.ops.sum(e, [1]), [False, True])
        fd.add_output(fd.ops.div(e, total))
    fd.add_output(fd.ops.neg(z))


BODIES = {"sums": three_sums, "sums and maps": sums_and_maps, "norms": norms}
SHAPES = {
    "small": [(64, 48), (33, 20), (17, 128)],
    "split": [(4096, 64), (2048, 100), (2500, 33)],
    "ones": [(1, 1), (1, 5), (7, 1)],
}


def exported(fd, inputs, arch="sm_90", **options):
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    return json.loads(str(fd.schedule(meta, arch=arch, **options)))


def apart(data):
    return {**data, "segments": [{**piece, "beside": False} for piece in data["segments"]]}


def beside(data):
    return [piece["beside"] for piece in data["segments"]]


@pytest.mark.covering
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", BODIES)
def test_the_results_are_those_of_launches_of_their_own(name, shapes):
    fd = define(BODIES[name], 2, 2, 2)
    inputs = drawn(SHAPES[shapes], "fp32")
    data = exported(fd, inputs)
    found = fd.run(inputs, schedule=data)
    assert same(found, fd.run(inputs, schedule=apart(data)))
    torch.testing.assert_close(found, fd.run(inputs), rtol=1e-4, atol=1e-4)
    saved = len(fd.kernels(inputs, schedule=apart(data))) - len(fd.kernels(inputs, schedule=data))
    assert saved == sum(beside(data))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("name", BODIES)
def test_it_compiles(name, arch):
    fd = define(BODIES[name], 2, 2, 2, dtype="bf16")
    inputs = [torch.empty(s, device="meta", dtype=torch.bfloat16) for s in SHAPES["small"]]
    data = exported(fd, inputs, arch)
    # Where launches do not overlap, last programs finish sums, and have their launches.
    assert any(beside(data)) or any(piece["finishes"] for piece in data["segments"])
    for report in fd.compile_for(arch, inputs, schedule=data):
        assert report.spill_bytes == 0


def test_bias_gradients_share_two_launches():
    fd = define(three_sums, 2, 2, 2)
    inputs = [torch.empty(2048, n, device="meta") for n in (512, 1024, 1536)]
    kernels = fd.kernels(inputs, arch="sm_90")
    assert [k.name.count("_and_") for k in kernels] == [2, 2]
    assert "launch: that of s0" in str(fd.explain(inputs, arch="sm_90"))


def test_long_kernels_are_apart():
    """What shares a multiprocessor shares its registers: a kernel that is long loses by that."""
    fd = define(three_sums, 2, 2, 2)
    inputs = [torch.empty(1 << 16, n, device="meta") for n in (1024, 2048, 4096)]
    first, second = (beside(exported(fd, inputs))[at : at + 3] for at in (0, 3))
    assert not any(first) and second == [False, True, True]


def test_of_sizes_that_vary():
    fd = define(three_sums, 2, 2, 2)
    sizes = [4096, 5000, 8192]
    meta = [[torch.empty(n, w, device="meta") for w in (64, 128, 256)] for n in sizes]
    data = json.loads(str(fd.schedule(meta[0], arch="sm_90", varying=meta[1:])))
    assert any(beside(data))
    (kernel, *_) = fd.kernels(meta[0], arch="sm_90", varying=meta[1:])
    assert "_and_" in kernel.name and kernel.sizes
    for split in data["splits"]:
        split["parts"] = 8
    for n in (700, 1100, 1300):
        inputs = drawn([(n, w) for w in (64, 128, 256)], "fp32")
        found = fd.run(inputs, schedule=data)
        assert same(found, fd.run(inputs, schedule=apart(data)))
        torch.testing.assert_close(found, [x.sum(0) for x in inputs], rtol=1e-4, atol=1e-3)


def test_random_numbers_beside_others():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        y = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.mul(x, fd.ops.uniform(0.0, 1.0, [100], dtype=DataType.Float)))
        fd.add_output(fd.ops.sum(y, [0]))
    inputs = [torch.ones(100), torch.randn(60, 40)]
    data = exported(fd, inputs)
    assert any(beside(data))
    torch.manual_seed(5)
    found = fd.run(inputs, schedule=data)
    torch.manual_seed(5)
    assert same(found, fd.run(inputs, schedule=apart(data)))
    torch.manual_seed(5)
    torch.testing.assert_close(found, fd.run(inputs))


def refusal(body, shapes, place):
    fd = define(body, *(len(shape) for shape in shapes))
    inputs = drawn(shapes, "fp32")
    data = json.loads(str(fd.schedule(inputs)))
    data["segments"][place]["beside"] = True
    with pytest.raises(ParamsError) as caught:
        fd.run(inputs, schedule=data)
    return caught.value.message


def row_sums_and_all(fd, x):
    total = fd.ops.sum(x, [1])
    fd.add_output(total)
    fd.add_output(fd.ops.sum(fd.ops.exp(total), [0]))


def test_refusals_name_the_field():
    shapes = [(64, 64), (64, 32), (64, 16)]
    wanted = "segments[0].beside: expected false: no kernel comes directly before it"
    assert refusal(three_sums, shapes, 0) == wanted
    wanted = "segments[1].beside: expected false: it reads tv1, which is made in s0"
    assert refusal(row_sums_and_all, shapes[:1], 1) == wanted
    fd = define(three_sums, 2, 2, 2)
    inputs = drawn(shapes, "fp32")
    data = json.loads(str(fd.schedule(inputs)))
    data["segments"][1].update(beside=True, overlap=False)
    assert fd.is_legal(data, inputs).reason.startswith("segments[1].overlap: expected true")


def test_both_kinds_of_shared_launches_exclude_one_another():
    fd = define(row_sums_and_all, 2)
    inputs = drawn([(64, 64)], "fp32")
    data = json.loads(str(fd.schedule(inputs)))
    data["segments"][1].update(beside=True, finishes=True)
    assert fd.is_legal(data, inputs).reason == (
        "segments[1].beside: expected false: s0 finishes it"
    )


def test_it_can_be_searched():
    fd = define(three_sums, 2, 2, 2)
    inputs = [torch.empty(64, n, device="meta") for n in (64, 32, 16)]
    space = fd.search_space(inputs, arch="sm_90")
    assert [piece.beside for piece in space.segments] == [(False,), (True, False), (True, False)]


def many(count, inputs_each=1):
    """Sums of tensors of as many extents."""
    with FusionDefinition() as fd:
        for _ in range(count):
            given = [fd.define_tensor([-1, -1], contiguity=True) for _ in range(inputs_each)]
            total = given[0]
            for other in given[1:]:
                total = fd.ops.add(total, other)
            fd.add_output(fd.ops.sum(total, [0]))
    shapes = [(64, 16 + n) for n in range(count) for _ in range(inputs_each)]
    return fd, [torch.randn(shape) for shape in shapes]


def test_a_launch_has_not_too_many_segments():
    fd, inputs = many(40)
    data = exported(fd, inputs)
    kernels = fd.kernels(inputs, schedule=data)
    assert [k.name.count("_and_") for k in kernels] == [15, 15, 7]
    torch.testing.assert_close(fd.run(inputs, schedule=data), [x.sum(0) for x in inputs])
    data["segments"][16]["beside"] = True
    assert fd.is_legal(data, inputs).reason == (
        "segments[16].beside: expected false: 16 segments share the launch of s0 already"
    )


def test_a_launch_has_not_too_many_arguments():
    fd, inputs = many(4, 80)
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    counts = [len(kernel.args) for kernel in fd.kernels(meta, arch="sm_90")]
    assert 162 < max(counts) <= 250 and len(counts) > 1
    assert all(report.spill_bytes == 0 for report in fd.compile_for("sm_90", meta))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "gfx942"])
@pytest.mark.parametrize("rows", [0, 1, 64])
def test_a_segment_that_others_finish_has_its_launch(rows, arch):
    """Its last programs finish another one: they are no part of a third kernel's launch."""

    def body(fd, x, y):
        total = fd.ops.sum(x, [0, 1], keepdim=True)
        columns = fd.ops.sum(fd.ops.add(x, total), [0])
        return fd.ops.sub(y, fd.ops.min(y, [0])), columns, fd.ops.min(y, [0])

    check(body, noise(rows, 65), noise(7), facts=known(arch))
