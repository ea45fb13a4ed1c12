"""Markers, golden files and hypothesis settings for all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
import torch

from tests.covering import mark_slow
from tritonfuser.cache import dry_run, variants
from tritonfuser.symbolic.sizes import UndecidedSizeError

# Schedules that somebody tuned on this machine are no part of what is tested.
os.environ["TRITONFUSER_TUNED"] = "0"

# Nor is what its user's caches have; and tests leave nothing there.
_CACHES = tempfile.TemporaryDirectory(prefix="tritonfuser-tests-")
os.environ["TRITONFUSER_CACHE_DIR"] = _CACHES.name

GOLDEN = Path(__file__).parent / "golden"

hypothesis.settings.register_profile("tests", deadline=None, print_blob=True)
hypothesis.settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="accept the golden files as they come out"
    )


def pytest_configure(config: pytest.Config) -> None:
    text = "covering(apart, times): slow but for cases that have each value; tests/covering.py"
    config.addinivalue_line("markers", text)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_slow(items)
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("softmax.py", text)``: the text is what ``tests/golden/softmax.py`` says."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; make it with --update-golden"
        assert text == path.read_text()

    return check


@pytest.fixture(autouse=True)
def undecided_sizes_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that compares sizes as plain numbers fails its test; a run would write them out."""

    def log_fallback(error: Exception) -> None:
        if isinstance(error, UndecidedSizeError):
            raise error

    for module in (variants, dry_run):
        monkeypatch.setattr(module, "log_fallback", log_fallback)
