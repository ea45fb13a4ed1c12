"""Kernels for sizes that vary, without a run: ``varying=`` of segments, kernels and explain."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tritonfuser import DataType, FusionDefinition, InputError

ARCH = "sm_90"


def row_sums():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [1]))
    return fd


def matrix(rows, columns, dtype=torch.float32):
    return [torch.empty(rows, columns, dtype=dtype, device="meta")]


EARLIER = [matrix(16, 96), matrix(32, 512)]


def test_sizes_that_differ_are_arguments_of_the_kernels():
    fd = row_sums()
    (kernel,) = fd.kernels(matrix(64, 1024), arch=ARCH, varying=EARLIER)
    assert "size1" in kernel.text
    (kernel,) = fd.kernels(matrix(64, 1024), arch=ARCH, varying=[matrix(32, 1024)])
    assert "r_mask" not in kernel.text and "size0" in kernel.text
    (kernel,) = fd.kernels(matrix(64, 1024), arch=ARCH, varying=[matrix(64, 1024)])
    assert kernel.text == fd.kernels(matrix(64, 1024), arch=ARCH)[0].text


def test_segments_are_those_of_the_kernels():
    found = row_sums().segments(matrix(64, 1024), arch=ARCH, varying=EARLIER)
    assert "size0 x size1" in found.segments[0].reason


def test_guards_and_numbers_are_explained():
    found = row_sums().explain(matrix(64, 1024), arch=ARCH, varying=EARLIER)
    assert found.segments[0].grid == (64, 1, 1)
    assert found.bytes == 4 * (64 * 1024 + 64)
    assert "size1 % 32 == 0" in found.guards
    assert "size1 <= 1024" in found.guards
    assert "guard: size1 <= 1024" in str(found)
    assert row_sums().explain(matrix(64, 1024), arch=ARCH).guards == ()


def test_it_is_what_runs_of_these_sizes_compile():
    fd = row_sums()
    runs = [[x.new_empty(x.shape, device="cpu") for x in given] for given in EARLIER]
    *_, plan = [fd.plan(given) for given in (*runs, [torch.empty(64, 1024)])]
    (kernel,) = fd.kernels(matrix(64, 1024), varying=EARLIER)
    assert kernel.text == plan.kernels[0].text
    guards = fd.explain_recompiles()[-1].guards
    assert fd.explain(matrix(64, 1024), varying=EARLIER).guards == guards


def test_earlier_inputs_that_differ_in_more_are_refused():
    with pytest.raises(InputError, match=r"varying\[1\].*alignment to 16 bytes"):
        odd = [torch.empty(16 * 96 + 1, device="meta")[1:].view(16, 96)]
        row_sums().kernels(matrix(64, 1024), arch=ARCH, varying=[EARLIER[0], odd])
    with pytest.raises(InputError, match="rank 2"):
        row_sums().kernels(matrix(64, 1024), varying=[[torch.empty(4, device="meta")]])


def data(rows, columns):
    return [torch.ones(rows, columns)]


def test_queries_show_the_kernels_that_the_next_run_compiles():
    fd, asked = row_sums(), data(16, 700)
    for columns in (500, 600):
        fd.run(data(16, columns))
    found, guards = fd.heuristics(asked), fd.explain(asked).guards
    kernels = [kernel.text for kernel in fd.kernels(asked)]
    assert "size0" in kernels[0]
    assert len(fd.explain_recompiles()) == 2
    plan = fd.plan(asked)
    assert kernels == [kernel.text for kernel in plan.kernels]
    assert guards == fd.explain_recompiles()[-1].guards != ()
    assert found == fd.heuristics(asked)


def test_queries_show_the_kernels_that_serve_the_next_run():
    """Those with open sizes, which a first run with this size would not have."""
    fd, asked = row_sums(), data(16, 620)
    for columns in (500, 600, 700):
        fd.run(data(16, columns))
    (found,) = fd.heuristics(asked)
    assert [segment.params for segment in fd.segments(asked).segments] == [found]
    (explained,) = fd.explain(asked).segments
    assert (explained.params, explained.bytes_read) == (found, 4 * (16 * 620))
    kernels = [kernel.text for kernel in fd.kernels(asked)]
    assert kernels == [kernel.text for kernel in fd.plan(asked).kernels]
    assert kernels != [kernel.text for kernel in row_sums().kernels(asked)]
    assert len(fd.explain_recompiles()) == 3


def test_queries_for_another_gpu_show_a_first_run():
    fd, asked = row_sums(), data(16, 100)
    first = fd.heuristics(asked, arch=ARCH)
    for columns in (500, 600, 700):
        fd.run(data(16, columns))
    assert fd.heuristics(asked, arch=ARCH) == first
    assert first == [fd.explain(asked, arch=ARCH).segments[0].params]
    assert first != fd.heuristics(asked)


def test_queries_take_the_options_of_a_run():
    fd, asked = row_sums(), data(16, 100)
    chosen = replace(fd.heuristics(asked)[0], num_warps=2)
    assert fd.heuristics(asked, params=chosen) == [chosen]
    assert fd.segments(asked, params=[chosen]).segments[0].params == chosen
    assert fd.explain(asked, params=chosen).segments[0].params == chosen
    assert fd.kernels(asked, params=chosen)[0].num_warps == 2
    with FusionDefinition() as product:
        a, b = (product.define_tensor([-1, -1], True, DataType.Half) for _ in range(2))
        product.add_output(product.ops.matmul(a, b))
    pair = [torch.ones(64, 64, dtype=torch.float16)] * 2
    assert product.kernels(pair) == []
    assert len(product.kernels(pair, _enable_options=["fuse_matmul"])) == 1
    with pytest.raises(RuntimeError, match="no_such"):
        product.segments(pair, _enable_options=["no_such"])
