"""The demo, and every other tool, at least as far as its first line."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import bench
from bench import demo
from bench.recorded.definitions import of_model
from bench.recorded.shrink import shrink

TOOLS = [found.name for found in pkgutil.walk_packages(bench.__path__, "bench.")]


@pytest.mark.parametrize("name", TOOLS)
def test_tools_are_imported(name):
    importlib.import_module(name)


def test_the_demo_runs_definitions(capsys):
    demo.readme_example("cpu")
    entries = [shrink(entry) for entry in of_model(demo.LLAMA)]
    demo.show_definition(entries[demo.SHOWN], "cpu")
    demo.run_definitions(entries[:2], "cpu")
    text = capsys.readouterr().out
    assert "registers" in text
    assert f"{demo.LLAMA}-1" in text
    assert "No GPU here" in text
