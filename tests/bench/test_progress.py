"""How far a run is: in place on a terminal, now and then in a log."""

from __future__ import annotations

import io

import pytest

from bench.processes.progress import EVERY, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_what_is_said_stays_and_the_bar_does_not(kind):
    out = kind()
    shown = Progress(25, "step", out)
    for step in range(25):
        shown.show(step, f"case {step}")
    shown.say("all done")
    assert "all done\n" in out.getvalue()
    assert "/25" in out.getvalue() and "step" in out.getvalue()


def test_a_log_has_a_line_every_few_seconds():
    out = io.StringIO()
    shown = Progress(1000, "step", out)
    for step in range(1000):
        shown.show(step, "a case")
    assert EVERY == 10
    assert out.getvalue().count("\r") <= 2
