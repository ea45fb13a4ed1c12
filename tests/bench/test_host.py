"""What a call costs: what is measured, the bars, and the tables."""

from __future__ import annotations

import json

import pytest
import torch

from bench.host import __main__ as command
from bench.host.call_times import Outcome, Row, measure, outcome, report, row
from bench.host.calls import BARS, COMPILED, EAGER, RUN, Bar, Call, _chained, all_calls


def test_the_calls_compute_the_same():
    calls = {call.name: call for call in all_calls("cpu")}
    assert {bar.call for bar in BARS} <= set(calls)
    (one,) = calls[RUN].run()
    torch.testing.assert_close(one, calls[EAGER].run())
    many = [call for name, call in calls.items() if "10 inputs, 4 kernels" in name]
    assert [call.kernels for call in many] == [4, 4, 4]
    wanted = calls["eager, 10 inputs"].run()
    for call in many:
        torch.testing.assert_close(call.run()[0], wanted, rtol=1e-3, atol=1e-2)


def test_the_four_kernels_take_ten_inputs():
    with pytest.raises(ValueError, match="unpack"):
        _chained(*torch.ones(8, 2, 2))
    assert _chained(*torch.ones(10, 1, 1)).item() == 6


def test_contenders_take_turns():
    seen = []
    calls = [Call(name, lambda name=name: seen.append(name)) for name in "abc"]
    times = measure(calls, "cpu", 1, 4)
    assert "".join(seen[9:]) == "abc" + "bca" + "cab" + "abc"
    assert {name: len(found) for name, found in times.items()} == {"a": 3, "b": 3, "c": 3}


def test_a_bar_is_the_median_of_ratios():
    times = {RUN: [2.0, 3.0, 40.0], EAGER: [1.0, 2.0, 20.0]}
    assert outcome(Bar(RUN, EAGER, 1.7), times) == Outcome(
        f"{RUN} <= 1.7x {EAGER}", 2.0, 1.7, False
    )
    assert outcome(Bar(RUN, EAGER, 2.0), times).met
    assert outcome(Bar(RUN, COMPILED, 0.4), times) is None


def test_the_tables():
    found = row(Call("x", int, 4), [1e-6, 2e-6, 3e-6])
    assert found == Row("x", 4, 2.0, 1.5, 2.5)
    text = report(
        [Row(EAGER, 0, 4.0, 3.0, 5.0), found], [Outcome("x <= 1x y", 2.0, 1.0, False)], ""
    )
    assert "0.50" in text
    assert "1.50 to 2.50" in text
    assert "MISSED" in text


def test_the_whole_on_a_cpu(tmp_path, capsys):
    path = tmp_path / "host.json"
    command.main(["--json", str(path), "--rounds", "3", "--calls", "1"])
    assert "fd.run([a, b])" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert found["bars"] == []
    assert len(found["calls"]) == len(all_calls("cpu"))
