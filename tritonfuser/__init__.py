"""tritonfuser: nvFuser's fusion frontend, backed by Triton.

Record tensor operations in a ``FusionDefinition``, run them as few generated Triton kernels::

    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), dims=[1]))

    (out,) = fd.run([torch.randn(4, 8)])

Where to look
-------------
help(tritonfuser.FusionDefinition)
    Recording, running, and what can be asked of a definition.
help(tritonfuser.FusionDefinition.Operators)
    The ops; ``python -m tritonfuser ops [NAME]`` shows one.
tritonfuser.exports.GROUPS
    All names of this module, by topic.
python -m tritonfuser --help
    ``doctor`` says whether this machine is set up, ``explain`` what a definition becomes.
docs/
    ``options.md``, ``errors.md``, ``calls.md``, ``validation.md``, ``migration.md``.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from .exports import MODULES, ORIGINS

__all__ = [*ORIGINS, "multidevice"]


class _Name:
    """A name of this module, imported when it is used: what needs Triton takes its time."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __get__(self, package: ModuleType | None, owner: type) -> Any:
        if package is None:
            return self
        return getattr(import_module(f"{__name__}.{self.module}"), self.name)


class _Module:
    """A module of this package, imported when it is used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, package: ModuleType | None, owner: type) -> Any:
        return self if package is None else import_module(f"{__name__}.{self.name}")


class _Ops(_Name):
    """``ops``: those to record. Importing the folder of that name does not take its place."""

    def __set__(self, package: ModuleType, value: object) -> None:
        if not isinstance(value, ModuleType):
            raise AttributeError(f"{__name__}.ops cannot be set")


class _Package(ModuleType):
    """This module. Its names are on its class, so they complete, and ``help`` stays short."""


for _name, _origin in ORIGINS.items():
    setattr(_Package, _name, (_Ops if _name == "ops" else _Name)(_origin, _name))
for _name in MODULES:
    setattr(_Package, _name, _Module(_name))
sys.modules[__name__].__class__ = _Package
del _name, _origin

# Where Triton interprets, and kernels may be launched by their own text. Triton itself is not
# asked: to import it takes its time.
if os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "yes", "on", "y"):
    import_module(f"{__name__}.lowering.interpreter.exported").interpret_exported()
