"""What a tuner tells."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.frontend.tune.fakes import compiler_for, softmax
from tritonfuser import ArgumentError, Schedule, Trial, TuneReport
from tritonfuser.frontend.tune.candidates import neighbours
from tritonfuser.frontend.tune.report import difference


@pytest.fixture(scope="module")
def report():
    compiler = compiler_for(*softmax())
    first = compiler.prepared(compiler.heuristics())
    near = list(neighbours(first.segmented))
    trials = [Trial(first.schedule, seconds=2e-5, finalist=True)]
    for place, schedule in enumerate(near):
        change = difference(schedule, first.schedule)
        trials.append(Trial(schedule, change, 1e-5 * (1 + place), finalist=not place))
    trials.append(replace(trials[-1], seconds=None, failure="it hangs: no word for 5 s"))
    return TuneReport(near[0], 2e-5, 1e-5, tuple(trials), "NVIDIA H200", 5.01)


def test_it_prints_as_a_table(report):
    lines = str(report).splitlines()
    assert lines[0].startswith("10 us for 20 us, 2.00x the heuristics' schedule, on NVIDIA H200; ")
    assert any("heuristics" in line and "finalist" in line for line in lines[2:])
    assert any(report.trials[1].change in line and "best" in line for line in lines)
    assert lines[-1] == "1 x it hangs: no word for 5 s"


def test_it_says_where_nothing_is_faster(report):
    same = replace(report, schedule=report.trials[0].schedule, seconds=2e-5, interrupted=True)
    assert str(same).startswith("nothing beats the heuristics' schedule, 20 us, on NVIDIA H200")
    assert ", interrupted" in str(same) and not same.is_better and same.speedup == 1.0


def test_json_holds_all_of_it(report):
    data = json.loads(report.to_json())
    assert data == report.to_dict()
    assert Schedule.from_dict(data["schedule"]) == report.schedule
    assert [t["seconds"] for t in data["trials"]] == [t.seconds for t in report.trials]


def test_csv_has_a_line_for_each_trial(report):
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert len(rows) == len(report.trials)
    assert float(rows[0]["seconds"]) == 2e-5 and rows[-1]["failure"].startswith("it hangs")
    assert rows[-1]["seconds"] == ""


def test_plot_draws_on_axes_of_matplotlib(report):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    assert report.plot(axes) is axes
    assert axes.get_ylabel() == "GPU time [us]" and len(axes.lines) == 2
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(10.0)


def test_plot_without_axes_says_what_to_do(report):
    with pytest.raises(ArgumentError, match="expected axes of matplotlib, got None") as error:
        report.plot()
    assert "report.plot(plt.gca())" in str(error.value)


def test_a_difference_names_fields():
    compiler = compiler_for(*softmax())
    first = compiler.heuristics()
    (segment,) = first.segments
    params = replace(segment.params, block_x=1)
    other = replace(first, segments=(replace(segment, params=params),))
    assert difference(other, first) == f"s0.block_x {segment.params.block_x} -> 1"
    assert difference(first, first) == ""
    assert difference(replace(first, segments=()), first).startswith("segments ")
