"""Comments with the user's lines: before the code of their op, each once in a row."""

from __future__ import annotations

import ast
from itertools import pairwise

from bench.recorded.definitions import load, make_inputs, record
from tests.e2e.checking import CPU
from tests.lowering.harness import H200
from tritonfuser.cache.keys.signature import signature
from tritonfuser.errors import SourceLoc
from tritonfuser.lowering.emit.line_passes import comments
from tritonfuser.lowering.emit.lines import Line
from tritonfuser.lowering.pipeline import lower


def at(number: int) -> SourceLoc:
    return SourceLoc("model.py", number)


def test_before_the_loads_of_the_op():
    lines = [
        Line("x = tl.arange(0, XBLOCK)"),
        Line("tv0 = tl.load(tv0_ptr + x)", loads="tv0"),
        Line("tv1 = tl.exp(tv0)", at(3)),
        Line("tv2 = tl.load(tv2_ptr + x)", loads="tv2"),
        Line("tv3 = tv1 + tv2", at(4)),
        Line("tl.store(tv3_ptr + x, tv3)"),
    ]
    assert comments(lines) == {1: "# model.py:3", 3: "# model.py:4"}


def test_before_what_the_op_alone_reads():
    lines = [
        Line("tv1 = tl.exp(tv0)", at(3)),
        Line("tv1_masked = tl.where(r_mask, tv1, 0.0)"),
        Line("tv2 = tl.sum(tv1_masked, 0)", at(4)),
        Line("r0 = r // 7"),
        Line("tv3 = tv2 * r0", at(5)),
        Line("tv4 = tv3 + r0", at(6)),
    ]
    assert comments(lines) == {
        0: "# model.py:3",
        1: "# model.py:4",
        4: "# model.py:5",
        5: "# model.py:6",
    }


def test_not_across_a_store_or_into_a_loop():
    lines = [
        Line("tv1 = tl.exp(tv0)", at(3)),
        Line("tv2 = tl.load(tv2_ptr)", loads="tv2"),
        Line("tl.store(tv1_ptr + x, tv1)"),
        Line("tv3 = tv2 + 1.0", at(4)),
        Line("for r_start in range(0, 4096, RBLOCK):"),
        Line("tv4 = tl.load(tv4_ptr + r_start)", depth=1, loads="tv4"),
        Line("tv5 = tv4 + tv3", at(5), depth=1),
    ]
    assert comments(lines) == {0: "# model.py:3", 3: "# model.py:4", 5: "# model.py:5"}


def test_once_in_a_row():
    lines = [
        Line("tv1 = tl.exp(tv0)", at(3)),
        Line("tv2 = tv1 + 1.0", SourceLoc("model.py", 3, here=False)),
        Line("tl.store(tv2_ptr + x, tv2)"),
        Line("tv3 = tv1 * 2.0", at(3)),
    ]
    assert comments(lines) == {0: "# model.py:3"}


def test_code_follows_each_comment_of_recorded_definitions():
    for entry in load()[::40]:
        fd = record(entry)
        inputs = make_inputs(entry, fd.fusion.ir, "meta")
        for source in lower(fd.fusion.ir, signature(fd.fusion.ir, inputs, CPU), H200).sources:
            if source is None:
                continue
            ast.parse(source.text)
            lines = [line.strip() for line in source.text.splitlines()]
            for comment, behind in pairwise(lines):
                assert not (comment.startswith("# <") and behind.startswith(("# <", "tl.store(")))
            shown = [line for line in lines if line.startswith("# <")]
            assert all(a != b for a, b in pairwise(shown))
