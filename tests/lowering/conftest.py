"""Reductions are cut into parts at sizes that a test can afford."""

from __future__ import annotations

import pytest

from tritonfuser.heuristics import reduction


@pytest.fixture(autouse=True)
def small_parts(request, monkeypatch):
    """A second step pays from 600 elements on; kernel counts are those of real sizes."""
    if request.node.path.name != "test_kernel_counts.py":
        monkeypatch.setattr(reduction, "MIN_PART_ELEMENTS", 300)
