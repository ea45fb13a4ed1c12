"""Fixtures of the tests of the benchmarks."""

from __future__ import annotations

import pytest
import torch

from bench.recorded import definition_job


@pytest.fixture
def one_graph(monkeypatch):
    """torch.compile without a compiler behind it."""

    def compiled(function, mode):
        return torch.compile(function, fullgraph=True, backend="eager")

    monkeypatch.setattr(definition_job, "compiled", compiled)
