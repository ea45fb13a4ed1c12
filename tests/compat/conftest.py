"""What programs written for nvFuser need here: CPU tensors taken for CUDA ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tritonfuser import options


@pytest.fixture
def cpu_as_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``NVF_CPU_AS_CUDA=1`` for the time of a test."""
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "1")
    options.refresh()
    yield
    monkeypatch.undo()
    options.refresh()
