"""Stands for ``nvfuser``, the first frontend (and ``nvfuser._C``): definitions in a FusionCache."""

from __future__ import annotations

from tritonfuser import DataType, Fusion, TensorView, compute_tensor_descriptor
from tritonfuser import Val as Scalar

from ..frontend.legacy import FusionCache, LegacyFusionDefinition
from .nvfuser_direct import pytorch_utils
from .nvfuser_direct.definition import FusionDefinition as _FusionDefinition
from .nvfuser_direct.nvfuser_direct_version import __version__, version

Tensor = TensorView


class FusionDefinition(LegacyFusionDefinition, _FusionDefinition):
    __doc__ = _FusionDefinition.__doc__

    module = "nvfuser"


__all__ = [
    "DataType",
    "Fusion",
    "FusionCache",
    "FusionDefinition",
    "Scalar",
    "Tensor",
    "__version__",
    "compute_tensor_descriptor",
    "pytorch_utils",
    "version",
]
