"""Random definitions are lowered for a GPU: whatever is chosen for them can be written."""

from __future__ import annotations

import pytest

from bench.random_graphs.growing import entry
from bench.recorded.definitions import make_inputs, record

SEED = 36
BYTES = (1.5e5, 1e6)
"""Of inputs and outputs: rows of all lengths, shared by programs or not."""


@pytest.mark.covering
@pytest.mark.parametrize("bytes", BYTES)
@pytest.mark.parametrize("number", range(24))
def test_is_written(number: int, bytes: float) -> None:
    grown = entry(SEED, number, bytes=bytes)
    fd = record(grown)
    absent = make_inputs(grown, fd.fusion.ir, "meta")
    cut = fd.segments(absent, arch="sm_90").segments
    launched = sum(piece.params.has_kernel and not piece.launched_by for piece in cut)
    assert len(fd.kernels(absent, arch="sm_90")) == launched
