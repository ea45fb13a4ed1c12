"""Results of several widths are computed once, by the threads that store them."""

from __future__ import annotations

import math
import re

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, texts
from tests.lowering.sass import disassembled, instructions, loops
from tritonfuser import DataType, Schedule

BF16, FLOAT, BOOL = torch.bfloat16, torch.float32, torch.bool
KINDS = {BF16: DataType.BFloat16, FLOAT: DataType.Float, BOOL: DataType.Bool}


def mixed(stored):
    """Each dtype of one value, as results."""

    def body(fd, *given):
        total = fd.ops.cast(given[0], DataType.Float)
        for x in given[1:]:
            total = fd.ops.add(total, fd.ops.cast(x, DataType.Float))
        for _ in range(6):
            total = fd.ops.mul(fd.ops.add(total, 0.5), total)
        casts = {BOOL: fd.ops.gt(total, 0.3), FLOAT: fd.ops.mul(total, 2.0)}
        return tuple(
            casts[kind] if kind in casts else fd.ops.cast(total, KINDS[kind]) for kind in stored
        )

    return body


def dropout(sizes, **seeds):
    """Results: the scaled numbers, and which were kept."""

    def body(fd, x):
        unit = fd.ops.uniform(0.0, 1.0, list(sizes), dtype=DataType.Float, **seeds)
        seen = fd.ops.lt(unit, 0.75)
        scaled = fd.ops.where(seen, fd.ops.cast(x, DataType.Float), 0.0) * 1.25
        return fd.ops.cast(scaled, DataType.BFloat16), seen

    return body


def code(body, given, folder):
    """Instructions for each element of the kernel of a body, on sm_90."""
    fd = record(body, given)
    (source,) = fd.kernels(given, arch="sm_90")
    (report,) = fd.compile_for("sm_90", given)
    found = instructions(disassembled(report.asm["cubin"], folder))
    threads = math.prod(source.grid) * source.num_warps * 32
    return source, {n: c * threads / given[0].numel() for n, c in found.items()}


def limits(text):
    """The limits on neighbours in a kernel."""
    found = re.findall(r"tl\.max_contiguous\(.*?, \[?(\d+(?:, \d+)*)\]?\)", text)
    return {max(map(int, each.split(", "))) for each in found}


def of(found, *names):
    return sum(n for name, n in found.items() if name.startswith(names))


def meta(*dtypes):
    return [torch.empty(4096, 4096, dtype=dtype, device="meta") for dtype in dtypes]


CASES = [
    ((BF16,), (BF16, BOOL), 8),
    ((BF16,), (BF16, FLOAT), 4),
    ((FLOAT,), (FLOAT, BOOL), 4),
    ((BF16, BOOL), (BF16,), 8),
    ((FLOAT, BF16), (FLOAT,), 4),
]


@pytest.mark.parametrize(("loaded", "stored", "most"), CASES)
def test_no_result_is_computed_twice_or_handed_on(loaded, stored, most, tmp_path):
    source, found = code(mixed(stored), meta(*loaded), tmp_path)
    assert limits(source.text) == {most}
    assert of(found, "STS", "LDS", "BAR", "SHFL") == 0
    assert of(found, "FADD", "FMUL", "FFMA") <= 13 + len(loaded)


@pytest.mark.parametrize("dtypes", [(BF16,), (FLOAT,), (FLOAT, BF16)])
def test_one_width_of_results_needs_no_limit(dtypes):
    source = record(mixed((BF16,)), meta(*dtypes)).kernels(meta(*dtypes), arch="sm_90")[0]
    assert "max_contiguous" not in source.text


def test_a_dropout_draws_each_number_once(tmp_path):
    """Twenty wide multiplies of a counter give four numbers. There were nine a number."""
    sizes = (4096, 4096)
    _, found = code(dropout(sizes), meta(BF16), tmp_path)
    assert of(found, "IMAD.WIDE") < 5 and sum(found.values()) < 22
    assert of(found, "STS", "LDS", "BAR") == 0


def test_small_results_beside_change_nothing():
    def body(fd, x, w):
        return fd.ops.cast(fd.ops.add(x, w), DataType.BFloat16), fd.ops.mul(w, 2.0)

    given = [
        torch.empty(512, 1024, dtype=BF16, device="meta"),
        torch.empty(1024, device="meta"),
    ]
    sources = record(body, given).kernels(given, arch="sm_90")
    assert not any("max_contiguous" in source.text for source in sources)


@pytest.mark.parametrize("sizes", [(33, 17), (64, 128), (1, 5)])
def test_values_are_those_of_torch(sizes):
    x = noise(*sizes).to(BF16) * 0.25
    check(mixed((BF16, FLOAT)), x, tolerance=2e-2)
    check(dropout(sizes, rng_seed=5, rng_offset=8), x, tolerance=2e-2)
    for dim in (0, 1):
        check(masked_sums(dim), x > 0, x, tolerance=2e-2)


def test_a_norm_that_stores_two_widths():
    def body(fd, x):
        wide = fd.ops.cast(x, DataType.Float)
        shifted = fd.ops.sub(wide, fd.ops.max(wide, [1], True))
        return fd.ops.cast(shifted, DataType.BFloat16), shifted

    for columns in (96, 384, 1000):
        check(body, noise(12, columns).to(BF16), tolerance=2e-2)
    found = lowered(body, [noise(12, 1024).to(BF16)])
    assert limits(texts(found)[0]) == {4}


def masked_sums(dim):
    """What a mask keeps, and its sums."""

    def body(fd, kept, x):
        wide = fd.ops.cast(fd.ops.where(kept, x, 0.0), DataType.Float)
        return fd.ops.cast(wide, DataType.BFloat16), fd.ops.sum(wide, [dim])

    return body


def test_sums_beside_what_they_are_of_are_handed_on_by_no_step(tmp_path):
    """Each step took what it stores through shared memory, from 16 neighbours a thread to 8."""
    given = [torch.empty(256, 131072, dtype=dtype, device="meta") for dtype in (BOOL, BF16)]
    fd = record(masked_sums(1), given)
    text = fd.kernels(given, arch="sm_90")[0].text
    code = disassembled(fd.compile_for("sm_90", given)[0].asm["cubin"], tmp_path)
    steps = loops(code)[1]
    assert limits(text) == {8} and steps
    assert all(of(step, "STG.E.128") and not of(step, "STS", "LDS", "BAR") for step in steps)


@pytest.mark.parametrize("dim", [0, 1])
def test_a_pipeline_of_sums_has_its_loads_in_shared_memory(dim):
    """From there each use takes them in its own layout: wider loads are fewer."""
    given = [torch.empty(4096, 8192, dtype=dtype, device="meta") for dtype in (BOOL, BF16)]
    fd = record(masked_sums(dim), given)
    data = fd.schedule(given, arch="sm_90").to_dict()
    loop = {"persistent": False, "tails": [], "align": 1, "block_x": 1, "block_r": 4096}
    columns = {"block_x": 256, "block_r": 16}
    for stages, expected in ((1, {8}), (3, set())):
        own = loop | (columns if dim == 0 else {}) | {"num_stages": stages, "num_warps": 4}
        data["segments"][0]["params"].update(own)
        assert limits(fd.kernels(given, arch="sm_90", schedule=data)[0].text) == expected


def dropped_norm(rows, columns, **seeds):
    def body(fd, x):
        unit = fd.ops.uniform(0.0, 1.0, [rows, columns], dtype=DataType.Float, **seeds)
        kept = fd.ops.where(fd.ops.lt(unit, 0.75), fd.ops.cast(x, DataType.Float), 0.0)
        return fd.ops.cast(fd.ops.sub(kept, fd.ops.max(kept, [1], True)), DataType.BFloat16)

    return body


@pytest.mark.parametrize(
    ("rows", "columns", "most"), [(2048, 768, 4), (8192, 768, 0), (8192, 640, 4), (8192, 1024, 0)]
)
def test_no_numbers_are_drawn_behind_the_end_of_rows(rows, columns, most, tmp_path):
    """Two warps take 512 elements of a row of 768 at a time, or 256; one warp 256."""
    given = [torch.empty(rows, columns, dtype=BF16, device="meta")]
    source, found = code(dropped_norm(rows, columns), given, tmp_path)
    assert limits(source.text) == ({most} if most else set())
    assert of(found, "IMAD.WIDE") < 6
    check(dropped_norm(6, columns, rng_seed=3, rng_offset=4), noise(6, columns).to(BF16))


def channels(fd, x, keep):
    """A sum of each channel of several images, which are stored beside it."""
    wide = fd.ops.where(keep, fd.ops.cast(x, DataType.Float), 0.0)
    total = fd.ops.sum(wide, [0, 2], keepdim=True)
    return fd.ops.cast(fd.ops.sub(wide, total), DataType.BFloat16)


def test_rows_of_several_runs_of_memory_have_vectors(tmp_path):
    """Of quotients of positions that have a limit Triton sees no neighbours: it is on addresses."""
    given = [torch.empty(64, 128, 784, dtype=kind, device="meta") for kind in (BF16, torch.bool)]
    source, found = code(channels, given, tmp_path)
    assert "// 784" in source.text
    assert limits(source.text) == {8} and of(found, "LDG.E.EL.128") > 0
    assert of(found, "STS.128", "LDS.128") == 0  # no block is handed from one layout to another


@pytest.mark.covering
@pytest.mark.parametrize("axes", [[1, 0, 2], [2, 0, 1, 3], [0, 1, 2]])
@pytest.mark.parametrize("factor", [2, 4, 8])
def test_a_given_number_of_neighbours_holds_in_any_order_of_axes(axes, factor, tmp_path):
    """Loads were of single elements where a position is divided: at 3.6 times the time."""
    shape = (256, 8, 32, 96)[4 - len(axes) :]
    x = torch.empty(*shape, dtype=BF16, device="meta")
    w = torch.empty(shape[-1], dtype=BF16, device="meta")

    def body(fd, x, w):
        return fd.ops.cast(fd.ops.mul(x, w), DataType.BFloat16)

    fd = record(body, [x, w])
    given = fd.schedule([x, w], arch="sm_90").to_dict()
    params = {"axes": axes, "vectorization_factor": factor, "block_x": 1024, "num_warps": 2}
    given["segments"][0]["params"] |= params
    (report,) = fd.compile_for("sm_90", [x, w], schedule=Schedule.from_dict(given))
    vectors = {2: "LDG.E", 4: "LDG.E.64", 8: "LDG.E.128"}
    found = instructions(disassembled(report.asm["cubin"], tmp_path))
    loads = {name for name in found if name.startswith("LDG")}
    assert loads and all(name.startswith(vectors[factor]) for name in loads)


def test_a_weight_of_columns_is_loaded_in_vectors(tmp_path):
    def body(fd, x, w):
        made = fd.ops.add(fd.ops.cast(x, DataType.Float), fd.ops.cast(w, DataType.Float))
        return made, fd.ops.cast(made, DataType.BFloat16)

    given = [torch.empty(*n, dtype=BF16, device="meta") for n in ((4096, 768), (768,))]
    _, found = code(body, given, tmp_path)
    assert of(found, "LDG.E.64") > 0 and of(found, "LDG.E.U16") == 0
