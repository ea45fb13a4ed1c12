"""Results as data: ratios, files and back, tables, the figures a run is judged by."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from bench.measure.timing import Times, quartiles
from bench.tables.comparison import changes, comparison, worse
from bench.tables.formatting import geomean
from bench.tables.plot import drawing, save_plot
from bench.tables.records import Record, Results, load, save_csv
from bench.tables.suite_tables import suite_tables
from bench.tables.summary import bars, better_ratio, summary

MIB = 1 << 20


def record(case="softmax", size="8192x8192", mib=256, failures=None, **seconds):
    """One row; the copy moves 1 MiB in a microsecond."""
    times = {who: Times(s, s * 0.99, s * 1.02) for who, s in seconds.items()}
    return Record(
        case=case,
        suite="softmax" if case.startswith("softmax") else "norm",
        size=size,
        dtype="bfloat16",
        bytes=mib * MIB,
        bandwidth=MIB / 1e-6,
        launches=1,
        error=1e-3,
        eager_error=1e-3,
        deterministic=True,
        times=times,
        failures=failures or {},
    )


GOOD = record(ours=280e-6, eager=560e-6, compile=420e-6, autotune=420e-6, liger=300e-6)
SLOW = record("layernorm", ours=512e-6, eager=500e-6, compile=480e-6, autotune=450e-6)
SMALL = record("rmsnorm", "512x1024", 2, ours=4e-6, eager=8e-6, compile=8e-6)
FAILED = record("rmsnorm", failures={"ours": "RuntimeError: boom"}, eager=400e-6)
LATE = record("rmsnorm", failures={"autotune": "skipped: out of time"}, ours=300e-6)
ALL = [GOOD, SLOW, SMALL, FAILED]


def run(records):
    return Results(({"commit": "abc", "device": "GPU", "bandwidth": 1e12},), tuple(records))


def test_quartiles():
    found = quartiles([4.0, 1.0, 2.0, 3.0, 5.0])
    assert (found.low, found.median, found.high) == (2.0, 3.0, 4.0)
    assert found.spread == pytest.approx(2 / 3)


def test_ratios_are_by_how_much_the_other_is_slower():
    assert GOOD.ratio("eager") == pytest.approx(2.0)
    assert GOOD.speed_of_light() == pytest.approx(256 / 280)
    assert FAILED.ratio("eager") is None
    assert FAILED.speed_of_light() is None
    assert better_ratio(SLOW) == pytest.approx(450 / 512)
    assert better_ratio(FAILED) is None
    assert GOOD.large
    assert not SMALL.large


def test_results_are_read_as_they_were_written(tmp_path):
    before = run(ALL)
    before.save(tmp_path / "a.json")
    assert load([tmp_path / "a.json"]) == before


def test_later_files_win(tmp_path):
    again = record(ours=1e-6)
    run(ALL).save(tmp_path / "a.json")
    run([again, LATE]).save(tmp_path / "b.json")
    found = load([tmp_path / "a.json", tmp_path / "b.json"])
    assert len(found.runs) == 2
    assert found.records == (again, SLOW, SMALL, LATE)


@pytest.mark.parametrize("text", ["{}", "nothing", '{"runs": [], "records": [{"case": 1}]}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(SystemExit, match="expected results written by --json"):
        load([path])


def test_csv_has_a_line_a_row(tmp_path):
    save_csv(ALL, tmp_path / "a.csv")
    lines = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [line["case"] for line in lines] == [r.case for r in ALL]
    assert lines[0]["ours_median_us"] == "280.000"
    assert lines[0]["liger_median_us"] == "300.000"
    assert lines[3]["ours_median_us"] == ""


def test_a_table_a_suite_with_what_failed_below():
    text = suite_tables([*ALL[:3], LATE, FAILED])
    assert text.index("softmax") < text.index("norm")
    assert "2.00x" in text
    assert "failed" in text
    assert "skipped" in text
    assert "ours, rmsnorm 8192x8192 bfloat16: RuntimeError: boom" in text
    assert "| case" in suite_tables(ALL, "github")


def found(records, what):
    (bar,) = [bar for bar in bars(records) if bar.what.startswith(what)]
    return bar


def test_bars():
    assert geomean([1.0, 4.0]) == pytest.approx(2.0)
    assert geomean([]) is None
    assert found(ALL, "median % of SOL").found == "71%"
    worst = found(ALL, "worst % of SOL")
    assert worst.found == "50% (layernorm 8192x8192 bfloat16); 1 below"
    assert worst.holds is False
    assert found([GOOD], "worst % of SOL").holds is True
    mean = found(ALL, "geometric mean vs compile, 64 MiB")
    assert mean.found == f"{(420 / 280 * 480 / 512) ** 0.5:.2f}x"
    assert found(ALL, "geometric mean vs compile, all").found == "1.41x"
    assert found(ALL, "lowest vs the better").found.startswith("0.88x (layernorm")
    assert found(ALL, "lowest vs eager").holds is False
    assert found(ALL, "rows measured").found == "3 of 4"
    assert found([GOOD], "same bits").holds is True


def test_summary_lists_the_rows_below_a_bar():
    text = summary(ALL)
    for title in ("below 75% of SOL", "below 0.97x of the better", "slower than eager"):
        assert f"{title}" in text
    assert "slower than eager" not in summary([GOOD])


def test_a_comparison_looks_at_ratios_alone():
    faster_machine = record(ours=140e-6, eager=280e-6, compile=210e-6, autotune=210e-6)
    assert worse(list(changes([SLOW], [GOOD]))) == []
    same = list(changes([GOOD], [GOOD]))
    assert {c.factor for c in same} == {1.0}
    lost = worse(list(changes([GOOD], [record(ours=320e-6, eager=560e-6)])))
    assert [c.ratio for c in lost] == ["% of SOL", "vs eager"]
    assert "2 worse by more than 5%" in comparison(lost, 0.05)
    peers = [c for c in changes([GOOD], [faster_machine]) if c.ratio != "% of SOL"]
    assert [c.factor for c in peers] == pytest.approx([1.0] * 3)


@pytest.mark.skipif(drawing is None, reason="needs matplotlib")
def test_plot(tmp_path):
    save_plot(ALL, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit, match="nothing was measured"):
        save_plot([FAILED], tmp_path / "b.png")


def test_the_share_of_the_bound_stands_beside_that_of_the_copy(tmp_path):
    bounded = replace(GOOD, least=210e-6, limit="SFU")
    assert bounded.share_of_bound() == pytest.approx(0.75)
    assert GOOD.share_of_bound() is None
    header, _, row = suite_tables([bounded]).splitlines()[3:6]
    assert "% of SOL    % of bound    limited by" in header
    assert row.split()[9:12] == ["91%", "75%", "SFU"]
    save_csv([bounded], tmp_path / "a.csv")
    (line,) = csv.DictReader((tmp_path / "a.csv").open())
    assert (line["share_of_bound"], line["limit"]) == ("0.7500", "SFU")
