"""Stands for ``nvfuser``, the first frontend (and ``nvfuser._C``): definitions in a FusionCache."""

from __future__ import annotations

import sys

from tritonfuser import *  # noqa: F403 - all of the names, by design
from tritonfuser import TensorView, Val
from tritonfuser import __all__ as _names

from ..frontend.nvfuser.fusion_cache import (
    FusionCache,
    compute_contiguity,
    disable_automatic_serialization,
    enable_automatic_serialization,
    serialize,
)
from ..frontend.nvfuser.legacy_definition import clone
from ..frontend.record.val import Vector
from .nvfuser_definition import FusionDefinition as FusionDefinition
from .nvfuser_direct import benchmark_utils, pytorch_utils
from .nvfuser_direct.nvfuser_direct_version import __version__ as __version__
from .nvfuser_direct.nvfuser_direct_version import version as version

Scalar = Val
Tensor = TensorView
_FusionDefinition = FusionDefinition
_C = sys.modules[__name__]

__all__ = [
    *_names,
    "FusionCache",
    "Scalar",
    "Tensor",
    "Vector",
    "benchmark_utils",
    "clone",
    "compute_contiguity",
    "disable_automatic_serialization",
    "enable_automatic_serialization",
    "pytorch_utils",
    "serialize",
]
