"""The kernels of these tests compiled for a GPU that is not here: what the interpreter forgives.

Triton's compiler is stricter than its interpreter about types and shapes of tiles.
"""

from __future__ import annotations

import random

import pytest
import torch

from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.ops import calls as many
from tests.e2e.ops.samples import CALLS, pointwise_calls, reduction_calls, scan_calls
from tests.e2e.ops.test_ops_pointwise import CASES, ON_GPU
from tests.e2e.ops.test_ops_reductions import REDUCED, SCANNED
from tests.ops.pointwise_harness import ALL_DTYPES
from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops import registry

ARCH = "sm_90"


@pytest.mark.parametrize(
    ("shape", "stretched", "dim"),
    [((1, 1), (80, 1), 1), ((16, 1), (16, 80), 0), ((1, 16), (80, 16), 1)],
)
def test_scans_of_stretched_tensors(
    shape: tuple[int, ...], stretched: tuple[int, ...], dim: int
) -> None:
    """Triton fails on a scan of a tile of fewer elements than the kernel's others have."""
    x = torch.ones(shape).expand(stretched)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.cumsum(fd.from_pytorch(x), dim))
    (kernel,) = fd.compile_for(ARCH, [x])
    assert kernel.scheduler == "scan"
    assert torch.equal(fd.run([x])[0], x.cumsum(dim))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [c for c in CASES if c[1] in ON_GPU], ids=lambda x: getattr(x, "name", x)
)
def test_pointwise(name: str, dtype: DataType) -> None:
    recorded = many.record(name, pointwise_calls(registry.get(name), dtype, "cpu"))
    assert recorded.fd.compile_for(ARCH, recorded.inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), REDUCED, ids=lambda x: getattr(x, "name", x))
def test_reductions(name: str, dtype: DataType) -> None:
    recorded = many.record(name, reduction_calls(registry.get(name), dtype, "cpu"))
    assert recorded.fd.compile_for(ARCH, recorded.inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), SCANNED, ids=lambda x: getattr(x, "name", x))
def test_scans(name: str, dtype: DataType) -> None:
    recorded = many.record(name, scan_calls(registry.get(name), dtype, "cpu"))
    assert recorded.fd.compile_for(ARCH, recorded.inputs)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda x: x.name)
@pytest.mark.parametrize("name", CALLS)
def test_others(name: str, dtype: DataType) -> None:
    calls = CALLS[name](dtype, "cpu")
    if not calls:
        pytest.skip(f"{name} does not take {dtype}")

    def computed(fd, x):
        return x if x.dtype() in (DataType.Int, DataType.Int32) else fd.ops.relu(x)

    recorded = many.record(name, calls, after=computed)
    recorded.fd.compile_for(ARCH, recorded.inputs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_graphs(kind: str) -> None:
    for number in range(20):
        grown = KINDS[kind].grow(random.Random(f"{kind} {number}"))
        try:
            grown.fd.compile_for(ARCH, grown.inputs)
        except Exception as error:
            raise AssertionError(f"seed '{kind} {number}'") from error
