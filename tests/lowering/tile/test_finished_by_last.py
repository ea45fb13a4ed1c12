"""Second steps that the last programs of the first step's kernel compute: the same bits."""

from __future__ import annotations

import json

import pytest
import torch

from tritonfuser import DataType, FusionDefinition, IndexRangeError, ParamsError

WIDE = {"bf16": DataType.BFloat16, "fp16": DataType.Half, "fp32": DataType.Float}
TORCH = {"bf16": torch.bfloat16, "fp16": torch.half, "fp32": torch.float32, "fp64": torch.double}
WIDE["fp64"] = DataType.Double


def define(body, *ranks, dtype="fp32"):
    with FusionDefinition() as fd:
        given = [
            fd.define_tensor([-1] * rank, contiguity=True, dtype=WIDE[dtype]) for rank in ranks
        ]
        body(fd, *given)
    return fd


def column_sums(fd, x):
    wide = fd.ops.cast(x, DataType.Float)
    fd.add_output(fd.ops.cast(fd.ops.sum(wide, [0]), x.dtype()))


def column_mean(fd, x):
    fd.add_output(fd.ops.mul(fd.ops.sum(x, [0]), 0.25))


def largest(fd, x):
    fd.add_output(fd.ops.max(x, [0]))


def whole_sum(fd, x):
    fd.add_output(fd.ops.sqrt(fd.ops.sum(fd.ops.mul(x, x), [0, 1])))


def row_sums(fd, x):
    fd.add_output(fd.ops.sum(x, [1]))


def middle(fd, x):
    fd.add_output(fd.ops.sum(x, [1]))


def two_sums(fd, x, y):
    """Two gradients of one pass, and a value that is stored along the rows."""
    both = fd.ops.mul(x, y)
    fd.add_output(both)
    fd.add_output(fd.ops.sum(both, [0]))
    fd.add_output(fd.ops.sum(x, [0]))


def mean_of_rows(fd, x):
    """A loss: the rows are reduced in one kernel, and all of them by its last program."""
    fd.add_output(fd.ops.sum(fd.ops.log(fd.ops.sum(fd.ops.exp(x), [1])), [0]))


CASES = {
    "columns": (column_sums, [(4096, 128)]),
    "columns of any width": (column_sums, [(4096, 100)]),
    "columns of prime height": (column_sums, [(4099, 128)]),
    "mean of columns": (column_mean, [(4096, 256)]),
    "maxima": (largest, [(4096, 128)]),
    "of all": (whole_sum, [(512, 512)]),
    "of all, prime": (whole_sum, [(521, 509)]),
    "few rows": (row_sums, [(3, 50_000)]),
    "one row": (row_sums, [(1, 50_021)]),
    "between": (middle, [(4, 2048, 64)]),
    "two and a result": (two_sums, [(4096, 64), (4096, 64)]),
    "loss": (mean_of_rows, [(256, 512)]),
}


def exported(fd, inputs, **options):
    """The schedule for a GPU, as JSON."""
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    return json.loads(str(fd.schedule(meta, arch="sm_80", **options)))


def finishing(data):
    return [piece for piece in data["segments"] if piece["finishes"]]


def apart(data):
    pieces = [{**piece, "finishes": False} for piece in data["segments"]]
    return {**data, "segments": pieces}


def drawn(shapes, dtype):
    torch.manual_seed(3)
    return [torch.randn(shape, dtype=torch.float64).to(TORCH[dtype]) for shape in shapes]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_it_gives_the_bits_of_two_kernels(name):
    body, shapes = CASES[name]
    fd = define(body, *(len(shape) for shape in shapes))
    inputs = drawn(shapes, "fp32")
    data = exported(fd, inputs)
    assert finishing(data), data["segments"]
    found = fd.run(inputs, schedule=data)
    assert len(fd.kernels(inputs, schedule=data)) == len(data["segments"]) - len(finishing(data))
    assert len(fd.kernels(inputs, schedule=apart(data))) == len(data["segments"])
    assert same(found, fd.run(inputs, schedule=apart(data)))
    assert same(found, fd.run(inputs, schedule=data))
    torch.testing.assert_close(found, fd.run(inputs), rtol=1e-4, atol=1e-4)
    fd.validate(inputs)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("name", ["columns", "of all", "two and a result"])
def test_it_compiles(name, arch):
    body, shapes = CASES[name]
    fd = define(body, *(len(shape) for shape in shapes), dtype="bf16")
    inputs = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    data = exported(fd, inputs)
    (kernel,) = fd.kernels(inputs, arch=arch, schedule=data)
    assert "is_last(" in kernel.text
    (report,) = fd.compile_for(arch, inputs, schedule=data)
    assert report.spill_bytes == 0
    if arch.startswith("sm_"):
        ptx = report.asm["ptx"]
        barrier, ticket = ptx.index("bar.sync"), ptx.index("atom.global.gpu.acq_rel.add")
        assert barrier < ticket < ptx.index("ld.global.cg")


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp64"])
def test_of_other_dtypes(dtype):
    fd = define(two_sums, 2, 2, dtype=dtype)
    inputs = drawn([(2048, 64), (2048, 64)], dtype)
    data = exported(fd, inputs)
    assert finishing(data)
    found = fd.run(inputs, schedule=data)
    assert same(found, fd.run(inputs, schedule=apart(data)))
    fd.validate(inputs)
    tolerance = {} if dtype == "fp64" else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(found, fd.run(inputs), **tolerance)


SIZES = [(4096, 128), (5001, 128), (6000, 128), (3, 128), (1, 128), (0, 128)]


def test_of_sizes_that_vary():
    """One kernel: how many programs arrive, and how many counters there are, are its arguments."""
    fd = define(column_sums, 2)
    meta = [[torch.empty(size, device="meta")] for size in SIZES]
    data = json.loads(str(fd.schedule(meta[0], arch="sm_80", varying=meta[1:3])))
    assert finishing(data)
    (kernel,) = fd.kernels(meta[0], arch="sm_80", varying=meta[1:3])
    assert kernel.sizes and kernel.arrivals.count == 8
    # Parts of 250 rows at most, which fit the first step's tile; all 24 fit the second's.
    data["splits"][0]["parts"] = 24
    data["segments"][1]["params"]["block_r"] = 32
    for size in SIZES[:3]:
        inputs = drawn([size], "fp32")
        found = fd.run(inputs, schedule=data)
        assert same(found, fd.run(inputs, schedule=apart(data)))
        torch.testing.assert_close(found[0], inputs[0].sum(0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("arch", ["sm_80", "gfx942"])
def test_sizes_that_vary_compile(arch):
    fd = define(two_sums, 2, 2)
    meta = [[torch.empty(n, 64, device="meta")] * 2 for n in (4096, 5001, 8192)]
    assert "is_last(" in fd.kernels(meta[0], arch=arch, varying=meta[1:])[0].text
    (report, *_) = fd.compile_for(arch, meta[0])
    assert report.spill_bytes == 0


@pytest.mark.covering
@pytest.mark.parametrize("block", [1, 16, 64, 256])
@pytest.mark.parametrize("shape", [(2048, 64), (2048, 50), (4096, 1)])
def test_tiles_of_any_size_meet_somewhere(shape, block):
    """Where the tiles of both steps do not divide one another, all programs meet at one counter."""
    fd = define(column_sums, 2)
    inputs = drawn([shape], "fp32")
    data = exported(fd, inputs)
    for one in (0, 1):
        changed = json.loads(json.dumps(data))
        changed["segments"][1]["finishes"] = True
        changed["segments"][one]["params"].update(block_x=block)
        found = fd.run(inputs, schedule=changed)
        assert same(found, fd.run(inputs, schedule=apart(changed)))
        torch.testing.assert_close(found[0], inputs[0].sum(0), rtol=1e-4, atol=1e-3)


def refusal(body, shapes, place, edit=lambda data: None):
    fd = define(body, *(len(shape) for shape in shapes))
    inputs = drawn(shapes, "fp32")
    data = json.loads(str(fd.schedule(inputs)))
    data["segments"][place]["finishes"] = True
    edit(data)
    with pytest.raises(ParamsError) as caught:
        fd.run(inputs, schedule=data)
    assert not fd.is_legal(data, inputs)
    return caught.value.message


def sum_and_its_columns(fd, x):
    """The second kernel reads the results of the first in other rows than those that made them."""
    total = fd.ops.sum(x, [1])
    fd.add_output(fd.ops.mul(x, fd.ops.broadcast(total, [True, False])))


def test_refusals_name_the_field():
    wanted = "segments[0].finishes: expected false: no kernel before it makes what it reads"
    assert refusal(column_sums, [(64, 64)], 0) == wanted
    found = refusal(sum_and_its_columns, [(64, 64)], 1)
    assert found == (
        "segments[1].finishes: expected false: it reads tv1 at other places than s0 makes it"
    )
    fd = define(column_sums, 2)
    inputs = drawn([(4096, 128)], "fp32")
    data = exported(fd, inputs)
    data["segments"][1]["overlap"] = False
    assert fd.is_legal(data, inputs).reason.startswith("segments[1].overlap: expected true")
    data["segments"][1].update(overlap=True, finishes=1)
    assert fd.is_legal(data, inputs).reason == (
        "segments[1].finishes: expected bool, got 1 of type int"
    )


def test_warps_are_those_of_the_launch():
    fd = define(column_sums, 2)
    inputs = drawn([(4096, 128)], "fp32")
    data = exported(fd, inputs)
    data["segments"][0]["params"]["num_warps"] = 2
    made = fd.schedule(inputs, schedule=data)
    assert [piece.params.num_warps for piece in made.segments] == [2, 2]


def test_it_can_be_searched():
    fd = define(column_sums, 2)
    inputs = [torch.empty(4096, 128, device="meta")]
    space = fd.search_space(inputs, arch="sm_80")
    assert [set(piece.finishes) for piece in space.segments] == [{False}, {False, True}]
    assert space.to_dict()["segments"][1]["finishes"] == [True, False]


def gathered(fd, x, at):
    rows = fd.ops.index_select(x, at, 0)
    fd.add_output(fd.ops.sum(rows, [0]))


def test_a_run_that_ends_in_the_middle_leaves_nothing_behind():
    """An index out of range ends the interpreter after some programs have arrived."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        at = fd.define_tensor([-1], contiguity=True, dtype=DataType.Int)
        gathered(fd, x, at)
    x, at = torch.randn(4096, 64), torch.randperm(4096)
    data = exported(fd, [x, at])
    assert finishing(data)
    expected = fd.run([x, at], schedule=data)
    wrong = at.clone()
    wrong[2048] = 4096
    with pytest.raises(IndexRangeError):
        fd.run([x, wrong], schedule=data)
    assert same(fd.run([x, at], schedule=data), expected)


def test_the_report_says_so():
    fd = define(column_sums, 2)
    found = fd.explain([torch.empty(4096, 128, device="meta")], arch="sm_80")
    assert [piece.finishes for piece in found.segments] == ["", "s0"]
    assert [piece.grid is None for piece in found.segments] == [False, True]
    assert "1 kernel for" in str(found)
    assert "launch: none, the last programs of s0 compute it" in str(found)


def test_kernels_that_overlap_are_apart():
    """A second kernel that starts while the first one ends takes less time there."""
    fd = define(column_sums, 2)
    assert len(fd.kernels([torch.empty(4096, 128, device="meta")], arch="sm_90")) == 2
