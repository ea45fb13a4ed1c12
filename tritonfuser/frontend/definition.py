"""``FusionDefinition``: records tensor operations, then runs them as fused kernels."""

from __future__ import annotations

from typing import Any

import torch

from .. import options
from ..dtypes import DataType, from_torch
from ..errors import ArgumentError, DefinitionError, ExecutionModeError, UnsupportedDeviceError
from .fusion import Fusion, FusionGuard
from .handles import TensorView, Val
from .inputs import CPU_TEXT, Inputs, flat
from .location import user_line
from .operators import Operators
from .printer import print_definition
from .recording import outside
from .repro import describe_inputs, repro_script
from .running import Runnable
from .unavailable import Unavailable
from .validation import Validated
from .version import __version__
