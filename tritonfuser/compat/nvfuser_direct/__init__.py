"""Stands for ``nvfuser_direct``: the same names, with nvFuser's rules for CPU tensors.

``execute`` and ``manual_execute`` are the right names here, and CPU tensors other than scalars
are refused unless ``NVF_CPU_AS_CUDA=1``.
"""

from __future__ import annotations

import sys

from tritonfuser import *  # noqa: F403 - all of the names, by design
from tritonfuser import __all__ as _names

from . import benchmark_utils, pytorch_utils
from .definition import FusionDefinition as FusionDefinition
from .nvfuser_direct_version import __version__ as __version__
from .nvfuser_direct_version import version as version

_C_DIRECT = sys.modules[__name__]

__all__ = [*_names, "benchmark_utils", "pytorch_utils"]
