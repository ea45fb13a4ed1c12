"""The functions whose first run is timed: the cases of the suite, and a transformer block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tritonfuser import FusionDefinition

from ..cases import BY_NAME, Case, Inputs
from ..functions import write
from ..model import REAL, blocks

DTYPE = torch.bfloat16
DEFAULT = ("bias_gelu", "layernorm", "layernorm_bwd", "block")
"""One pointwise kernel; one reduction; a backward with weight gradients; several kernels."""


@dataclass(frozen=True)
class ColdCase:
    """A function to time: how to record it, and its inputs on the meta device."""

    name: str
    record: Callable[[], FusionDefinition]
    inputs: Callable[[], Inputs]

    def as_json(self, device: str) -> dict[str, Any]:
        """The case as JSON for a child process that need not import tritonfuser.

        ``text`` is the torch function, ``inputs`` are scalars or ``[shape, dtype]`` of tensors, and
        ``places`` are the indices of the inputs that the function takes.
        """
        function = write(self.record().fusion.ir, device)
        inputs = [
            [list(x.shape), str(x.dtype).removeprefix("torch.")]
            if isinstance(x, torch.Tensor)
            else x
            for x in self.inputs()
        ]
        given = {"inputs": inputs, "places": function.places}
        return {"case": self.name, "text": function.text, **given}


def _of_suite(case: Case) -> ColdCase:
    """A case of the suite at its second size; compile time hardly depends on the size."""
    size = case.sizes.bfloat16[1]
    given = partial(case.inputs, size, DTYPE, "meta")
    return ColdCase(case.name, partial(case.record, size, DTYPE), given)


def _block_inputs() -> Inputs:
    return [*blocks.make_inputs(REAL, 1, DTYPE, "meta")]


CASES = {
    **{name: _of_suite(case) for name, case in BY_NAME.items()},
    "block": ColdCase("block", partial(blocks.record, 1, dtype=DTYPE), _block_inputs),
}
