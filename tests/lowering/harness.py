"""Definitions recorded, lowered for the facts of any device, interpreted and compared with torch.

What a GPU would run is interpreted here: the kernels of ``lower(..., H200)`` on CPU tensors. A
device of few multiprocessors makes small sizes take the ways of large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import torch

from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan.execution_plan import ExecutionPlan, make_plan
from tritonfuser.device import DeviceProperties
from tritonfuser.devices import CPU as CPU
from tritonfuser.devices import known
from tritonfuser.dtypes import DataType
from tritonfuser.frontend.inspect.oracle import reference
from tritonfuser.heuristics.params import HeuristicParams
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.product_policy import ProductPolicy
from tritonfuser.lowering.run_options import RunOptions

H200 = known("sm_90")
BOTH = (H200, CPU)
Body = Callable[..., Any]

_SCALARS = {bool: DataType.Bool, int: DataType.Int, float: DataType.Double}


def small(multiprocessors: int) -> DeviceProperties:
    """An H200 cut down to a few multiprocessors."""
    return replace(H200, sm_count=multiprocessors)


def record(body: Body, inputs: Sequence[Any]) -> FusionDefinition:
    """``body(fd, *values)`` recorded; what it returns is handed out."""
    with FusionDefinition() as fd:
        values = [
            fd.from_pytorch(given)
            if isinstance(given, torch.Tensor)
            else fd.define_scalar(dtype=_SCALARS[type(given)])
            for given in inputs
        ]
        results = body(fd, *values)
        if results is not None:
            for result in results if isinstance(results, tuple | list) else (results,):
                fd.add_output(result)
    return fd


def lowered(
    body: Body | FusionDefinition,
    inputs: Sequence[Any],
    facts: DeviceProperties = H200,
    params: Sequence[HeuristicParams] | None = None,
    two_steps: bool = True,
    products: ProductPolicy = ProductPolicy.AUTO,
    **changes: Any,
) -> Lowered:
    """The kernels for inputs like these.

    ``changes`` are made to the fields of the proposed params, where a scheduler has them.
    """
    fd = body if isinstance(body, FusionDefinition) else record(body, inputs)
    ir = fd.fusion.ir
    spec = signature(ir, inputs, torch.device("cpu"))
    options = _options(params, two_steps, products)
    found = lower(ir, spec, facts, options)
    if not changes:
        return found
    chosen = [changed(piece.params, changes) for piece in found.segmented.segments]
    return lower(ir, spec, facts, _options(chosen, two_steps, products))


def _options(
    params: Sequence[HeuristicParams] | None, two_steps: bool, products: ProductPolicy
) -> RunOptions:
    chosen = None if params is None else tuple(params)
    return RunOptions(params=chosen, two_steps=two_steps, products=products)


def changed(params: HeuristicParams, changes: dict[str, Any]) -> HeuristicParams:
    names = {field.name for field in fields(params)}
    return replace(params, **{key: value for key, value in changes.items() if key in names})


def schedulers(found: Lowered) -> list[str]:
    return [piece.scheduler for piece in found.segmented.segments]


def ops(found: Lowered) -> list[str]:
    """The ops of the fusion that was cut into segments."""
    return [node.op for node in found.segmented.fusion.nodes]


def texts(found: Lowered) -> list[str]:
    """The text of each kernel, each statement on one line."""
    return [in_one_line_each(source.text) for source in found.sources if source is not None]


def in_one_line_each(text: str) -> str:
    """A kernel's text whose long statements are not broken into lines."""
    found: list[str] = []
    parts: list[str] | None = None
    for line in text.splitlines():
        if parts is None and line.startswith("    ") and line.endswith("(") and "](" not in line:
            parts = []
            found.append(line)
        elif parts is not None and line.strip() == ")":
            found[-1] += " ".join(parts) + ")"
            parts = None
        elif parts is not None:
            parts.append(line.strip())
        else:
            found.append(line)
    return "\n".join(found) + "\n"


def planned(found: Lowered, inputs: Sequence[Any], facts: DeviceProperties = H200) -> ExecutionPlan:
    return make_plan(found, inputs, torch.device("cpu"), facts)


NARROW = replace(small(1), max_threads_per_sm=32)
"""A device that few elements fill."""

SLOW = replace(
    H200,
    sm_count=4,
    clock_hz=H200.clock_hz / 1000,
    bandwidth_bytes_per_s=H200.bandwidth_bytes_per_s / 30000,
    l2_bytes=H200.l2_bytes // 30000,
)
"""A device that small sizes keep busy as large ones do a GPU."""


@contextmanager
def poisoned() -> Iterator[None]:
    """New buffers start as nan, so that what no kernel writes shows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def framed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor amid nan, so that what is read beside it shows."""
    if not tensor.numel() or not tensor.is_floating_point():
        return tensor
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    buffer = torch.full((last + 65,), float("nan"), dtype=tensor.dtype)
    inside = tensor.as_strided((last + 1,), (1,), tensor.storage_offset())
    buffer[32 : last + 33] = inside
    return buffer.as_strided(tensor.shape, tensor.stride(), 32)


def check(
    body: Body,
    *inputs: Any,
    facts: DeviceProperties = H200,
    params: Sequence[HeuristicParams] | None = None,
    tolerance: float = 2e-5,
    **changes: Any,
) -> Lowered:
    """Lower, interpret, and compare the results with torch's, computed in float64."""
    given = [framed(x) if isinstance(x, torch.Tensor) else x for x in inputs]
    fd = record(body, given)
    wanted = reference(fd.fusion.ir, given)
    found = lowered(fd, given, facts, params, **changes)
    with poisoned():
        results = planned(found, given, facts).run(given)
    compare(results, wanted, tolerance)
    return found


def compare(
    results: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], tolerance: float = 2e-5
) -> None:
    assert len(results) == len(wanted)
    for result, expected in zip(results, wanted, strict=True):
        assert result.shape == expected.shape
        narrow = result.dtype in (torch.half, torch.bfloat16)
        near = 1e-2 if narrow else tolerance
        torch.testing.assert_close(
            result.to(expected.dtype), expected, atol=near, rtol=near, equal_nan=True
        )
