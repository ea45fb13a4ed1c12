"""nvFuser's FusionDefinition: ours, with its names and its rules for CPU tensors."""

from __future__ import annotations

import torch

from ...frontend import definition
from ...frontend.record.inputs import Inputs
from ...frontend.run.arguments import Params


class FusionDefinition(definition.FusionDefinition):
    __doc__ = definition.FusionDefinition.__doc__

    cuda_only = True
    namespace = "nvfuser_direct"

    execute = definition.FusionDefinition.run

    def manual_execute(
        self, inputs: Inputs, heuristic_params: Params | None = None
    ) -> list[torch.Tensor]:
        """Run as one kernel; see ``run_kernel``."""
        return self.run_kernel(inputs, heuristic_params)
