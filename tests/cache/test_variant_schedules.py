"""Which schedule serves which sizes: a variant serves those for which its own would be chosen."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.cache.abstract_variants import AbstractVariants, programs
from tests.lowering.graphs import meta
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache import variant_family, variants
from tritonfuser.cache.size_uses import differs_in_masks_alone, has_other_kernels
from tritonfuser.heuristics.params import PointwiseParams
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.run_options import RunOptions


def define(body: Any, *ranks: int) -> FusionDefinition:
    with FusionDefinition() as fd:
        inputs = [fd.define_tensor(shape=[-1] * rank, contiguity=True) for rank in ranks]
        fd.add_output(body(fd, *inputs))
    return fd


def column_sum() -> FusionDefinition:
    return define(lambda fd, x: fd.ops.sum(x, [0]), 2)


def doubled() -> FusionDefinition:
    return define(lambda fd, x: fd.ops.mul(x, 2.0), 1)


def params(lowered: Lowered) -> list[Any]:
    return [segment.params for segment in lowered.segmented.segments]


def test_a_column_sum_opened_at_few_rows_is_scheduled_again_for_many() -> None:
    served = AbstractVariants(column_sum())
    for rows in (1201, 1203, 1205):
        served.serve([meta(rows, 512)])
    assert [made.dynamic for made in served.records] == [False, False, True]
    found, alone = (take([meta(200_001, 512)]) for take in (served.serve, served.static))
    assert (params(found), programs(found)) == (params(alone), programs(alone))
    assert programs(found)[0] == 2112
    # The first step has all rows of a part at once, and counts on how many they are.
    assert served.records[-1].reason.startswith("size2 <= 384 does not hold")
    served.serve([meta(1207, 512)])
    served.serve([meta(200_003, 512)])
    assert [made.served for made in served.records] == [1, 1, 2, 2]


def test_the_number_of_parts_is_an_argument() -> None:
    """As many programs as a kernel for the size has, and one kernel for all of them."""
    served = AbstractVariants(column_sum())
    counts = []
    for rows in (20_011, 20_021, 20_023, 30_011, 24_029, 35_027):
        counts.append(programs(served.serve([meta(rows, 512)]))[0])
        static = programs(served.static([meta(rows, 512)]))[0]
        assert 0.95 * static <= counts[-1] <= 1.05 * static
    assert counts[2:] == [624, 928, 736, 1056]
    assert [made.dynamic for made in served.records] == [False, False, True, True]
    found = served.records[-1]
    assert found.sizes == {"size0": "tv0.shape[0]", "size1": "parts of a reduction"}
    assert found.reason.startswith("schedule chosen again: size1 <= 64 does not hold: size1 is ")


def test_sizes_with_the_same_schedule_take_no_variant() -> None:
    served = AbstractVariants(doubled())
    for elements in range(10_000_001, 90_000_000, 1_000_000):
        served.serve([meta(elements)])
    assert [made.dynamic for made in served.records] == [False, False, True]


def test_the_reason_says_what_was_chosen() -> None:
    served = AbstractVariants(doubled())
    for elements in (1_000_001, 1_000_003, 1_000_005, 4_001, 1_000_007, 4_003):
        served.serve([meta(elements)])
    assert [made.served for made in served.records] == [1, 1, 2, 2]
    assert served.records[-1].reason == (
        "schedule chosen again: pointwise: block_x was 512, now 128"
    )


def test_another_answer_that_leads_to_the_same_kernels_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served = AbstractVariants(doubled())
    for elements in (1_000_001, 1_000_003, 1_000_005):
        served.serve([meta(elements)])
    lowered: list[int] = []
    monkeypatch.setattr(variants.OpenVariant, "has_kernels_of", lambda self, plan: True)
    request = served.request

    def counted(inputs: Any) -> Any:
        made = request(inputs)
        lowered.append(0)

        def lower(*given: Any) -> Any:
            lowered[-1] += 1
            return made.compile(*given)

        return variants.Request(made.key, made.extra, made.signature, lower)

    monkeypatch.setattr(served, "request", counted)
    for elements in (4_001, 4_003):
        served.serve([meta(elements)])
    assert lowered == [1, 0]
    assert [made.served for made in served.records] == [1, 1, 3]


def test_the_same_sizes_stay_open() -> None:
    """Also those that were the same in all of the last signatures."""
    served = AbstractVariants(define(lambda fd, x: fd.ops.mul(x, 2.0), 2))
    for rows, columns in ((999, 1001), (1003, 1005), (1007, 1009)):
        served.serve([meta(rows, columns)])
    for rows in range(1011, 1031, 2):
        served.serve([meta(rows, 1009)])
    served.serve([meta(11, 1009)])
    assert len(served.records) == 4
    assert list(served.records[-1].sizes.values()) == ["tv0.shape[0]", "tv0.shape[1]"]


def test_a_family_has_so_many_variants_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the most alike serves."""
    monkeypatch.setattr(variant_family, "MAX_VARIANTS", 2)
    served = AbstractVariants(doubled())
    for power in (20, 20, 20, 12, 14, 16, 18):
        served.serve([meta(2**power + 2 * len(served.records) + 1)])
    assert [made.dynamic for made in served.records] == [False, False, True, True]


def test_given_params_serve_all_sizes() -> None:
    served = AbstractVariants(doubled(), options=RunOptions(params=(PointwiseParams(block_x=512),)))
    for elements in (1001, 1003, 1005, 20_001, 3_000_001, 50_000_001):
        served.serve([meta(elements)])
    assert [made.dynamic for made in served.records] == [False, False, True]


def test_queries_show_the_schedule_of_the_next_run() -> None:
    served = AbstractVariants(doubled())
    for elements in (1_000_001, 1_000_003, 1_000_005):
        served.serve([meta(elements)])
    small, other = ([meta(n)] for n in (4_001, 1_000_007))
    sizes: Any = served.variants.peek(served.request(small))
    assert sizes.env.atoms[0].hint == 4_001  # lowered for the size that is asked about
    plan: Any = served.variants.peek(served.request(other))
    assert params(plan.lowered) == params(served.serve(other))
    assert served.serve(small).sources[0].constants[0] == ("XBLOCK", 128)
    plan = served.variants.peek(served.request([meta(4_003)]))
    assert params(plan.lowered) == [PointwiseParams(block_x=128, num_warps=4, axes=(0,))]


def test_kernels_for_the_interpreter_keep_their_choice() -> None:
    """It is there to check numbers."""
    served = AbstractVariants(doubled(), arch="cpu")
    for elements in (1001, 1003, 1005, 3_000_001):
        served.serve([meta(elements)])
    assert [made.dynamic for made in served.records] == [False, False, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_choose_their_tile_again(dtype: torch.dtype) -> None:
    kind = DataType.Float if dtype is torch.float32 else DataType.BFloat16
    with FusionDefinition() as fd:
        x, w = (fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=kind) for _ in "xw")
        fd.add_output(fd.ops.relu(fd.ops.linear(x, w)))
    served = AbstractVariants(fd)
    sizes = (7, 9, 11, 100, 1001, 8001, 17, 4001, 303)
    for rows in sizes:
        given = [meta(rows, 1024, dtype=dtype), meta(512, 1024, dtype=dtype)]
        assert params(served.serve(given)) == params(served.static(given))


# --- kernels that have no form for open sizes -----------------------------------------------------


def norm_backward() -> FusionDefinition:
    """Of rows with one sum along each, and a sum over them."""

    def body(fd: Any, x: Any, g: Any) -> Any:
        fd.add_output(fd.ops.sum(fd.ops.mul(x, g), [0]))
        along = fd.ops.sum(fd.ops.mul(x, g), [1], keepdim=True)
        return fd.ops.sub(g, fd.ops.mul(x, along))

    return define(body, 2, 2)


def parts_of(lowered: Lowered) -> int:
    return getattr(lowered.segmented.segments[0].params, "parts", 1)


@pytest.mark.parametrize("varies", ["rows", "columns"])
def test_rows_that_programs_share_have_other_kernels_where_sizes_are_open(varies: str) -> None:
    """Those of a few variants, however many sizes there are."""
    served = AbstractVariants(norm_backward())
    sizes = [20_000 + 40 * n for n in range(24)]
    shapes = [(2048, n) if varies == "columns" else (n // 10, 20_480) for n in sizes]
    given = [[meta(*shape)] * 2 for shape in shapes]
    found = [served.serve(inputs) for inputs in given]
    shared = [parts_of(one) > 1 for one in found]
    assert shared == [True] * 2 + [False] * 22
    kinds = [made.dynamic for made in served.records]
    assert kinds[:2] == [False] * 2 and all(kinds[2:]) and len(kinds) <= 10
    assert has_other_kernels(found[-1], served.static(given[-1]))


# --- what constant sizes would change -------------------------------------------------------------


def served_and_alone(fd: FusionDefinition, *shapes: list[tuple[int, ...]]) -> list[Lowered]:
    """What serves the last of some sizes, and what would serve it if it were the only one."""
    served = AbstractVariants(fd)
    found = [served.serve([meta(*shape) for shape in given]) for given in shapes]
    assert served.records[-1].dynamic
    return [found[-1], served.static([meta(*shape) for shape in shapes[-1]])]


def test_flat_kernels_differ_in_masks_alone() -> None:
    shapes = [[(n,)] for n in (40_000, 40_024, 9_992)]
    assert differs_in_masks_alone(*served_and_alone(doubled(), *shapes))


@pytest.mark.parametrize(
    ("body", "ranks"),
    [
        (lambda fd, x, w: fd.ops.add(x, fd.ops.broadcast(w, [True, False])), (2, 1)),
        (lambda fd, x: fd.ops.sum(x, [1]), (2,)),
        (lambda fd, x: fd.ops.sum(x, [0]), (2,)),
    ],
)
def test_kernels_with_sizes_in_addresses_and_loops_differ(
    body: Any, ranks: tuple[int, ...]
) -> None:
    shapes = [[(1024, n) if rank == 2 else (n,) for rank in ranks] for n in (1001, 1003, 1011)]
    opened, alone = served_and_alone(define(body, *ranks), *shapes)
    assert not differs_in_masks_alone(opened, alone) and not has_other_kernels(opened, alone)
