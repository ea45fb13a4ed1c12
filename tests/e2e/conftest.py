"""Where the bodies of these tests run: here, interpreted, and on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Where the inputs are."""
    found: str = request.param
    return found


@pytest.fixture(autouse=True)
def _fresh_memory_is_nan() -> Iterator[None]:
    """What a kernel does not write shows: torch fills what it allocates with nan."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(before)
