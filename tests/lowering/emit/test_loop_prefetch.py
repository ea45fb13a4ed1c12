"""Loads that loops over rows begin steps ahead, in registers: the text and the numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.lowering.fuse.test_loops_over_rows import three
from tests.lowering.fuse.test_norm_backwards import inputs_of, norm_backward
from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, small, texts
from tritonfuser import ParamsError, Schedule
from tritonfuser.lowering.emit.lines import Line
from tritonfuser.lowering.emit.memory.loop_prefetch import LoopSteps, with_mask, with_prefetch
from tritonfuser.lowering.emit.memory.zero_terms import without_zero


def checked(body, given, programs=4, two_steps=True, **changes):
    """Values of a definition whose kernel with a loop over rows has other params, and its text."""
    where = {"facts": small(programs), "two_steps": two_steps}
    pieces = lowered(body, given, **where).segmented.segments
    params = [p.params for p in pieces]
    places = [n for n, p in enumerate(pieces) if p.scheduler == "inner_outer_persistent"]
    row = pieces[places[0]].reduced_extent
    whole = {"num_stages": 1, "tails": (), "align": 1, "block_r": 1 << (row - 1).bit_length()}
    params[places[0]] = replace(params[places[0]], **{**whole, **changes})
    found = check(body, *given, params=params, tolerance=1e-3, **where)
    return texts(found)[places[0]]


def backward(like, **changes):
    body, shapes = norm_backward(like, "weight", "bias")
    return checked(body, inputs_of(shapes), **changes)


@pytest.mark.covering
@pytest.mark.parametrize("block_m", [1, 2, 4])
@pytest.mark.parametrize("like", [(5, 37, 24), (61, 5, 40), (2, 71, 33)], ids=str)
def test_numbers(like, block_m):
    text = backward(like, block_m=block_m, prefetch=True)
    loop = text[text.index("    for m") :]
    names = {f"tv{n}_next = tl.load(" for n in range(4)}
    assert all(name in loop for name in names), "whole rows, and the numbers of each row"
    assert not any(f"tv{n} = tl.load(" in text for n in range(4))


def test_only_what_is_called_is_imported():
    """``tl.minimum`` is no function of the device library's."""
    imports, _, body = backward((5, 37, 24), prefetch=True).partition("@triton.jit")
    assert "tl.minimum(" in body and "minimum" not in imports


def test_rows_in_tiles_and_tails():
    text = backward((29, 5, 1100), block_r=1024, tails=(64, 16), prefetch=True)
    assert text.count("_next = tl.load(") == 2 * (2 * 3 + 2)


def test_each_loop_over_the_rows_begins_anew():
    text = checked(three, [noise(80, 3, 24)], 2, two_steps=False, prefetch=True)
    assert text.count("    for m") == 3 and text.count("_next = tl.load(") == 6


def test_one_step():
    """What is begun ahead is the step itself."""
    backward((2, 40, 24), block_m=64, prefetch=True)


def gathered(fd, index, table, g):
    rows = fd.ops.mul(fd.ops.index_select(table, index, 0), g)
    scale = fd.ops.broadcast_in_dim(fd.ops.sum(rows, [1]), [300, 24], [0])
    return fd.ops.sum(fd.ops.mul(rows, scale), [0])


def test_rows_at_indices_are_loaded_in_their_step():
    """Where they are is known when the indices have arrived."""
    given = torch.randint(0, 50, (300,)), noise(50, 24), noise(300, 24, seed=1)
    text = checked(gathered, given, block_m=1, prefetch=True)
    assert "tv0_next = tl.load(" in text and "tv1_next" not in text and "tv1 = tl.load(" in text


REFUSED = {
    "(num_stages=2) or into registers (prefetch), not both": {"num_stages": 2, "prefetch": True},
    "programs that share a row begin its loads by themselves": {"parts": 2, "block_r": 128},
    "params.prefetch: expected bool, got 2": {"prefetch": 2},
}


@pytest.mark.parametrize("told", REFUSED)
def test_refused(told):
    body, shapes = norm_backward((64, 64, 256), "weight")
    given = [torch.empty(shape, device="meta") for shape in shapes]
    fd = record(body, given)
    data = fd.schedule(given, arch="sm_90").to_dict()
    (place,) = (
        n for n, s in enumerate(data["segments"]) if s["scheduler"] == "inner_outer_persistent"
    )
    chosen = {"block_m": 1, "num_stages": 1, "prefetch": True}
    data["segments"][place]["params"].update({**chosen, **REFUSED[told]})
    with pytest.raises(ParamsError) as caught:
        fd.kernels(given, arch="sm_90", schedule=Schedule.from_dict(data))
    assert told in str(caught.value)


BODY = [
    Line("m = m_start + m_base", depth=1),
    Line("tv0 = tl.load(tv0_ptr + m)", depth=1, loads="tv0"),
    Line("tv1 = tl.load(tv1_ptr + tv0)", depth=1, loads="tv1"),
    Line("tl.store(tv2_ptr + m, tv1)", depth=1),
]


def test_names_that_are_taken():
    steps = LoopSteps("m_start", "MBLOCK", "m_stop - 1", "(m_stop > 0)")
    before = Line("tv0_next = 1")
    header = Line("for m_start in range(0, m_stop, MBLOCK):")
    found = with_prefetch([before, header, *BODY], [steps])
    assert [line.text for line in found] == [
        "tv0_next = 1",
        "tv0_next_ = tl.load(tv0_ptr + m_base, mask=(m_stop > 0), other=0)",
        "for m_start in range(0, m_stop, MBLOCK):",
        "tv0 = tv0_next_",
        "m_start_next = tl.minimum(m_start + MBLOCK, m_stop - 1)",
        "m_next = m_start_next + m_base",
        "tv0_next_ = tl.load(tv0_ptr + m_next)",
        "m = m_start + m_base",
        "tv1 = tl.load(tv1_ptr + tv0)",
        "tl.store(tv2_ptr + m, tv1)",
    ]
    assert [line.depth for line in found] == [0] * 3 + [1] * 7


def test_a_mask_joins_the_one_of_a_load():
    line = Line("a = tl.load(a_ptr + r, mask=r_mask, other=0)", loads="a")
    assert (
        with_mask(line, "(n > 0)").text == "a = tl.load(a_ptr + r, mask=(n > 0) & r_mask, other=0)"
    )
    place = Line("b = r + 1")
    assert with_mask(place, "(n > 0)") == place


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a = tl.load(p + s * 8 + m * 5 + r)", "a = tl.load(p + s * 8 + r)"),
        ("a = tl.load(p + m * (size0 * 2), mask=q)", "a = tl.load(p, mask=q)"),
        ("a = tl.load(p + r - m * 12)", "a = tl.load(p + r)"),
        ("b = m * 2 + m_base", ""),
        ("b = (m * 7 + r >= 3) & (m * 7 + r < 9)", "b = (r >= 3) & (r < 9)"),
        ("b = (m + 3 >= 0) & (r < 9)", None),
        ("b = r + m // 5", None),
        ("b = r + m * 5 % 3", None),
        ("b = m < m_stop", None),
        ("b = s * m + r", None),
    ],
)
def test_the_first_step_has_no_terms_of_zero(text, left):
    lines = [Line("m = 0"), Line(text, loads="a" if "load" in text else "")]
    kept = [line.text for line in without_zero(lines)]
    assert kept == (["m = 0", text] if left is None else [left] if left else [])
