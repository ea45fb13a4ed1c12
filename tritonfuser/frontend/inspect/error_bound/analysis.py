"""The error analysis of one run: a bound for each element of each output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ....cache.keys.signature import signature
from ....dtypes import Category
from ....ir import Fusion, Output, Value
from ....lowering.passes.complex_split import IMAG, REAL, VIEW, HiddenInput
from ....lowering.passes.concretize import concretize
from ....lowering.passes.decompose import decompose
from ....lowering.passes.redundant_nodes import eliminate_dead_code
from ....lowering.passes.split_complex import split_complex
from ....lowering.passes.substitution import next_free
from ....ops.builder import GraphBuilder
from ..oracle import as_given, device_of
from .bounded import WithErrorBound, distance
from .propagation import propagated

COMPARED = (torch.float64, torch.complex128, torch.int64, torch.int32, torch.bool)
"""What numbers are analysed in that steps of ops may change."""


def bounds(
    fusion: Fusion, inputs: Sequence[Any], outputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """For each output, how far each element of a right run may be from the exact result.

    Composite ops and complex numbers are analysed as they are computed: in the ops that they are
    made of. inf stands for an element that may be anything.

    Parameters
    ----------
    fusion : Fusion
        As it was recorded; random ops have seeds.
    inputs : sequence
        Tensors and numbers, flat.
    outputs : sequence of Tensor
        The exact results.
    """
    device = device_of(inputs)
    concrete = concretize(fusion, signature(fusion, inputs, device), folds=False)
    real = _real_outputs(concrete)
    split = split_complex(eliminate_dead_code(decompose(real)))
    given = {
        value: x.to(device) if isinstance(x, torch.Tensor) else as_given(value, x)
        for value, x in zip(real.inputs, inputs, strict=True)
    }
    known = {v: x for v, x in given.items() if v.dtype.info.category is not Category.COMPLEX}
    known.update((part.value, _part(part, given[part.source])) for part in split.parts)
    with torch.device(device), torch.no_grad(), torch._C._DisableAutocast():
        found = _joined(concrete, propagated(split.fusion, known))
        off = [_differs(*pair) for pair in zip(found, outputs, strict=True)]
        if not any(bool(where.any()) for where in off):
            return [result.bound for result in found]
        # A step of an op may have overflowed where the op does not. Of another difference nothing
        # is said here: a run is wrong then.
        endless = _joined(concrete, propagated(split.fusion, known, overflows=False))
        return [
            one.bound.masked_fill(where & (distance(one.center, other.center) > 0), math.inf)
            for one, other, where in zip(found, endless, off, strict=True)
        ]


def _joined(fusion: Fusion, parts: Sequence[WithErrorBound]) -> list[WithErrorBound]:
    """The outputs of a fusion, of the parts of complex ones."""
    left = iter(parts)
    return [
        _complex(next(left), next(left))
        if out.value.dtype.info.category is Category.COMPLEX
        else next(left)
        for out in fusion.outputs
    ]


def _complex(real: WithErrorBound, imag: WithErrorBound) -> WithErrorBound:
    center = torch.complex(real.center.double(), imag.center.double())
    return WithErrorBound(center, torch.hypot(real.bound, imag.bound))


def _differs(found: WithErrorBound, wanted: torch.Tensor) -> torch.Tensor:
    """Where what is computed in steps is another number than the exact result."""
    if found.center.dtype not in COMPARED:
        return torch.zeros_like(found.bound, dtype=torch.bool)
    return distance(found.center, wanted.to(found.bound.device)) > found.bound


def _real_outputs(fusion: Fusion) -> Fusion:
    """The fusion with both parts of each complex output in its place."""
    builder = GraphBuilder(*next_free(fusion))
    outputs: list[Output] = []
    for out in fusion.outputs:
        made: list[Value] = [out.value]
        if out.value.dtype.info.category is Category.COMPLEX:
            made = [builder.call(name, out.value) for name in ("real", "imag")]
        outputs += [Output(value) for value in made]
    return Fusion(fusion.inputs, (*fusion.nodes, *builder.nodes), tuple(outputs))


def _part(part: HiddenInput, given: Any) -> Any:
    """The real input that stands for a complex one."""
    if part.how == VIEW:
        return torch.view_as_real(given.resolve_conj())
    return {REAL: complex(given).real, IMAG: complex(given).imag}[part.how]
