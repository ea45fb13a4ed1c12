"""Options that tests change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tritonfuser import options


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    def change(name: str, value: str) -> None:
        monkeypatch.setenv(name, value)
        options.refresh()

    yield change
    monkeypatch.undo()
    options.refresh()
