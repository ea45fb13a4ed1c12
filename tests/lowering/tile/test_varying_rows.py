"""What kernels are told of rows of a varying length, and what that saves them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from triton.tools.disasm import get_sass

from tests.lowering.graphs import softmax
from tests.lowering.harness import record
from tritonfuser import FusionDefinition
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.symbolic.queries import assume_at_most, assume_less
from tritonfuser.symbolic.shape_env import ShapeEnv
from tritonfuser.symbolic.size_text import bounds_text
from tritonfuser.symbolic.sizes import symbol

Shape = tuple[int, ...]


def meta(shape: Shape, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [torch.empty(shape, dtype=dtype, device="meta")]


def kernel(fd: FusionDefinition, *shapes: Shape, **options: Any) -> KernelSource:
    """The first kernel at the first shape, where the others were run before."""
    first, *others = map(meta, shapes)
    return fd.kernels(first, arch="sm_90", varying=others, **options)[0]


def told(source: KernelSource) -> list[str]:
    return re.findall(r"tl\.assume\((.*)\)", source.text)


def machine_code(source: KernelSource) -> str:
    compiled = compile_kernel(source, "sm_90", (True,) * len(source.args))
    return str(get_sass(compiled.asm["cubin"]))


def instructions(text: str) -> int:
    return sum("NOP" not in line for line in text.splitlines())


def rows(shape: Shape) -> FusionDefinition:
    return record(lambda fd, x: softmax(fd, x), meta(shape))


@pytest.mark.parametrize(
    ("length", "bounds"),
    [(393, (385, 448)), (385, (385, 448)), (383, (321, 384)), (1001, (897, 1024)), (33, (33, 48))],
)
def test_a_row_in_registers_is_known_to_an_eighth_of_its_block(
    length: int, bounds: tuple[int, int]
) -> None:
    low, high = bounds
    shapes = [(4096, length), (4096, 71), (4096, 3001)]
    assert told(kernel(rows(shapes[0]), *shapes)) == [f"size0 >= {low}", f"size0 <= {high}"]


def test_no_more_is_told_than_all_threads_hold_at_once() -> None:
    """Of rows that begin at vectors a warp has 128 elements at once."""
    shapes = [(4096, 396), (4096, 72), (4096, 3000)]
    assert told(kernel(rows(shapes[0]), *shapes)) == ["size0 >= 388", "size0 <= 512"]


def test_a_row_of_two_dims_that_vary() -> None:
    fd = record(lambda fd, x: fd.ops.neg(fd.ops.sum(x, [1, 2])), meta((4096, 17, 29)))
    source = kernel(fd, (4096, 17, 29), (4096, 15, 21), (4096, 11, 18))
    assert told(source) == ["size0 * size1 >= 449", "size0 * size1 <= 512"]


def test_given_params_are_for_as_many_lengths_as_chosen_ones() -> None:
    fd = rows((4096, 393))
    (params,) = fd.heuristics(meta((4096, 393)), arch="sm_90")
    shapes = [(4096, 393), (4096, 71), (4096, 301)]
    (low, high) = told(kernel(fd, *shapes, params=[params]))
    assert (low, high) == ("size0 >= 385", "size0 <= 448")


def test_registers_behind_the_end_are_not_there() -> None:
    """14 loads of a thread, of the 16 that a block of 512 has; a constant length has 13."""
    shapes = [(1024, 393), (1024, 71), (1024, 3001)]
    source = kernel(rows(shapes[0]), *shapes)
    assert dict(source.constants) == {"RBLOCK": 512} and source.num_warps == 1
    alone = machine_code(kernel(rows(shapes[0]), shapes[0]))
    used = machine_code(source)
    assert used.count("LDG.E") == used.count("STG.E") == 14
    assert alone.count("LDG.E") == alone.count("STG.E") == 13
    assert instructions(used) <= 1.1 * instructions(alone)


def test_bounds_as_text() -> None:
    env = ShapeEnv()
    a, b, c = symbol(env, 48, 16), symbol(env, 9), symbol(env, 1 << 20)
    assume_at_most(a * b, 480)
    assume_less(384, a * b)
    assume_at_most(a, 100)
    assume_less(7, b)
    assume_at_most(c, 1 << 30)
    names = ["size0", "size1", "size2"]
    assert bounds_text(env, names, 8, 1 << 16) == [
        "size0 >= 16",
        "size0 <= 96",
        "size1 >= 8",
        "size0 * size1 >= 400",
        "size0 * size1 <= 480",
    ]
    assert bounds_text(env, ["size1", "size2"], 8, 1 << 16) == ["size1 >= 8"]
