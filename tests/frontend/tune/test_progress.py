"""The progress bar: on a terminal alone."""

from __future__ import annotations

from tests.frontend.tune.fakes import softmax
from tritonfuser import Trial
from tritonfuser.frontend.tune.progress import progress


def test_nothing_is_drawn_without_a_terminal(capsys):
    fd, inputs = softmax()
    with progress(5.0, shown=True) as bar:
        bar([Trial(fd.schedule(inputs), seconds=1e-5)])
    assert capsys.readouterr() == ("", "")


def test_it_shows_the_number_of_schedules_and_the_best_time(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    fd, inputs = softmax()
    schedule = fd.schedule(inputs)
    with progress(5.0, shown=True) as bar:
        bar([Trial(schedule, seconds=2e-5), Trial(schedule, seconds=1e-5), Trial(schedule)])
        bar._bar.refresh()
        assert "3 schedules, best 10 us" in capsys.readouterr().err
    with progress(5.0, shown=False) as bar:
        bar([])
    assert capsys.readouterr().err.strip("\r ") == ""
