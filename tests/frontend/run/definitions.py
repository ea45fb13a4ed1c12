"""What tests of runs record."""

from __future__ import annotations

from tritonfuser import (
    FusionDefinition,
)


def simple():
    """relu(x + s) of a matrix and a scalar."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        s = fd.define_scalar()
        fd.add_output(fd.ops.relu(fd.ops.add(x, s)))
    return fd
