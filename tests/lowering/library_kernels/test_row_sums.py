"""The kernels that add up rows at indices: interpreted against torch, and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.lowering.library_kernels.interpreted import run
from tritonfuser import DataType, FusionDefinition, options
from tritonfuser.lowering.library_kernels import row_sums, sorted_indices
from tritonfuser.lowering.library_kernels.found import library_kernel

PROGRAM = """
import torch
from tests.lowering.library_kernels.interpreted import interpret
from tritonfuser.lowering.library_kernels import row_sums, sorted_indices

interpret(row_sums, "fill", "sum_chunks", "sum_short", "sum_long")
interpret(sorted_indices, "convert_keys", "find_begins", "rank_keys")

def drawn(shape, dtype):
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(-9, 9, shape, dtype=dtype)

def check(rows, count, shape, dtype, hot, expanded):
    index = torch.randint(rows, (count,), dtype=torch.int32 if hot else torch.int64)
    if hot:
        index = torch.where(torch.rand(count) < 0.7, rows // 2, index).to(torch.int32)
    index[5::17], index[3::29] = -1, rows
    value = drawn((count, *shape), dtype)
    acc = drawn((rows, *shape), dtype)
    if expanded:
        acc = drawn([1] * acc.dim(), dtype).expand(acc.shape)
    inside = (index >= 0) & (index < rows)
    expected = acc.double().index_add(0, index[inside].long(), value[inside].double())
    found = row_sums.add_rows(acc, index, value)
    assert found.shape == acc.shape and found.is_contiguous() and found.dtype is dtype
    near = {2: 1e-2, 4: 1e-4, 8: 1e-9}[dtype.itemsize]
    torch.testing.assert_close(found.double(), expected, rtol=near, atol=near)

torch.manual_seed(0)
cases = [
    (10, 50, (3,), torch.float32, False, False),
    (7, 900, (20,), torch.float32, True, True),
    (255, 400, (2, 3), torch.bfloat16, False, True),
    (300, 700, (), torch.float64, True, False),
    (256, 300, (130,), torch.int64, False, False),
    (40000, 90, (2,), torch.float16, False, True),
    (70000, 200, (1,), torch.int32, True, True),
]
for place, case in enumerate(cases):
    for sorted_indices.RANKED in (1000, 0) if every else (1000 * (place % 2),):
        check(*case)

# Rows 2 ** 31 elements apart, of memory that nothing touches.
far = torch.empty((1 << 31) + 16, dtype=torch.float16).as_strided((2, 16), (1 << 31, 1))
far[0], far[1] = 1, 2
found = row_sums.add_rows(torch.zeros(2, 16, dtype=torch.float16), torch.tensor([1, 0]), far)
assert found[:, 0].tolist() == [2, 1]
"""


def test_sums_are_torchs() -> None:
    """Of few and many rows, of an index that most have, of indices that are out of range."""
    run("every = False" + PROGRAM)


@pytest.mark.slow
def test_sums_are_torchs_for_ranked_and_sorted_indices() -> None:
    run("every = True" + PROGRAM)


TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
COUNTS = dict.fromkeys(("count", "rows", "units", "across", "least", "halvings"), "i32")
STRIDES = dict.fromkeys(("stride", "stride_units", "acc_row", "acc_column"), "i32")
KERNELS: dict[str, dict[str, Any]] = {
    "convert_keys": {"BLOCK": 1024},
    "fill": {"BLOCK": 4096},
    "find_begins": {"BLOCK": 256},
    "rank_keys": {"BLOCK": 16, "STEP": 512, "DTYPE": triton.language.int32},
    "sum_chunks": {"ROWS": 0, "COLS": 0},
    "sum_short": {
        "ROWS": 0,
        "COLS": 0,
        "STEPS": 8,
        "DTYPE": triton.language.float32,
        "BY_ROW": True,
    },
    "sum_long": {"ROWS": 0, "COLS": 0},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("stored", "wide"), [("*bf16", "*fp32"), ("*i64", "*i64")])
@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("columns", [1, 64])
def test_kernels_compile(
    name: str, target: str, stored: str, wide: str, is_even: bool, columns: int
) -> None:
    room = row_sums if hasattr(row_sums, name) else sorted_indices
    kernel, constants = getattr(room, name), dict(KERNELS[name])
    if "COLS" in constants:
        constants |= {"ROWS": min(row_sums.ELEMENTS // columns, 64), "COLS": columns, "UNIT": 8}
    elif columns > 1:
        pytest.skip("it has no columns")
    pointers = {
        "keys": "*i16",
        "order": "*i64",
        "begins": "*i64",
        "index": "*i64",
        "parts": wide,
        "number": stored,
    }
    types = {**COUNTS, **STRIDES, **pointers, **dict.fromkeys(("value", "acc", "out"), stored)}
    if is_even and "BY_ROW" in constants:
        constants["BY_ROW"] = False
    if wide == "*i64" and "DTYPE" in constants:
        constants["DTYPE"] = triton.language.int64
    signature = {arg: "constexpr" if arg in constants else types[arg] for arg in kernel.arg_names}
    places = {(kernel.arg_names.index(arg),): value for arg, value in constants.items()}
    even = [arg for arg in kernel.arg_names if arg in types and (is_even or types[arg][0] == "*")]
    attributes = {(kernel.arg_names.index(arg),): [["tt.divisibility", 16]] for arg in even}
    source = ASTSource(kernel, signature, places, attributes)
    made = triton.compile(source, TARGETS[target], {"num_warps": row_sums.WARPS})
    assert made.asm


def test_torch_adds_up_what_the_kernels_do_not_take() -> None:
    index = torch.zeros(3, dtype=torch.int64)
    for dtype in (torch.complex64, torch.float32):
        acc, value = torch.zeros(4, 2, dtype=dtype), torch.ones(3, 2, dtype=dtype)
        assert row_sums.takes(acc, index, value) is (dtype is torch.float32)
        assert library_kernel("index_put_accumulate", [acc, index, value], {}) is None  # on a CPU
    assert library_kernel("neg", [acc], {}) is None


def test_torch_adds_up_rows_of_more_columns_than_kernels_count() -> None:
    index = torch.empty(3, dtype=torch.int64, device="meta")
    most = row_sums.MOST_COLUMNS
    for width, taken in ((most, True), (most + 1, False)):
        acc, value = (torch.empty(n, width, device="meta") for n in (2, 3))
        assert row_sums.takes(acc, index, value) is taken


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """All tensors say that they lie there."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    yield monkeypatch
    monkeypatch.undo()
    options.refresh()


def test_torch_adds_up_where_indices_are_checked(on_gpu: pytest.MonkeyPatch) -> None:
    """Sorts have no indices."""
    index = torch.zeros(3, dtype=torch.int64)
    added = [torch.zeros(4, 2), index, torch.ones(3, 2)]
    for check, is_found in (("", True), ("bounds", False)):
        on_gpu.setenv("TRITONFUSER_CHECK", check)
        options.refresh()
        assert (library_kernel("index_put_accumulate", added, {}) is not None) is is_found
        assert library_kernel("argsort", [torch.zeros(4, 2)], {"dim": 1}) is not None


def test_zeros_are_no_tensor_in_memory() -> None:
    with FusionDefinition() as fd:
        index = fd.define_tensor([50], dtype=DataType.Int)
        value = fd.define_tensor([50, 6], dtype=DataType.BFloat16)
        zeros = fd.ops.full([1000, 6], 0.0, DataType.BFloat16)
        fd.add_output(fd.ops.index_put_accumulate(zeros, index, value))
    inputs = [torch.randint(1000, (50,)), torch.randn(50, 6, dtype=torch.bfloat16)]
    cut = fd.segments(inputs)
    stored = [out.tensor.numel for piece in cut.segments for out in piece.outputs]
    assert sorted(stored) == [1, 6000]
    expected = torch.zeros(1000, 6, dtype=torch.bfloat16).index_put(
        (inputs[0],), inputs[1], accumulate=True
    )
    torch.testing.assert_close(fd.run(inputs)[0], expected)
