"""Positions are divided by sizes that vary through inverses, and loads are as wide as before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.exported import Exports
from tests.e2e.opened import check_open, open_signature
from tests.lowering.graphs import noise
from tests.lowering.harness import small
from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.build import report
from tritonfuser.lowering.pipeline import lower

D = DataType
DIVISION = re.compile(r"\b(?:div|rem)\.[su](?:32|64)")


def weighted(dims: tuple[int, ...], rank: int = 3, dtype: DataType = D.Float) -> FusionDefinition:
    """A tensor plus a weight along each of some dims."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1] * rank, contiguity=True, dtype=dtype)
        total: Any = fd.ops.cast(x, D.Float)
        for dim in dims:
            w = fd.define_tensor([-1], contiguity=True, dtype=dtype)
            total = fd.ops.add(total, fd.ops.broadcast(w, [d != dim for d in range(rank)]))
        fd.add_output(fd.ops.cast(fd.ops.relu(total), dtype))
    return fd


def inputs(shape: tuple[int, ...], dims: tuple[int, ...], **options: Any) -> list[torch.Tensor]:
    return [torch.empty(s, **options) for s in (shape, *((shape[d],) for d in dims))]


def drawn(shape: tuple[int, ...], dims: tuple[int, ...]) -> list[torch.Tensor]:
    return [noise(*shape), *(noise(shape[d], seed=d + 1) for d in dims)]


def kernel(shape, dims, dtype=torch.float32, multiple=1, arch="sm_90"):
    """The kernel with open sizes, all multiples of a number, at one shape of them."""
    names = {torch.float32: D.Float, torch.bfloat16: D.BFloat16}
    fd = weighted(dims, len(shape), names[dtype])
    options = {"dtype": dtype, "device": "meta"}
    others = [inputs(tuple(n + k * multiple for n in shape), dims, **options) for k in (1, 2)]
    (found,) = fd.kernels(inputs(shape, dims, **options), arch=arch, varying=others)
    return found


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("multiple", [1, 8])
def test_no_division_is_left(dims, multiple):
    shape = tuple(n * multiple for n in (17, 9, 31))
    source = kernel(shape, dims, multiple=multiple)
    assert source.inverses and "quotient(" in source.text
    found = report(source, "pointwise", "sm_90", tuple(a.is_tensor for a in source.args))
    assert not DIVISION.search(found.asm["ptx"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_weights_are_loaded_by_vectors_where_sizes_allow(dtype, arch):
    source = kernel((4096, 96, 160), (2,), dtype, 8, arch)
    assert re.search(r"= residue\(x, x\d, size\d, [48]\)", source.text)
    found = report(source, "pointwise", arch, tuple(a.is_tensor for a in source.args))
    assert found.max_load_bytes == found.max_store_bytes == 16
    if "ptx" in found.asm:
        loads = re.findall(r"ld\.global(\S*)", found.asm["ptx"])
        assert loads and all(".v4" in load for load in loads)


def test_one_quotient_for_all_that_need_it():
    """Three places are two quotients, and the rests of them."""
    text = kernel((64, 32, 16), (0, 1, 2), multiple=8).text
    assert text.count("quotient(x, ") == text.count("quotient(") == 2
    assert "%" not in text.split("def launch")[0]


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1, 2)])
def test_results_are_those_of_torch(dims):
    """At odd sizes, at powers of two and beside them, and at 2."""
    shapes = [(3, 5, 7), (4, 6, 9), (2, 2, 2), (5, 64, 3), (2, 63, 17), (16, 2, 65), (7, 3, 128)]
    count, is_open = check_open(weighted(dims), [drawn(s, dims) for s in shapes], small(4))
    assert is_open and count >= 3


def test_a_size_that_is_a_sum():
    """Rows of a padded tensor are longer than those of the input: their number has a name."""

    def define():
        with FusionDefinition() as fd:
            x = fd.define_tensor([-1, -1], contiguity=True)
            w = fd.define_tensor([-1], contiguity=True)
            padded = fd.ops.pad(fd.ops.add(x, fd.ops.broadcast(w, [False, True])), [2, 1])
            fd.add_output(fd.ops.exp(padded))
        return fd

    def given(rows, columns):
        return [noise(rows, columns), noise(rows, seed=1)]

    sizes = open_signature(define(), given(30, 40), [given(31, 41), given(33, 47)])
    assert sizes is not None
    found = lower(define().fusion.ir, sizes.signature, small(4), env=sizes.env)
    texts = [source.text for source in found.sources if source is not None]
    assert any(
        re.search(r"size\d_inverse, size\d_shift = inverse_of\(size\d, 32\)", t) for t in texts
    )
    shapes = [(3, 5), (4, 6), (2, 9), (30, 2), (17, 61)]
    count, is_open = check_open(define(), [given(*shape) for shape in shapes], small(4))
    assert is_open and count >= 2


def test_positions_of_64_bits():
    """Their inverses have 64 bits."""
    source = kernel((70_001, 9, 4097), (1,))
    assert [arg.name for arg in source.inverses][:2] == ["size2_long_inverse", "size2_long_shift"]
    for arch in ("sm_90", "gfx942"):
        aligned = tuple(a.is_tensor for a in source.args)
        found = report(source, "pointwise", arch, aligned)
        assert not DIVISION.search(found.asm.get("ptx", ""))


def test_the_text_runs_alone(tmp_path: Path):
    """``launch`` takes the sizes, and computes what the kernel divides with."""
    exports, dims = Exports(tmp_path), (0, 1, 2)
    fd, given = weighted(dims), drawn((5, 7, 9), dims)
    sizes = open_signature(fd, given, [drawn((4, 6, 8), dims), drawn((3, 8, 10), dims)])
    assert sizes is not None
    found = lower(fd.fusion.ir, sizes.signature, small(4), env=sizes.env)
    assert any(source.inverses for source in found.sources if source is not None)
    exports.run(found, given, small(4))
    exports.launch()


def test_no_number_is_frozen_for_a_quotient_and_a_remainder():
    # Instruction selection aborted the process for vectors of such numbers.
    with FusionDefinition() as fd:
        x = fd.define_tensor([504, 1932, 12, 80], contiguity=True, dtype=D.BFloat16)
        fd.add_output(fd.ops.sum(x, [1, 3]))
    (source,) = fd.kernels([torch.empty(504, 1932, 12, 80, dtype=torch.bfloat16, device="meta")])
    assert "// 80" in source.text and ", 80)" in source.text
    compiled = compile_kernel(source, "sm_90", (True,) * len(source.args))
    assert " freeze " not in compiled.binary.asm["llir"]
