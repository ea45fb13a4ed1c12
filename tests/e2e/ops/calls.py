"""Many calls of one op in one definition: recorded, run, and compared with the row's oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.e2e.checking import same_outline
from tests.e2e.ops.samples import Call
from tritonfuser import FusionDefinition
from tritonfuser.ops import registry

TOLERANCE = {
    torch.float64: 1e-13,
    torch.float32: 2e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
    torch.float8_e4m3fn: 0.13,
    torch.float8_e5m2: 0.26,
}
"""By how much a result of an op may be off, relative to it; half of it in absolute terms."""


@dataclass(frozen=True)
class Recorded:
    """A definition with the results of some calls as outputs, in order."""

    fd: FusionDefinition
    inputs: list[torch.Tensor]
    names: list[str]
    """One for each output: what the call is, and which result."""
    counts: list[int] = field(default_factory=list)
    """How many results each call handed back; None among them counts."""


def record(
    name: str, calls: Sequence[Call], after: Callable[[Any, Any], Any] | None = None
) -> Recorded:
    """All calls in one definition.

    Parameters
    ----------
    after : callable, optional
        ``(fd, result) -> result`` on each tensor operand before the call.
    """
    inputs: list[torch.Tensor] = []
    names: list[str] = []
    counts: list[int] = []
    with FusionDefinition() as fd:

        def handle(arg: Any) -> Any:
            if isinstance(arg, torch.Tensor):
                inputs.append(arg)
                found = fd.from_pytorch(arg)
                return found if after is None else after(fd, found)
            if isinstance(arg, list) and arg and isinstance(arg[0], torch.Tensor):
                return [handle(item) for item in arg]
            return arg

        for call in calls:
            made = getattr(fd.ops, name)(*(handle(a) for a in call.args), **call.kwargs)
            results = made if isinstance(made, tuple) else (made,)
            counts.append(len(results))
            for place, result in enumerate(results):
                if result is None:
                    continue
                fd.add_output(result)
                names.append(f"{name}, {call.what}, result {place}")
    return Recorded(fd, inputs, names, counts)


def run(recorded: Recorded) -> list[torch.Tensor]:
    """The outputs, on the CPU; the printed definition has to mean the same."""
    same_outline(recorded.fd)
    return [x.cpu() for x in recorded.fd.run(recorded.inputs)]


def reference(name: str, calls: Sequence[Call], double: bool) -> list[torch.Tensor]:
    """The oracle's results: of float64 operands, or of the operands as they are."""

    def given(arg: Any) -> Any:
        if isinstance(arg, list):
            return [given(item) for item in arg]
        if not isinstance(arg, torch.Tensor):
            return arg
        arg = arg.cpu()
        if not arg.is_floating_point():
            return arg
        # torch has few functions of floats of eight bits.
        return arg.double() if double else arg.float() if arg.itemsize == 1 else arg

    found: list[torch.Tensor] = []
    for call in calls:
        made = registry.get(name).oracle(*(given(a) for a in call.args), **call.kwargs)
        results = made if isinstance(made, tuple) else (made,)
        found.extend(result for result in results if result is not None)
    return found


def assert_close(
    found: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    recorded: Recorded,
    *,
    times: float = 1.0,
    signs: bool = True,
) -> None:
    """Outputs as the dtypes recorded, near the reference; the sign of zeros with ``signs``."""
    handles = recorded.fd.fusion.outputs()
    for name, handle, one, other in zip(recorded.names, handles, found, wanted, strict=True):
        dtype = handle.dtype().info.torch
        assert one.dtype is dtype, f"{name}: {one.dtype}, recorded as {dtype}"
        other = other.to(dtype)
        limit = times * TOLERANCE.get(dtype, 0.0)
        torch.testing.assert_close(
            one.double() if limit else one,
            other.double() if limit else other,
            rtol=limit,
            atol=limit / 2,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )
        if signs and dtype.is_floating_point:
            zero = (one == 0) & (other == 0)
            same = one[zero].float().signbit() == other[zero].float().signbit()
            assert bool(same.all()), f"{name}: 0.0 is not -0.0"
