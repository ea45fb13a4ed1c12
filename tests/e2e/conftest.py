"""Where the bodies of these tests run: here, interpreted, and on a GPU where there is one."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Where the inputs are."""
    found: str = request.param
    return found
