"""Kernels of every scheduler under many params, 64-bit indices, grids, literals, long chains."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from tests.lowering.graphs import layer_norm, layer_norm_backward, noise, normalized, softmax
from tests.lowering.harness import CPU, H200, check, lowered, record, schedulers, small, texts
from tritonfuser import DataType
from tritonfuser.devices import known
from tritonfuser.errors import LoweringError, ParamsError
from tritonfuser.heuristics.params import PointwiseParams
from tritonfuser.lowering.build import compile_kernel
from tritonfuser.lowering.fuse import second_sides

# --- every scheduler, masked and not, one row and many -----------------------------------


def scanned(fd, x):
    running = fd.ops.cumsum(x, 1)
    return fd.ops.mul(running, 0.1), fd.ops.sum(fd.ops.mul(running, x), [1]), fd.ops.cummax(x, 1)


def scanned_after(fd, x):
    """A scan of what depends on a reduction of a scan: three walks over the row."""
    running = fd.ops.mul(fd.ops.cumsum(x, 1), 0.1)
    return fd.ops.cumsum(fd.ops.sub(running, fd.ops.max(running, [1], keepdim=True)), 1)


def reduced(dim):
    def body(fd, x):
        powers = fd.ops.exp(x)
        return fd.ops.sum(powers, [dim]), fd.ops.max(x, [dim]), *fd.ops.welford(x, [dim])

    return body


KINDS = {
    "pointwise": (lambda fd, x: fd.ops.tanh(fd.ops.add(x, 1.0)), "pointwise"),
    "inner reduction": (reduced(1), "reduction"),
    "outer reduction": (reduced(0), "reduction"),
    "inner norm": (lambda fd, x: (softmax(fd, x), normalized(fd, x, [1])), "inner_persistent"),
    "outer norm": (lambda fd, x: (softmax(fd, x, 0), normalized(fd, x, [0])), "outer_persistent"),
    "scan": (scanned, "scan"),
    "scans": (scanned_after, "scan"),
}
TILES = [
    {"block_x": 1, "block_r": 8, "persistent": False},
    {"block_x": 4, "block_r": 8, "persistent": False, "num_stages": 3},
    {"block_x": 16, "block_r": 32, "persistent": False},
    {"block_x": 32, "block_r": 64, "persistent": True},
]


@pytest.mark.covering
@pytest.mark.parametrize("shape", [(16, 32), (5, 37), (1, 24), (24, 1), (1, 1)])
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t['block_x']}x{t['block_r']}")
@pytest.mark.parametrize("kind", KINDS)
def test_any_tile(kind, tile, shape):
    """Rows shorter and longer than a tile, tiles that reach past them, loops and none."""
    body, scheduler = KINDS[kind]
    found = check(body, noise(*shape), facts=small(4), tolerance=1e-4, **tile)
    if 1 not in shape:
        assert schedulers(found) == [scheduler]


@pytest.mark.covering
@pytest.mark.parametrize("tile", [(1, 1), (8, 16), (32, 8)])
@pytest.mark.parametrize("shape", [(32, 16), (33, 17)])
def test_transposes(shape, tile, monkeypatch):
    monkeypatch.setattr(second_sides, "GAIN", 100.0)  # Small tensors take no longer by flat tiles.
    rows, columns = shape
    found = check(
        lambda fd, x, y: fd.ops.add(x, fd.ops.permute(y, [1, 0])),
        noise(rows, columns),
        noise(columns, rows),
        block_x=tile[0],
        block_y=tile[1],
    )
    assert schedulers(found) == ["transpose"]


def test_transposes_of_a_middle_dim(monkeypatch):
    monkeypatch.setattr(second_sides, "GAIN", 100.0)
    body = lambda fd, x, y: fd.ops.add(x, fd.ops.permute(y, [2, 1, 0]))  # noqa: E731
    found = check(body, noise(12, 3, 10), noise(10, 3, 12), block_x=8, block_y=4)
    assert schedulers(found) == ["transpose"]


@pytest.mark.covering
@pytest.mark.parametrize("block_m", [1, 2, 4, 32])
@pytest.mark.parametrize("rows", [64, 72])
def test_rows_walked_with_sums_over_them(rows, block_m):
    """Four programs of 16 or 18 rows: steps that fill their share, and steps that do not."""
    inputs = noise(rows, 64), noise(rows, 64, seed=1), noise(64)
    found = check(layer_norm_backward, *inputs, facts=small(2), tolerance=1e-4, block_m=block_m)
    assert schedulers(found)[0] == "inner_outer_persistent"


@pytest.mark.parametrize("block_m", [1, 4, 16])
def test_results_that_need_the_sums_over_all_rows(block_m):
    """One program that walks over the rows again when it has the sums."""

    def body(fd, x):
        columns = fd.ops.sum(x, [0], keepdim=True)
        shifted = fd.ops.sub(x, columns)
        return fd.ops.sub(shifted, fd.ops.sum(shifted, [1], keepdim=True)), fd.ops.sum(x, [1])

    found = check(body, noise(13, 20), facts=CPU, tolerance=1e-4, block_m=block_m, block_r=32)
    assert "inner_outer_persistent" in schedulers(found)


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("inner norm", {"block_r": 16, "persistent": True}, "block_r=16 is too small"),
        ("inner reduction", {"block_r": 16, "persistent": True}, "block_r=16 is too small"),
        ("pointwise", {"block_x": 48}, "a power of two"),
        ("pointwise", {"block_x": 1 << 21}, "block_x: expected a power of two, 1 to 1048576"),
        ("pointwise", {"num_warps": 64}, "num_warps"),
    ],
)
def test_params_that_cannot_run_are_refused(name, changes, why):
    with pytest.raises(ParamsError, match=why):
        lowered(KINDS[name][0], [noise(8, 32)], **changes)


def test_params_are_one_a_segment_and_of_its_scheduler():
    fd, inputs = record(softmax, [noise(8, 32)]), [noise(8, 32)]
    (piece,) = lowered(fd, inputs).segmented.segments
    with pytest.raises(ParamsError, match="2 params for 1 segments"):
        lowered(fd, inputs, params=[piece.params, piece.params])
    with pytest.raises(ParamsError, match="which does not take PointwiseParams"):
        lowered(fd, inputs, params=[PointwiseParams(block_x=8)])


# --- 64-bit indices ----------------------------------------------------------------------


def meta(*sizes, dtype=torch.float32, strides=None):
    if strides is not None:
        return torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    return torch.empty(sizes, dtype=dtype, device="meta")


def column_sums(fd, x):
    return fd.ops.sum(x, [0])


WIDE = {
    "many elements": (lambda fd, x: fd.ops.exp(x), [meta(1 << 31)], True),
    "almost as many": (lambda fd, x: fd.ops.exp(x), [meta((1 << 31) - 4096)], False),
    "a last tile past them": (lambda fd, x: fd.ops.exp(x), [meta((1 << 31) - 1)], True),
    "columns": (column_sums, [meta(70000, 40000)], True),
    "rows in chunks": (softmax, [meta(70000, 40000)], True),
    "a gap": (column_sums, [meta(3, 1024, strides=(1 << 30, 1))], True),
    "a smaller gap": (column_sums, [meta(2, 1024, strides=(1 << 30, 1))], False),
    "stretched": (lambda fd, x: fd.ops.exp(x), [meta(8, 1024, strides=(0, 1))], False),
    "a large result of small inputs": (
        lambda fd, x, y: fd.ops.add(
            fd.ops.broadcast(x, [False, True]), fd.ops.broadcast(y, [True, False])
        ),
        [meta(1 << 16), meta(1 << 15)],
        True,
    ),
    "many positions, few elements": (
        lambda fd, x: fd.ops.max(x, [0, 1]),
        [meta(1 << 16, 1 << 16, strides=(0, 1))],
        True,
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_indices_are_as_wide_as_they_must(name):
    body, inputs, wide = WIDE[name]
    (first, *_) = lowered(body, inputs, small(1)).sources
    assert first is not None
    ranges = [line for line in first.text.splitlines() if "tl.arange" in line]
    assert ranges
    assert all(line.endswith(".to(tl.int64)") is wide for line in ranges), first.text
    programs = re.findall(r"tl\.program_id\(0\)(\.to\(tl\.int64\))?", first.text)
    assert all(bool(cast) is wide for cast in programs)
    compile_kernel(first, "sm_90", tuple(arg.is_tensor for arg in first.args))


def test_an_index_that_is_read_is_widened():
    inputs = [meta(1 << 20, 4096), meta(128, dtype=torch.int32)]
    (text,) = texts(lowered(lambda fd, x, i: fd.ops.index_select(x, i, 0), inputs))
    assert "i0_lane = clamped_index(tv1_lane, 1048576" in text
    assert "i0.to(tl.int64) * 4096" in text
    small_inputs = [meta(1 << 10, 4096), meta(128, dtype=torch.int32)]
    (text,) = texts(lowered(lambda fd, x, i: fd.ops.index_select(x, i, 0), small_inputs))
    assert "int64" not in text


def test_wide_kernels_compute_the_same(monkeypatch):
    monkeypatch.setattr("tritonfuser.shapes.memory.INT32_LIMIT", 16)
    bodies = (
        lambda fd, x: (softmax(fd, x), fd.ops.cumsum(x, 1), fd.ops.sum(x, [0])),
        lambda fd, x: fd.ops.add(fd.ops.reshape(fd.ops.exp(x), [35, 6]), 1.0),
        lambda fd, x: fd.ops.pad(x, [1, 1], 2.0),
        lambda fd, x: fd.ops.index_select(x, fd.ops.cast(fd.ops.iota(3), DataType.Int32), 1),
    )
    for body in bodies:
        found = check(body, noise(14, 15), facts=small(4), block_r=8, persistent=False)
        assert any("int64" in text for text in texts(found))


# --- grids -------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [((32, 1 << 24), (1 << 24, 32)), ((1 << 24, 32), (32, 1 << 24))])
def test_grids_stay_within_the_limits(shapes):
    """CUDA starts at most 65535 programs along the second axis."""
    inputs = [meta(*shape) for shape in shapes]
    found = lowered(lambda fd, x, y: fd.ops.add(x, fd.ops.permute(y, [1, 0])), inputs)
    assert schedulers(found) == ["transpose"]
    (source,) = found.sources
    assert source is not None
    x, y, z = source.grid
    assert x > 65535
    assert y <= 65535
    assert z == 1


def test_an_exchanged_grid_computes_the_same(monkeypatch):
    monkeypatch.setattr("tritonfuser.lowering.axis_order.MAX_PROGRAMS_Y", 2)
    body = lambda fd, x, y: fd.ops.add(x, fd.ops.permute(y, [1, 0]))  # noqa: E731
    for rows, columns in ((48, 9), (9, 48)):
        found = check(body, noise(rows, columns), noise(columns, rows), block_x=8, block_y=8)
        (source,) = found.sources
        assert source is not None
        assert source.grid[1] <= 2


# --- single values -----------------------------------------------------------------------


def border(fd, x, value, dtype=None):
    """Nothing but what a pad fills in."""
    return fd.ops.slice(fd.ops.pad(x, [0, 0, 2, 0], value), [0, 0], [2, 6])


NUMBERS = {
    "function": lambda fd, x: fd.ops.tanh(border(fd, x, 2.0)),
    "two numbers": lambda fd, x: fd.ops.add(border(fd, x, 2.0), border(fd, x, 0.1)),
    "choice": lambda fd, x: fd.ops.where(fd.ops.gt(border(fd, x, 2.0), 1.0), 1.0, 2.0),
    "sum": lambda fd, x: fd.ops.sum(border(fd, x, 2.0), [1]),
    "largest": lambda fd, x: fd.ops.max(border(fd, x, 2.0)),
    "running": lambda fd, x: fd.ops.cumsum(border(fd, x, 2.0), 1),
    "cast": lambda fd, x: fd.ops.cast(border(fd, x, 2.5), DataType.Int),
    "alone": lambda fd, x: border(fd, x, float("-inf")),
    "nothing to read": lambda fd, x: fd.ops.exp(
        fd.ops.pad(fd.ops.slice(x, [0, 0], [0, 6]), [0, 0, 2, 1])
    ),
    "borders within": lambda fd, x: fd.ops.exp(
        fd.ops.pad(fd.ops.pad(x, [1, 1], 1.0), [2, 0, 1, 1], 2.0)
    ),
    "cut off": lambda fd, x: fd.ops.exp(fd.ops.pad(x, [-1, 2, -1, -1], 1.0)),
    "constants beside": lambda fd, x: fd.ops.cat(
        [fd.ops.full([2, 6], 1.5, DataType.Float), x, fd.ops.full([1, 6], 2.5, DataType.Float)], 0
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_where_tensors_are_taken(name):
    found = check(NUMBERS[name], noise(4, 6))
    for source in found.sources:
        assert source is not None
        compile_kernel(source, "sm_90", tuple(arg.is_tensor for arg in source.args))


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        (torch.half, 2.0),
        (torch.float64, 0.1),
        (torch.int64, 5),
        (torch.int32, 5),
        (torch.bool, True),
    ],
)
def test_numbers_of_any_dtype(dtype, fill):
    x = (noise(4, 6) * 3).to(dtype)

    def body(fd, x):
        edge, whole = border(fd, x, fill), fd.ops.pad(x, [1, 1], fill)
        test = fd.ops.logical_not if dtype is torch.bool else fd.ops.neg
        return test(edge), test(whole), whole, fd.ops.max(edge, [0])

    check(body, x, tolerance=1e-12)


def test_one_element_and_a_wider_tile():
    """An address without axes beside masks that have some."""
    for body in (
        lambda fd, x: fd.ops.cumsum(x, 1),
        lambda fd, x: fd.ops.cat([x, fd.ops.exp(x)], 0),
        lambda fd, x: fd.ops.pad(fd.ops.exp(x), [1, 1, 1, 1]),
        lambda fd, x: (fd.ops.exp(x), fd.ops.sum(fd.ops.pad(x, [2, 3]), [1])),
    ):
        check(body, noise(1, 1), block_x=16, block_r=16)


# --- long chains -------------------------------------------------------------------------


def test_a_chain_of_two_thousand_ops():
    """Longer than Python's stack is deep."""

    def body(fd, x):
        for step in range(1000):
            x = fd.ops.add(fd.ops.mul(x, 0.999), 0.001 if step % 2 else -0.001)
        return x

    found = check(body, noise(4), facts=CPU, tolerance=1e-4)
    assert schedulers(found) == ["pointwise"]


def test_a_chain_of_views():
    def body(fd, x):
        for _ in range(300):
            x = fd.ops.permute(fd.ops.exp(fd.ops.mul(x, 0.1)), [1, 0])
        return x

    check(body, noise(3, 5))


# --- text --------------------------------------------------------------------------------


def test_a_kernel_is_a_module_that_runs():
    """Its ``launch`` takes the tensors; nothing but our names is in it."""
    (text,) = texts(lowered(layer_norm, [noise(8, 64), noise(64), noise(64)]))
    compile(text, "kernel", "exec")
    assert text.count("@triton.jit") == 1
    assert "def launch(" in text
    assert "# graphs.py:" in text


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_every_scheduler_compiles(arch):
    """The text is right for the compiler too, not only for the interpreter."""
    cases = [
        (layer_norm, [noise(8, 64), noise(64), noise(64)], {}),
        (layer_norm_backward, [noise(64, 64), noise(64, 64), noise(64)], {}),
        (scanned_after, [noise(5, 37)], {"block_r": 8}),
        (lambda fd, x: fd.ops.add(x, fd.ops.permute(x, [1, 0])), [noise(33, 33)], {}),
        (KINDS["outer norm"][0], [noise(37, 5)], {"block_r": 8, "persistent": False}),
    ]
    for body, inputs, changes in cases:
        for source in lowered(body, inputs, H200, **changes).sources:
            assert source is not None
            kernel = compile_kernel(source, arch, tuple(arg.is_tensor for arg in source.args))
            assert kernel.asm


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("columns", [1024, 4096, 6000])
def test_loads_in_flight_fit_in_shared_memory(arch, columns):
    """Four float tensors, three steps ahead, are more than any device has."""

    def body(fd, x, dy, w, first, second):
        return layer_norm_backward(fd, x, fd.ops.mul(fd.ops.mul(dy, first), second), w)

    rows, facts = meta(4096, columns), known(arch)
    found = lowered(body, [rows, rows, meta(columns), rows, rows], facts)
    assert schedulers(found)[0] == "inner_outer_persistent"
    for source in found.sources:
        assert source is not None
        kernel = compile_kernel(source, arch, tuple(arg.is_tensor for arg in source.args))
        assert 0 < kernel.shared_bytes <= facts.shared_bytes_per_block


def test_a_fault_in_a_kernel_names_the_user_s_line():
    """What Triton refuses is shown with the line of the op it was made for."""
    fd = record(lambda fd, x: fd.ops.neg(fd.ops.tanh(x)), [noise(4)])
    (source,) = lowered(fd, [noise(4)]).sources
    assert source is not None
    broken = replace(source, text=source.text.replace("tanh(tv0)", "tanh(tv0, 1, 2)"))
    with pytest.raises(LoweringError) as caught:
        compile_kernel(broken, "sm_90", (True, True))
    assert "fd.ops.neg(fd.ops.tanh(x))" in str(caught.value)
    assert "tanh(tv0, 1, 2)" in str(caught.value)
