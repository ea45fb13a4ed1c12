"""Random definitions on a real device: all results are within what rounding explains.

The interpreter computes with NumPy. What compilers make of a kernel's text is seen here alone: they
may contract a product and a sum that the definition rounds apart.
"""

from __future__ import annotations

import pytest
import torch

from bench.random_graphs.growing import entry
from bench.recorded.definitions import make_inputs, record

pytestmark = pytest.mark.gpu
BYTES = 1e6
SEED = 36


@pytest.mark.parametrize("number", range(48))
def test_of_a_random_definition(number: int) -> None:
    grown = entry(SEED, number, bytes=BYTES)
    fd = record(grown)
    fd.validate(make_inputs(grown, fd.fusion.ir, torch.device("cuda")))
