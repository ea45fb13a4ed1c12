"""The predicted time of segments, at the sizes of a run."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import FusionDefinition


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_size_that_no_tensor_of_a_kernel_has(arch: str) -> None:
    """One expanded element is multiplied by its sizes: only the kernel's work has the open one."""
    with FusionDefinition() as fd:
        x, one = (fd.define_tensor([-1, -1]) for _ in range(2))
        fd.add_output(fd.ops.prod(one, [1]))
        fd.add_output(fd.ops.sum(one, [0, 1]))
        fd.add_output(fd.ops.sum(x, [1]))

    def inputs(rows: int) -> list[torch.Tensor]:
        x = torch.empty(rows, 65536, device="meta")
        return [x, torch.empty(1, 1, device="meta").expand(rows, 65536)]

    assert fd.kernels(inputs(1024), arch=arch, varying=[inputs(256)])
