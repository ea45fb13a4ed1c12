"""``python -m bench.tuning``: cases, tunings, tables; the interpreter in the place of a GPU."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from bench.suite.selection import Row
from bench.tuning import __main__ as command
from bench.tuning.cases import RANDOM, SUITE, GraphCase, SuiteCase, random_cases
from bench.tuning.report import report
from bench.tuning.results import Found, Tuning, parsed
from bench.tuning.trial import found_of
from tritonfuser import FusionDefinition, TuneReport
from tritonfuser.frontend.tune.report import Trial

SMALL = [SuiteCase(Row("softmax", (4, 16), "float32")), GraphCase(1, 0, 1 << 14)]


def tuning(budget, seconds, change="s0.num_warps 4 -> 8", timed=40):
    return Tuning(budget, budget + 1, timed + 5, timed, change, seconds)


def found(name, heuristic, short, long, **given):
    tunings = (tuning(5.0, short), tuning(60.0, long, timed=400))
    return Found(name, SUITE, 1, 1 << 20, heuristic, tunings, **given)


# --- cases ---------------------------------------------------------------------------------------


def test_cases_are_the_same_each_time_of_both_kinds_and_not_held_out():
    cases = random_cases(60)
    names = [case.name for case in cases]
    assert names == [case.name for case in random_cases(60)] and len(set(names)) == 60
    assert names[:10] == [case.name for case in random_cases(10)]
    assert names != [case.name for case in random_cases(60, seed=2)]
    assert [case.origin for case in cases] == 30 * [SUITE, RANDOM]
    assert len({case.row.case for case in cases if isinstance(case, SuiteCase)}) == 30
    assert all(case.number % 2 == 0 for case in cases if isinstance(case, GraphCase))


def test_cases_end_with_the_suite():
    many = random_cases(5000)
    assert len({case.name for case in many}) == len(many) < 5000


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_a_case_runs(case):
    fd, inputs = case.made("cpu", 0)
    assert len(fd.run(inputs)) == len(fd.fusion.ir.outputs)


# --- a case --------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """``fd.autotune`` that finds twice the warps where it has more than a second."""
    calls = []

    def autotune(fd, inputs, budget_s, level, *, progress, store):
        assert not progress and not store
        calls.append((budget_s, level))
        schedule = fd.schedule(inputs)
        first, *others = schedule.segments
        params = replace(first.params, num_warps=2 * first.params.num_warps)
        better = replace(schedule, segments=(replace(first, params=params), *others))
        trials = (
            Trial(schedule, "", 2e-5),
            Trial(better, "s0.num_warps doubled", 1e-5),
            Trial(better, "worse", failure="spills"),
        )
        best = better if budget_s > 1 else schedule
        return TuneReport(best, 2e-5, 1e-5, trials, "a GPU", budget_s + 0.5)

    monkeypatch.setattr(FusionDefinition, "autotune", autotune)
    return calls


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_both_tunings_and_the_heuristics_are_timed(asked, case):
    one = found_of(case, (0.5, 2.0), "schedule", "cpu")
    assert one.failure == "" and asked == [(0.5, "schedule"), (2.0, "schedule")]
    assert [t.budget for t in one.tunings] == [0.5, 2.0]
    assert [t.change for t in one.tunings] == ["", "s0.num_warps doubled"]
    assert [(t.tried, t.timed, t.spent) for t in one.tunings] == [(2, 1, 1.0), (2, 1, 2.5)]
    # The short tuning kept the heuristics' schedule: it is the same kernel, and timed once.
    assert one.short.seconds == one.heuristic > 0 and one.long.seconds > 0
    assert one.kernels >= 1 and one.bytes > 0


def test_a_case_that_cannot_be_tuned_has_the_reason():
    one = found_of(SMALL[0], (0.5, 2.0), "params", "cpu")
    assert one.failure.startswith("UnsupportedDeviceError: autotune needs") and not one.tunings
    assert report([one]) == f"{one.name}: {one.failure}"


# --- figures -------------------------------------------------------------------------------------


def test_the_figures_of_good_tunings():
    cases = [found("a", 1.04e-5, 1.02e-5, 1e-5), found("b", 1e-5, 1e-5, 1e-5)]
    text = report([*cases, replace(cases[0], name="c", origin=RANDOM)])
    assert "missed" not in text and text.count("holds") == 4
    assert "suite, 2 cases: short over long 1.010, heuristics over long 1.020 at the median" in text
    assert "60 candidates of one kernel in 10 s: holds, 66 at the median" in text


def test_the_figures_of_bad_tunings():
    cases = [found("a", 1.2e-5, 1.1e-5, 1e-5), found("slower", 1e-5, 1.05e-5, 0.9e-5)]
    few = [replace(one, tunings=tuple(replace(t, timed=9) for t in one.tunings)) for one in cases]
    text = report(few)
    assert text.count("missed") == 4 and "holds" not in text
    assert "never below 0.98x of the heuristics' speed: missed, least 0.95x (slower)" in text
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["slower", "a"], "the worst one first"


def test_a_definition_of_several_kernels_has_no_pace():
    assert "candidates of one kernel" not in report([replace(found("a", 1, 1, 1), kernels=2)])
    assert report([]) == "nothing was tuned"


# --- the command ---------------------------------------------------------------------------------


def test_the_list(capsys):
    command.main(["--list", "--cases", "4"])
    assert capsys.readouterr().out.split("\n")[:-1] == [case.name for case in random_cases(4)]


def test_without_a_gpu_nothing_is_tuned(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="needs a CUDA device"):
        command.main([])


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "soon"])
def test_a_wrong_budget(budget, capsys):
    with pytest.raises(SystemExit):
        command.main(["--budgets=5", budget])
    with pytest.raises(SystemExit):
        command.main(["--budgets", "5", budget])
    assert "expected a positive number of seconds" in capsys.readouterr().err


@pytest.fixture
def clock(monkeypatch):
    """A clock that a tuned case moves on by what its budgets take."""
    now = [0.0]
    monkeypatch.setattr(command.time, "monotonic", lambda: now[0])

    def tuned(case, budgets, level, device):
        now[0] += sum(budgets) + 4
        return found(case.name, 1.1e-5, 1e-5, 1e-5)

    monkeypatch.setattr(command, "found_of", tuned)
    return now


def test_a_run_goes_on_where_the_last_one_ended(clock, tmp_path, capsys):
    file = tmp_path / "t.json"
    options = command.parse(["--cases", "5", "--json", str(file), "--limit", "160"])
    cases = random_cases(5)
    known = {}
    command.measure(cases, known, options, "cpu")
    # 5 + 60 + 4 seconds each: the third one would end behind the limit.
    assert list(known) == [case.name for case in cases[:2]] and clock[0] == 138.0
    assert command.read(file, command.asked(options)) == known
    command.measure(cases, known, options, "cpu")
    assert len(known) == 4
    command.main(["--cases", "5", "--json", str(file), "--show"])
    out = capsys.readouterr().out
    assert out.endswith("\n1 of 5 cases are not tuned yet: run it again\n")
    assert "suite, 4 cases" in out


def test_a_file_of_other_budgets_is_refused(clock, tmp_path):
    file = tmp_path / "t.json"
    options = command.parse(["--cases", "1", "--json", str(file)])
    command.measure(random_cases(1), {}, options, "cpu")
    with pytest.raises(SystemExit, match="give another file"):
        command.main(["--json", str(file), "--show", "--budgets", "5", "20"])
    with pytest.raises(SystemExit, match="give another file"):
        command.main(["--json", str(file), "--show", "--level", "schedule"])


@pytest.mark.parametrize("text", ["", "[]", '{"run": {}}', '{"run": {}, "cases": [{"name": 1}]}'])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(SystemExit, match="expected a file that --json wrote"):
        command.main(["--json", str(file), "--show"])


def test_results_are_read_as_they_were_written():
    for one in (found("a", 1e-5, 1e-5, 1e-5), Found("b", RANDOM, failure="no")):
        assert parsed(json.loads(json.dumps(asdict(one)))) == one
