"""Loads that neighbours share: written for lanes of them where nothing takes neighbours apart."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from tritonfuser import DataType, FusionDefinition


def scaled(shape: tuple[int, ...], dim: int, normal: bool) -> FusionDefinition:
    """``x * w`` with ``w`` along one dim; ``normal`` takes the rows' sums from it."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(list(shape), contiguity=True, dtype=DataType.Float)
        w = fd.define_tensor([shape[dim]], contiguity=True, dtype=DataType.Float)
        out = fd.ops.mul(x, fd.ops.broadcast_in_dim(w, list(shape), [dim]))
        if normal:
            dims = list(range(1, len(shape)))
            out = fd.ops.sub(out, fd.ops.sum(out, dims, keepdim=True))
        fd.add_output(out)
    return fd


def inputs(shape: tuple[int, ...], dim: int, device: str) -> list[torch.Tensor]:
    make = torch.empty if device == "meta" else torch.randn
    return [make(*shape, device=device), make(shape[dim], device=device)]


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("shape", [(8, 6, 64), (8, 6, 24), (3, 5, 12, 9), (4, 6, 12544), (4, 3, 7)])
def test_values_are_those_of_torch(shape: tuple[int, ...], normal: bool) -> None:
    given = inputs(shape, 1, "cpu")
    (found,) = scaled(shape, 1, normal).run(given)
    expected = given[0] * given[1].reshape(-1, *[1] * (len(shape) - 2))
    if normal:
        dims = tuple(range(1, len(shape)))
        expected = expected - expected.sum(dims, keepdim=True)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "dim", "shared"),
    [
        ((256, 64, 112, 112), 1, True),
        ((256, 64, 24), 1, True),
        ((256, 64, 49), 1, False),
        ((4096, 4096), 1, False),
        ((1 << 20, 8), 0, True),
    ],
)
@pytest.mark.parametrize("normal", [False, True])
def test_who_shares(shape: tuple[int, ...], dim: int, shared: bool, normal: bool) -> None:
    """In a flat kernel and in one of rows; a row's own weight is one element there."""
    (kernel,) = scaled(shape, dim, normal).kernels(inputs(shape, dim, "meta"), arch="sm_90")
    assert ("spread(" in kernel.text) == (shared and not (normal and dim == 0))


def test_a_position_needs_no_division_for_each_element() -> None:
    """In a flat kernel a column's number is what lanes leave of the position."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([512, 4096], contiguity=True, dtype=DataType.Float)
        label = fd.define_tensor([512], contiguity=True, dtype=DataType.Int)
        number = fd.ops.iota(4096, dtype=DataType.Int)
        same = fd.ops.eq(
            fd.ops.broadcast_in_dim(number, [512, 4096], [1]),
            fd.ops.broadcast_in_dim(label, [512, 4096], [0]),
        )
        fd.add_output(fd.ops.sub(x, fd.ops.cast(same, DataType.Float)))
    labels = torch.randint(4096, (512,))
    given = [torch.randn(512, 4096), labels]
    (kernel,) = fd.kernels([x.to("meta") for x in given], arch="sm_90")
    assert "%" not in kernel.text
    expected = given[0] - torch.nn.functional.one_hot(labels, 4096)
    assert torch.equal(fd.run(given)[0], expected)


def looked_up(width: int, dtype: DataType) -> tuple[FusionDefinition, list[torch.Tensor]]:
    """Rows of a table added to a tensor, and inputs without memory."""
    count = 1 << 17
    with FusionDefinition() as fd:
        table = fd.define_tensor([32000, width], contiguity=True, dtype=DataType.BFloat16)
        rows = fd.define_tensor([count], contiguity=True, dtype=DataType.Int)
        x = fd.define_tensor([count, width], contiguity=True, dtype=DataType.BFloat16)
        fd.add_output(fd.ops.cast(fd.ops.add(fd.ops.index_select(table, rows, 0), x), dtype))
    return fd, [
        torch.empty(32000, width, dtype=torch.bfloat16, device="meta"),
        torch.empty(count, dtype=torch.int64, device="meta"),
        torch.empty(count, width, dtype=torch.bfloat16, device="meta"),
    ]


@pytest.mark.parametrize("width", [1024, 24])
def test_rows_that_are_looked_up_are_still_loaded_whole(width: int) -> None:
    """Triton must know that neighbours have one index, to load them at once.

    In rows of 24, threads have eight neighbours each: there it drops what a reshape is told.
    """
    fd, given = looked_up(width, DataType.BFloat16)
    (kernel,) = fd.kernels(given, arch="sm_90")
    assert "spread_index(" in kernel.text
    (report,) = fd.compile_for("sm_90", given)
    assert report.max_load_bytes == 16
    elements = dict(kernel.constants)["XBLOCK"] // (32 * kernel.num_warps)
    assert report.asm["ptx"].count("ld.global") < elements / 2


def test_rows_that_are_looked_up_have_the_neighbours_of_the_store() -> None:
    """Else each thread would load eight of them, and store four: through shared memory."""
    fd, given = looked_up(56, DataType.Float)
    (kernel,) = fd.kernels(given, arch="sm_90")
    assert re.search(r"tl\.max_contiguous\(tv0_ptr \+ .*, 4\)", kernel.text)


def messages(nodes: int, edges: int, width: int) -> FusionDefinition:
    """Rows at each edge's node, times a number of that node and one of the edge's other node."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([nodes, width], contiguity=True, dtype=DataType.BFloat16)
        scale = fd.define_tensor([nodes], contiguity=True, dtype=DataType.Float)
        source, target = (
            fd.define_tensor([edges], contiguity=True, dtype=DataType.Int) for _ in range(2)
        )
        source = fd.ops.add(source, fd.ops.where(fd.ops.lt(source, 0), nodes, 0))
        factors = [fd.ops.index_select(scale, ends, 0) for ends in (source, target)]
        factor = fd.ops.broadcast_in_dim(fd.ops.mul(*factors), [edges, width], [0])
        fd.add_output(fd.ops.mul(fd.ops.index_select(x, source, 0), factor))
    return fd


@pytest.mark.parametrize(("edges", "width"), [(40, 64), (37, 64), (41, 24), (5, 7)])
def test_values_of_messages(edges: int, width: int) -> None:
    x, scale = torch.randn(23, width).bfloat16(), torch.randn(23)
    source, target = torch.randint(-23, 23, (edges,)), torch.randint(23, (edges,))
    (found,) = messages(23, edges, width).run([x, scale, source, target])
    expected = x[source] * (scale[source] * scale[target])[:, None]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("edges", [1 << 18, (1 << 18) - 3])
def test_what_neighbours_share_is_computed_and_looked_up_once(edges: int) -> None:
    """Of 16 elements a thread each would have two loads of its own."""
    nodes, width = 1 << 15, 256
    given = [
        torch.empty(nodes, width, dtype=torch.bfloat16, device="meta"),
        torch.empty(nodes, device="meta"),
        *(torch.empty(edges, dtype=torch.int64, device="meta") for _ in range(2)),
    ]
    fd = messages(nodes, edges, width)
    (kernel,) = fd.kernels(given, arch="sm_90")
    lines = [line.strip() for line in kernel.text.splitlines()]
    looked_up = [line for line in lines if "tl.load(tv1_ptr" in line]
    assert len(looked_up) == 2
    assert all(line.startswith("tv1_lane") for line in looked_up)
    spread = [line for line in lines if "= spread" in line]
    assert len(spread) == 2  # the index of the rows, and their factor
    compiled = fd.compile_for("sm_90", given)[0].asm["ptx"]
    elements = dict(kernel.constants)["XBLOCK"] // (32 * kernel.num_warps)
    assert compiled.count("ld.global") < 1.5 * elements


def turned_rows(rows: int, width: int) -> FusionDefinition:
    """A sum in a loop, of rows scaled by numbers at quotients and remainders of an index."""
    with FusionDefinition() as fd:
        table = fd.define_tensor([10, 12], contiguity=True, dtype=DataType.Float)
        index = fd.define_tensor([rows], contiguity=True, dtype=DataType.Int)
        x = fd.define_tensor([rows, width], contiguity=True, dtype=DataType.Float)
        turned = fd.ops.reshape(fd.ops.permute(table, [1, 0]), [120])
        scale = fd.ops.broadcast_in_dim(fd.ops.index_select(turned, index, 0), [rows, width], [0])
        fd.add_output(fd.ops.sum(fd.ops.mul(x, scale), [0, 1]))
    return fd


def test_quotients_of_an_index_that_runs_share_are_written_in_its_loop() -> None:
    sizes = [(10, 12), (1 << 18,), (1 << 18, 64)]
    dtypes = [torch.float32, torch.int64, torch.float32]
    given = [torch.empty(n, dtype=d, device="meta") for n, d in zip(sizes, dtypes, strict=True)]
    fd = turned_rows(1 << 18, 64)
    (text, _) = (kernel.text for kernel in fd.kernels(given, arch="sm_90"))
    assert "for r_start" in text and "i0_lane // 10" in text
    assert text.index("i0_lane = ") < text.index("i0_lane // 10")
    assert len(fd.compile_for("sm_90", given)) == 2


def test_an_index_that_runs_share_is_checked() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor([4, 8], contiguity=True, dtype=DataType.Float)
        rows = fd.define_tensor([3], contiguity=True, dtype=DataType.Int)
        fd.add_output(fd.ops.index_select(x, fd.ops.sub(rows, 5), 0))
    x, rows = torch.randn(4, 8), torch.tensor([5, 8, 6])
    assert torch.equal(fd.run([x, rows])[0], x[rows - 5])
    for wrong in (4, 9):
        with pytest.raises(IndexError):
            fd.run([x, torch.tensor([5, 8, wrong])])


def scale_and_bias(width: int, dtype: DataType = DataType.BFloat16) -> FusionDefinition:
    """``x * w + b`` with weights along rows of a width."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([4096, width], contiguity=True, dtype=dtype)
        w, b = (fd.define_tensor([width], contiguity=True, dtype=dtype) for _ in range(2))
        scaled = fd.ops.mul(x, fd.ops.broadcast_in_dim(w, [4096, width], [1]))
        shifted = fd.ops.add(scaled, fd.ops.broadcast_in_dim(b, [4096, width], [1]))
        fd.add_output(fd.ops.cast(shifted, dtype))
    return fd


@pytest.mark.parametrize(
    ("width", "dtype", "loaded"),
    [
        (4097, torch.bfloat16, 4),
        (4096, torch.bfloat16, 16),
        (4098, torch.bfloat16, 16),
        (4097, torch.float32, 16),
    ],
)
def test_lanes_have_few_neighbours_beside_weights_that_are_no_vectors(
    width: int, dtype: torch.dtype, loaded: int
) -> None:
    """Weights of two lanes would lie 16 bytes apart, and a load of them would touch four lines."""
    fd = scale_and_bias(width, DataType.Float if dtype is torch.float32 else DataType.BFloat16)
    rows = torch.empty(4096, width, dtype=dtype, device="meta")
    weights = [torch.empty(width, dtype=dtype, device="meta") for _ in range(2)]
    (report,) = fd.compile_for("sm_90", [rows, *weights])
    assert report.max_load_bytes == loaded


def test_a_vectorization_factor_is_the_users_to_choose() -> None:
    fd = scale_and_bias(40)
    given = [
        torch.randn(4096, 40).bfloat16(),
        torch.randn(40).bfloat16(),
        torch.randn(40).bfloat16(),
    ]
    params = replace(fd.heuristics(given)[0], vectorization_factor=4)
    (found,) = fd.run_kernel(given, params=params)
    (expected,) = scale_and_bias(40).run(given)
    assert torch.equal(found, expected)
