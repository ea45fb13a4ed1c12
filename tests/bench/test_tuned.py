"""``python -m bench --tuned``: rows tuned and timed, and the table of both schedules."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from bench.__main__ import main
from bench.measure.timing import Times
from bench.options import TUNING, parse
from bench.suite.selection import Row
from bench.suite.tuning import tuned_row, with_tuned
from bench.tables.records import Record, Results, Tuned, load
from bench.tables.tuned_table import tuned_tables
from tritonfuser import FusionDefinition, TuneReport
from tritonfuser.frontend.tune.report import Trial

ROW = Row("softmax", (4, 16), "float32")


def times(median):
    return Times(median, 0.99 * median, 1.01 * median)


def record(before, after, change, case="softmax", **given):
    tuned = Tuned(times(before), times(after), change, 60)
    return Record(case, "softmax", "8192x8192", "bfloat16", 256 << 20, 2.5e12, tuned=tuned, **given)


FASTER = record(150e-6, 125e-6, "s0.num_warps 4 -> 8", least=120e-6, limit="SFU")
SAME = record(120e-6, 120e-6, "", "rmsnorm")
SLOWER = record(100e-6, 104e-6, "s0.block_x 1 -> 2", "layernorm")
FAILED = Record(
    "sum", "reduction", "8x8", "float32", 512, 1e12, failures={"tuned": "TunerError: it hangs"}
)


def test_the_table():
    lines = tuned_tables([FASTER, SAME]).splitlines()
    assert lines[0] == "heuristics and tuned"
    cells = dict(zip(columns(lines[3]), columns(lines[5], lines[4]), strict=True))
    assert cells == {
        "case": "softmax",
        "size": "8192x8192",
        "dtype": "bfloat16",
        "moves": "268 MB",
        "heuristics us": "150.0",
        "tuned us": "125.0",
        "tuned is": "1.20x",
        "% of SOL": "72% 86%",
        "% of bound": "80% 96%",
        "tried": "60",
        "change": "s0.num_warps 4 -> 8",
    }
    assert lines[6].split()[-1] == "none"


def columns(line, rule=None):
    """The cells of a line, by the dashes below the heading."""
    if rule is None:
        return [cell.strip() for cell in line.split("  ") if cell.strip()]
    starts = [i for i, c in enumerate(rule) if c == "-" and (i == 0 or rule[i - 1] == " ")]
    ends = [*starts[1:], None]
    return [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]


def test_the_summary():
    text = tuned_tables([FASTER, SAME, SLOWER, FAILED])
    assert (
        "3 rows: tuned is 1.05x at the geometric mean; faster 1 by 2% or more, 1 by 5% or more, "
        "1 by 10% or more; slower by 2% or more 1"
    ) in text
    assert text.endswith("sum 8x8 float32: TunerError: it hangs")


def test_nothing_tuned_has_no_table():
    assert tuned_tables([replace(SAME, tuned=None)]) == ""
    assert "it hangs" in tuned_tables([FAILED])


def test_results_are_read_as_they_were_written(tmp_path, monkeypatch, capsys):
    before = Results(({"commit": "abc"},), (FASTER, SAME, FAILED))
    before.save(tmp_path / "a.json")
    assert load([tmp_path / "a.json"]) == before
    page = tmp_path / "a.md"
    words = ["bench", "--render", str(tmp_path / "a.json"), "--markdown", str(page)]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 0
    assert "heuristics and tuned\n====" in capsys.readouterr().out
    assert "## heuristics and tuned" in page.read_text()


# --- a row ---------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """``fd.autotune`` that finds a schedule with twice the warps."""
    found = []

    def autotune(fd, inputs, budget_s, *, progress, store):
        assert not progress and not store
        found.append(budget_s)
        schedule = fd.schedule(inputs)
        (segment,) = schedule.segments
        params = replace(segment.params, num_warps=2 * segment.params.num_warps)
        better = replace(schedule, segments=(replace(segment, params=params),))
        change = f"s0.num_warps {segment.params.num_warps} -> {params.num_warps}"
        trials = (Trial(schedule, "", 2e-5), Trial(better, change, 1e-5))
        return TuneReport(better, 2e-5, 1e-5, trials, "a GPU", 1.0)

    monkeypatch.setattr(FusionDefinition, "autotune", autotune)
    return found


def test_a_row_is_tuned_and_both_are_timed(asked):
    found = tuned_row(ROW, 0.5, "cpu")
    assert asked == [0.5]
    assert found.change.startswith("s0.num_warps ") and found.trials == 2
    assert found.heuristic.median > 0 and found.tuned.median > 0


def test_rows_one_after_the_other(asked):
    rows = [ROW, Row("rmsnorm", (4, 16), "float32")]
    plain = [Record(row.case, "x", "4x16", row.dtype, 512, 1e12) for row in rows]
    kept = []
    found = with_tuned(Results((), tuple(plain)), rows, 0.5, keep=kept.append, device="cpu")
    assert [record.tuned is not None for record in found.records] == [True, True]
    assert [sum(r.tuned is not None for r in results.records) for results in kept] == [1, 2]
    late = with_tuned(Results((), tuple(plain)), rows, 0.5, -1.0, device="cpu")
    assert late.records == tuple(plain) and asked == [0.5, 0.5]


def test_a_row_that_cannot_be_tuned_has_the_reason():
    plain = Record("softmax", "softmax", "4x16", "float32", 512, 1e12)
    found = with_tuned(Results((), (plain,)), [ROW], 0.5, device="cpu")
    assert found.records[0].failures["tuned"].startswith("UnsupportedDeviceError: autotune needs")


@pytest.mark.parametrize(
    ("words", "wanted"), [([], None), (["--tuned"], TUNING), (["--tuned", "0.5"], 0.5)]
)
def test_the_option(monkeypatch, words, wanted):
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    assert parse().tuned == wanted


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "soon"])
def test_a_wrong_budget(monkeypatch, capsys, budget):
    monkeypatch.setattr(sys, "argv", ["bench", f"--tuned={budget}"])
    with pytest.raises(SystemExit):
        parse()
    assert "expected a positive number of seconds" in capsys.readouterr().err


def test_without_a_gpu_there_is_nothing_to_tune(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--tuned", "--compile-for", "sm_90"])
    with pytest.raises(SystemExit, match="--tuned times schedules, which needs a CUDA device"):
        main()
