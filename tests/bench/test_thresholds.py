"""Comparisons of facts with numbers, counted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench import thresholds
from bench.thresholds import ROOT, at, comparisons, counted, here, report

COUNTED = {
    "rows < 64": "number",
    "64 < rows": "number",
    "problem.reduced >= MAX_ROW": "number",
    "x <= device.LIMIT": "number",
    "x > 4 * KIB": "number",
    "x > -2": "number",
    "x > 1 << 20": "number",
    "len(x) == 3": "number",
    "x == 2.5": "number",
    "4 * own >= total": "scaled",
    "own >= total // 8": "scaled",
    "own + 3 * more >= total": "scaled",
    "own >= SHARE * total": "scaled",
}
NAMED = {
    "low, high = SPAN\n    return low <= x": "number",
    "least = 2 if few else 4\n    return x < least": "number",
    "for most, step in STEPS:\n        if x <= most: pass": "number",
    "return [n for most, n in STEPS.items() if x <= most]": "number",
    "wanted = 16 * sms\n    return x < wanted": "scaled",
    "wave = SHARE * sms\n    most = 2 * wave\n    return x < most": "scaled",
    "a, b = 4 * n, y\n    return x < a": "scaled",
}
FREE = (
    "x > 0",
    "x == 1",
    "parts != 1",
    "a < b",
    "a * b < c",
    "a < b + 2",
    "1 * a < b",
    "name == 'x'",
    "x is None",
    "x in (2, 3)",
    "LIMIT < 3",
    "flag == True",
    "f(2) < x",
)


@pytest.mark.parametrize("text", COUNTED)
def test_what_counts(text):
    (found,) = comparisons(f"\nif {text}:\n    pass")
    assert (found.line, found.text) == (2, text)
    assert ("scaled" if found.scaled else "number") == COUNTED[text]


@pytest.mark.parametrize("text", FREE)
def test_what_does_not(text):
    assert not [*comparisons(text)]


@pytest.mark.parametrize("text", NAMED)
def test_names_that_stand_for_numbers_count_as_these(text):
    (found,) = comparisons(f"def f(x, few, sms, n, y):\n    {text}")
    assert ("scaled" if found.scaled else "number") == NAMED[text]


@pytest.mark.parametrize(
    "text",
    [
        "most = f(4)\n    return x < most",
        "y = 4\n    y = g(x)\n    return x < y",
        "y //= 2\n    return x < y",
        "most = a * b\n    return x < most",
    ],
)
def test_other_names_do_not(text):
    assert not [*comparisons(f"def f(x, y, a, b):\n    {text}")]


def test_a_chain_has_each_of_its_comparisons():
    assert len([*comparisons("2 <= rows < 64 < columns")]) == 3


def test_modules_are_counted_and_compared():
    before = {"a.py": "x < 3\ny < 4\n4 * x < y", "b.py": "x < 0", "gone.py": "x > 7"}
    now = {"a.py": "x < 3", "b.py": "x < 0"}
    assert counted(before) == {"a.py": (2, 1), "gone.py": (1, 0)}
    text = report(now, before)
    assert "before 4, now 1" in text and "25% of before" in text and "b.py" not in text
    assert report(now).endswith("now 1")
    assert report({}, {}).endswith("before 0, now 0")


def test_the_heuristics_of_the_tree_have_some():
    assert sum(map(sum, counted(here()).values())) > 0


def test_a_revision(tmp_path, monkeypatch):
    folder = tmp_path / thresholds.FOLDER
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("x < 3\n")
    (folder / "notes.txt").write_text("x < 3\n")

    def git(*words):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one")
    (folder / "a.py").write_text("x < 0\n")
    monkeypatch.setattr(thresholds, "ROOT", tmp_path)
    assert at("HEAD") == {"a.py": "x < 3\n"} and here() == {"a.py": "x < 0\n"}
    for wrong in ("no such revision", "--output=/tmp/x"):
        with pytest.raises(SystemExit, match=r"python -m bench\.thresholds: fatal"):
            at(wrong)


def test_the_command():
    ran = subprocess.run(
        [sys.executable, "-m", "bench.thresholds", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    assert len(lines) == sum(map(sum, counted(here()).values()))
    assert all(line.startswith("tritonfuser/heuristics/") for line in lines)
