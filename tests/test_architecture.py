"""The tour of the architecture page is what the stages print today."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "docs" / "stages.py"


def test_the_tour_of_the_stages_is_up_to_date():
    spec = importlib.util.spec_from_file_location("docs_stages", SCRIPT)
    stages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stages)
    text = stages.PAGE.read_text()
    assert stages.page(text) == text, "run: python docs/stages.py"
