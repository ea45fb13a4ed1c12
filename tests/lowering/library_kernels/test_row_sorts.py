"""The kernel that sorts short rows: interpreted against torch, and compiled."""

from __future__ import annotations

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.lowering.library_kernels.interpreted import run
from tests.lowering.library_kernels.test_row_sums import TARGETS
from tritonfuser.lowering.library_kernels import row_sorts
from tritonfuser.lowering.library_kernels.found import library_kernel

PROGRAM = """
import torch
from tests.lowering.library_kernels.interpreted import interpret
from tritonfuser.lowering.library_kernels import row_sorts

interpret(row_sorts, "sort_rows")

def drawn(shape, dtype):
    x = (torch.randn(shape) * 2).round().to(dtype)
    if dtype.is_floating_point:
        nan = torch.tensor(float("nan"))
        for place, special in enumerate((-0.0, nan, -nan, float("inf"), -float("inf"))):
            x.view(-1)[place::11] = special
    return x

exact = {"rtol": 0, "atol": 0, "equal_nan": True}
torch.manual_seed(0)
shapes = ((5, 7), 1), ((2, 9, 3), 1), ((3, 64), -1), ((6, 5), 0), ((4,), 0)
for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
    for shape, dim in shapes[: 5 if dtype == torch.float32 else 2 if every else 1]:
        x = drawn(shape, dtype)
        for descending in (False, True):
            found = row_sorts.argsort(x, dim, descending)
            expected = torch.argsort(x, dim=dim, descending=descending, stable=True)
            assert torch.equal(found, expected), (dtype, shape, descending)
            for k in (1, 2, x.shape[dim]) if every or descending else (2,):
                values, places = row_sorts.topk(x, k, dim, descending)
                expected, _ = torch.topk(x.double(), k, dim, descending, True)
                torch.testing.assert_close(values.double(), expected, **exact)
                picked = torch.gather(x, dim, places)
                torch.testing.assert_close(picked, values, **exact)
"""


def test_order_is_torchs() -> None:
    """With equal elements, zeros of both signs, nans of both signs and infinities."""
    run("every = False" + PROGRAM)


@pytest.mark.slow
def test_order_is_torchs_for_each_number_of_places() -> None:
    run("every = True" + PROGRAM)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("kind", "length", "kept"),
    [
        ("*fp32", 64, 8),
        ("*bf16", 128, 128),
        ("*i32", 1, 1),
        ("*fp16", row_sorts.LONGEST, row_sorts.LEAST_KEPT),
    ],
)
def test_kernel_compiles(target: str, kind: str, length: int, kept: int) -> None:
    kernel = row_sorts.sort_rows
    rows = max(row_sorts.ELEMENTS // length, 1)
    constants = {"ROWS": rows, "LENGTH": length, "KEPT": kept}
    constants |= {"DESCENDING": True, "HAS_VALUES": True}
    types = {"x": kind, "values": kind, "places": "*i64"}
    signature = {
        arg: "constexpr" if arg in constants else types.get(arg, "i32") for arg in kernel.arg_names
    }
    places = {(kernel.arg_names.index(arg),): value for arg, value in constants.items()}
    source = ASTSource(kernel, signature, places)
    chosen: GPUTarget = TARGETS[target]
    assert triton.compile(source, chosen, {"num_warps": row_sorts.WARPS}).asm


def test_torch_sorts_what_the_kernel_does_not_take() -> None:
    short = torch.zeros(3, 64)
    assert row_sorts.takes_argsort(short, 1)
    assert row_sorts.takes_topk(short, 2)
    assert not row_sorts.takes_topk(short, 0)
    assert not row_sorts.takes_argsort(short.double(), 1)
    assert not row_sorts.takes_argsort(torch.zeros(2, row_sorts.LONGEST + 1), 1)
    assert not row_sorts.takes_argsort(torch.zeros(()), 0)
    assert library_kernel("argsort", [short], {"dim": 1}) is None  # on a CPU
