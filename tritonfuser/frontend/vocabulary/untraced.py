"""Functions that torch.compile calls and does not trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])

_REASON = "a tritonfuser definition launches kernels of its own"
_frames: Any = torch._C._dynamo.eval_frame


def untraced(function: Function) -> Function:
    """Have torch.compile end its graph before a call of the function, and run it as it is.

    ``torch.compiler.disable`` does the same with a wrapper, which costs every call some hundred
    nanoseconds; this marks the function and its code. The function is returned.
    """
    marked: Any = function
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = _REASON
    skip = _frames._FrameAction.SKIP
    # The second is for the frames below it.
    _frames.set_code_exec_strategy(marked.__code__, _frames._FrameExecStrategy(skip, skip))
    return function
