"""Functions with which kernels of one run overlap: the next starts while this one ends.

Programmatic dependent launch, CUDA C++ programming guide; GPUs from sm_90 on.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.target_info import cuda_capability_geq


@triton.jit
def launch_dependents():
    """Let programs of the next kernel start as soon as SMs have room (``griddepcontrol``)."""
    if cuda_capability_geq(9, 0):
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def wait_for_previous():
    """Wait until the kernel before this one has ended and its stores can be read."""
    if cuda_capability_geq(9, 0):
        tl.extra.cuda.gdc_wait()
