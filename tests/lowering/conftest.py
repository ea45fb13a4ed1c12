"""Reductions are cut into parts at sizes that a test can afford."""

from __future__ import annotations

import pytest

from tritonfuser.heuristics import reduction


def split_from(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    """Parts of rows may be as small as that, whatever a second step costs."""
    for name in ("MIN_PART_ELEMENTS", "FULL_PART_ELEMENTS"):
        monkeypatch.setattr(reduction, name, elements)
    monkeypatch.setattr(reduction, "pays_to_split", lambda *facts: True)


@pytest.fixture(autouse=True)
def small_parts(request, monkeypatch):
    """A second step pays from 600 elements on; kernel counts are those of real sizes."""
    if request.node.path.name != "test_kernel_counts.py":
        split_from(monkeypatch, 300)
