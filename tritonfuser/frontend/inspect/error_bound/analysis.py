"""The error analysis of one run: a bound for each element of each output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....cache.keys.signature import signature
from ....dtypes import Category
from ....ir import Fusion, Output, Value
from ....lowering.passes.complex_split import IMAG, REAL, VIEW, HiddenInput
from ....lowering.passes.concretize import concretize
from ....lowering.passes.decompose import decompose
from ....lowering.passes.redundant_nodes import drop_dead
from ....lowering.passes.split_complex import split_complex
from ....lowering.passes.substitution import next_free
from ....ops.builder import GraphBuilder
from ..oracle import as_given, device_of
from .propagation import propagated


def bounds(fusion: Fusion, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """For each output, how far each element of a right run may be from the exact result.

    Composite ops and complex numbers are analysed as they are computed: in the ops that they are
    made of. inf stands for an element that may be anything.

    Parameters
    ----------
    fusion : Fusion
        As it was recorded; random ops have seeds.
    inputs : sequence
        Tensors and numbers, flat.
    """
    device = device_of(inputs)
    concrete = concretize(fusion, signature(fusion, inputs, device))
    real = _real_outputs(concrete)
    split = split_complex(drop_dead(decompose(real)))
    given = {
        value: x.to(device) if isinstance(x, torch.Tensor) else as_given(value, x)
        for value, x in zip(real.inputs, inputs, strict=True)
    }
    known = {v: x for v, x in given.items() if v.dtype.info.category is not Category.COMPLEX}
    known.update((part.value, _part(part, given[part.source])) for part in split.parts)
    with torch.device(device), torch.no_grad(), torch._C._DisableAutocast():
        found = iter(propagated(split.fusion, known))
        return [
            torch.hypot(next(found).bound, next(found).bound)
            if out.value.dtype.info.category is Category.COMPLEX
            else next(found).bound
            for out in concrete.outputs
        ]


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
