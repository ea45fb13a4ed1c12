"""The benchmark cases: right numbers, and kernels for GPUs that are not here."""

from __future__ import annotations

import pytest
import torch

from bench.cases import BY_NAME, CASES, SUITES, Case, Size, size_name
from bench.measure.errors import flat, max_error
from bench.suite.selection import Row

by_name = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)

TOLERANCE = {torch.bfloat16: 2**-8, torch.float32: 1e-5}
TINY: dict[int, tuple[Size, ...]] = {
    2: ((24, 96), (7, 130), (33, 17)),
    3: ((6, 9, 40),),
    4: ((3, 64, 6, 5),),
}
"""By rank; what is not a matrix or an image has its own."""
OWN_TINY: dict[str, tuple[Size, ...]] = {
    **dict.fromkeys(("attention_softmax", "attention_softmax_bwd"), ((2, 3, 17, 17),)),
    "causal_softmax": ((2, 3, 17, 17),),
    **dict.fromkeys(("rotary", "rotary_bwd"), ((2, 9, 4, 16), (1, 5, 8, 24))),
    **dict.fromkeys(("embedding", "embedding_fwd"), ((50, 24, 31),)),
    **dict.fromkeys(
        ("gather", "take_along_axis", "index_select", "scatter"), ((6, 41, 17), (9, 64, 64))
    ),
}
RANDOM = {case.name for case in CASES if case.oracle is not None}


def tiny_sizes(case: Case) -> tuple[Size, ...]:
    return OWN_TINY.get(case.name, TINY[len(case.sizes.bfloat16[0])])


def as_ours(expected, actual):
    """Results of torch in the shapes of ours: it may have more of them, and kept dims."""
    assert len(expected) >= len(actual)
    return [e.reshape(a.shape) for a, e in zip(actual, expected, strict=False)]


def error(case, size, dtype, device):
    inputs = case.inputs(size, dtype, device)
    expected = flat(case.reference(inputs))  # first: a step of an optimizer replaces its inputs
    actual = case.record(size, dtype).run(inputs)
    return max_error(actual, as_ours(expected, actual))


@pytest.mark.covering
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@by_name
def test_values_on_the_cpu(case, dtype):
    for size in tiny_sizes(case):
        assert error(case, size, dtype, "cpu") <= TOLERANCE[dtype]


@by_name
def test_what_eager_is_timed_on_gives_the_same(case):
    """An autograd backward, or another function of torch, in place of the formula."""
    inputs = case.inputs(tiny_sizes(case)[0], torch.float32, "cpu")
    peers = case.peer_inputs(inputs)
    timed, formula = flat(case.eager_run(peers)()), flat(case.eager(*peers))
    if case.name in RANDOM and case.peers is None:
        assert [t.shape for t in timed] == [t.shape for t in formula]
    else:
        assert max_error(timed, as_ours(formula, timed)) <= TOLERANCE[torch.float32]


@pytest.mark.parametrize("case", [c for c in CASES if c.peers], ids=lambda c: c.name)
def test_dropouts_of_torch_take_the_mask_they_stored(case):
    inputs = case.inputs(tiny_sizes(case)[0], torch.float32, "cpu")
    mask = case.peer_inputs(inputs)[-1]
    assert mask.dtype is torch.bool
    assert mask.shape == inputs[0].shape
    assert 0.8 < mask.float().mean() < 0.97


@by_name
def test_torch_compiles_eager_as_one_function(case):
    inputs = case.peer_inputs(case.inputs(tiny_sizes(case)[0], torch.float32, "cpu"))
    torch._dynamo.reset()
    compiled = torch.compile(case.eager, backend="eager", fullgraph=True, dynamic=False)
    assert len(flat(compiled(*inputs))) == len(flat(case.eager(*inputs)))


def test_inputs_are_the_same_for_the_same_seed():
    case = BY_NAME["layernorm_bwd"]
    first, second, other = (case.inputs((4, 8), torch.bfloat16, "cpu", s) for s in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], other[0])


def test_the_list_of_cases_is_whole():
    forward = {name for name in BY_NAME if not name.endswith("_bwd")}
    assert len(BY_NAME) == len(CASES)
    assert {name.removesuffix("_bwd") for name in BY_NAME} == forward
    assert SUITES == ("softmax", "norm", "pointwise", "reduction", "layout", "indexing", "loss")
    for case in CASES:
        assert case.sizes.bfloat16
        assert len({len(s) for s in (*case.sizes.bfloat16, *case.sizes.float32)}) == 1


# --- on a GPU, or for one ------------------------------------------------------------------------


@pytest.mark.gpu
@by_name
def test_values_on_the_gpu(case):
    for size in case.sizes.bfloat16[:2]:
        assert error(case, size, torch.bfloat16, "cuda") <= TOLERANCE[torch.bfloat16]


def compiled(case, size, arch):
    inputs = case.inputs(size, torch.bfloat16, "meta")
    return case.record(size, torch.bfloat16).compile_for(arch, inputs)


@by_name
def test_kernels_for_sm_90(case):
    reports = compiled(case, case.sizes.bfloat16[1], "sm_90")
    assert len(reports) <= 3
    assert [r.spill_bytes for r in reports] == [0] * len(reports)
    # Later kernels may work on a handful of sums.
    assert reports[0].max_load_bytes == 16


def test_every_row_lowers_for_sm_90():
    """Cut and scheduled at its real size; the cases differ, so one dtype and two sizes do."""
    for case in CASES:
        for size in case.sizes.bfloat16[-2:]:
            row = Row(case.name, size, "bfloat16")
            inputs = row.of.inputs(row.size, row.torch_dtype, "meta")
            fd = row.of.record(row.size, row.torch_dtype)
            assert fd.segments(inputs, arch="sm_90").segments, size_name(size)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_100", "gfx942"])
@by_name
def test_compiles_for_other_targets(case, arch):
    binary = "hsaco" if arch.startswith("gfx") else "cubin"
    assert all(report.asm[binary] for report in compiled(case, case.sizes.bfloat16[1], arch))
