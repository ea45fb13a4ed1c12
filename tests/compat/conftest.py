"""What programs written for nvFuser need here: CPU tensors taken for CUDA ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tritonfuser import options
from tritonfuser.compat.nvfuser import FusionCache


@pytest.fixture
def cpu_as_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``NVF_CPU_AS_CUDA=1`` for the time of a test."""
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "1")
    options.refresh()
    yield
    monkeypatch.undo()
    options.refresh()


@pytest.fixture
def empty_fusion_cache(
    cpu_as_cuda: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """An empty FusionCache of the first frontend, and a workspace that has nothing."""
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", str(tmp_path / "cache"))
    options.refresh()
    FusionCache.reset()
    yield
    FusionCache.reset()
