"""nvFuser's module paths and names for the classes of tritonfuser; without logic of their own.

``tritonfuser.compat.nvfuser_direct`` stands for ``nvfuser_direct``, ``tritonfuser.compat.nvfuser``
for the first frontend. ``install()`` makes ``import nvfuser_direct`` and ``import nvfuser`` find
them.
"""

from __future__ import annotations

import sys

from .. import multidevice
from . import nvfuser, nvfuser_direct
from .nvfuser_direct import benchmark_utils, nvfuser_direct_version, pytorch_utils

_MODULES = {
    "nvfuser_direct": nvfuser_direct,
    "nvfuser_direct._C_DIRECT": nvfuser_direct,
    "nvfuser_direct.multidevice": multidevice,
    "nvfuser_direct.pytorch_utils": pytorch_utils,
    "nvfuser_direct.benchmark_utils": benchmark_utils,
    "nvfuser_direct.nvfuser_direct_version": nvfuser_direct_version,
    "nvfuser": nvfuser,
    "nvfuser._C": nvfuser,
    "nvfuser.pytorch_utils": pytorch_utils,
}


def install() -> None:
    """Let ``import nvfuser_direct`` and ``import nvfuser`` find the modules of this package.

    Raises
    ------
    ImportError
        NVIDIA's package is imported already.
    """
    for name, module in _MODULES.items():
        if sys.modules.get(name, module) is not module:
            raise ImportError(f"{name} is imported already; call install() before that")
    sys.modules.update(_MODULES)


def uninstall() -> None:
    """Undo ``install``."""
    for name, module in _MODULES.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
