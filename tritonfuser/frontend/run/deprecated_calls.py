"""nvFuser's names for ``run`` and ``run_kernel``, which warn once."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import torch

from ..record.inputs import Inputs
from .arguments import Device, Params
from .running import Runnable

_deprecated_used = False


def _warn_deprecated(old: str, new: str) -> None:
    """The one warning of this process, at the line that called the alias."""
    global _deprecated_used
    if _deprecated_used:
        return
    _deprecated_used = True
    quiet = alias(Runnable.run, Deprecated.execute)
    setattr(Deprecated, quiet.__name__, quiet)
    warnings.warn(
        f"FusionDefinition.{old} is nvFuser's name for FusionDefinition.{new}; "
        f"use {new}, or import tritonfuser.compat.nvfuser_direct",
        DeprecationWarning,
        stacklevel=3,
    )


def alias(function: Any, named: Any) -> Any:
    """``function`` under the name and docstring of ``named``, without a call in between."""
    copy = FunctionType(function.__code__, function.__globals__, named.__name__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(
        copy,
        named,
        assigned=("__module__", "__qualname__", "__doc__", "__annotations__"),
        updated=(),
    )


class Deprecated(Runnable):
    """A definition that also runs under nvFuser's names."""

    def execute(
        self,
        inputs: Inputs,
        *,
        params: Params | None = None,
        device: Device = None,
        save_repro_inputs: bool = False,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[torch.Tensor]:
        """Deprecated alias of ``run``, under nvFuser's name.

        Warns once a process. Programs that keep nvFuser's names import
        ``tritonfuser.compat.nvfuser_direct``, where they are the right ones.
        """
        _warn_deprecated("execute", "run")
        return self.run(
            inputs,
            params=params,
            device=device,
            save_repro_inputs=save_repro_inputs,
            _enable_options=_enable_options,
            _disable_options=_disable_options,
        )

    def manual_execute(
        self, inputs: Inputs, heuristic_params: Params | None = None
    ) -> list[torch.Tensor]:
        """Deprecated alias of ``run_kernel``, under nvFuser's name; see ``execute``."""
        if not _deprecated_used:
            _warn_deprecated("manual_execute", "run_kernel")
        return self.run_kernel(inputs, heuristic_params)
