"""The text of a kernel's module: imports, jitted functions, the kernel, ``launch``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from ...dtypes import DataType
from ...ir import Value
from ...symbolic.shape_env import ShapeEnv
from ..device_lib import functions
from ..kernel_source import Argument, ArrivalCounters, CooperativeWorkspace, InPlace, InverseArg
from ..segments.segment import Segment
from .expressions import triton_name
from .launch_text import INVERSE, launch_lines, uses_torch
from .line_passes import comments
from .lines import Line
from .long_lines import WIDTH, signature, wrapped
from .segment_function import SegmentFunction

# With TRITON_INTERPRET set, Triton makes the second kind of all that it decorates.
_JITTED = ("JITFunction", "InterpretedFunction")
_LIBRARY = frozenset(n for n, f in vars(functions).items() if type(f).__name__ in _JITTED)


@dataclass(frozen=True, kw_only=True)
class KernelContent:
    """What the text of a module is made of: the kernel, and the functions that it calls.

    Attributes
    ----------
    name : str
        The kernel.
    body : list of Line
        Its lines.
    constants : tuple of (str, int)
        Its block sizes, ``tl.constexpr`` parameters.
    grid : tuple of int
        Programs along x, y, z.
    helpers : tuple of SegmentFunction
        The functions that it calls, one for each further segment.
    narrow : frozenset of Value
        Tensors whose loads in ``body`` must not be vectorized.
    workspace : CooperativeWorkspace or None
        The memory in which its programs exchange results.
    arrivals : ArrivalCounters or None
        The counters by which its last programs are found.
    in_place : tuple of (Value, Value)
        Results that may be stored into an input: (result, input).
    """

    name: str
    body: list[Line]
    constants: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    helpers: tuple[SegmentFunction, ...] = ()
    narrow: frozenset[Value] = frozenset()
    workspace: CooperativeWorkspace | None = None
    arrivals: ArrivalCounters | None = None
    in_place: tuple[InPlace, ...] = ()


_SINGLE_LOAD = re.compile(r"= tl\.load\(\w+\)")
_COMPARISON = re.compile(r" (?:[<>]=?|[!=]=) ")


def module_text(
    content: KernelContent,
    segment: Segment,
    args: tuple[Argument, ...],
    env: ShapeEnv | None,
) -> tuple[str, list[tuple[int, Line]]]:
    """The text of a kernel's module.

    Returns
    -------
    (str, list of (int, Line))
        The text, and the lines of all bodies, each with the number of the first of its lines.
    """
    body = [*content.body, *(line for helper in content.helpers for line in helper.body)]
    title = textwrap.wrap(f'"""{segment.scheduler}: {segment.reason}."""', WIDTH)
    text = [*title, "", *_imports(args, body)]
    placed: list[tuple[int, Line]] = []
    for helper in content.helpers:
        parameters = [*helper.parameters, *(f"{c}: tl.constexpr" for c in helper.blocks)]
        _write(text, placed, signature(helper.name, parameters), helper.body)
    parameters = [*map(_parameter, args), *(f"{c}: tl.constexpr" for c, _ in content.constants)]
    _write(text, placed, signature(content.name, parameters), content.body)
    text += [
        "",
        "",
        *launch_lines(content.name, content.grid, content.constants, args, segment, body, env),
    ]
    return "\n".join(text) + "\n", placed


def _imports(args: tuple[Argument, ...], body: list[Line]) -> list[str]:
    """The imports of a module: torch, triton, and the functions of the device library."""
    used = set(re.findall(r"(?<![\w.])[a-z_]\w*", "\n".join(line.code for line in body)))
    text = ["import torch"] if uses_torch(args, body) else []
    text += ["import triton", "import triton.language as tl"]
    # libdevice comes from the device library, which has a replacement for the interpreter.
    divides = any(isinstance(arg, InverseArg) for arg in args)
    names = sorted(used & {*_LIBRARY, "libdevice"} | ({INVERSE} if divides else set()))
    if names:
        text += ["", *_imported("tritonfuser.lowering.device_lib.functions", names)]
    elif reason := _needs_package(args, body):
        text += ["", f"import tritonfuser  # noqa: F401  {reason} under TRITON_INTERPRET=1"]
    return text


def _write(
    text: list[str], placed: list[tuple[int, Line]], signature: list[str], body: Iterable[Line]
) -> None:
    """Append a jitted function to a text; ``placed`` takes the number of each line."""
    text += ["", "", "@triton.jit", *signature]
    lines = list(body)
    places = comments(lines)
    for number, line in enumerate(lines):
        indent = "    " * (line.depth + 1)
        if number in places:
            text.append(indent + places[number])
        placed.append((len(text) + 1, line))
        # Not by its message: where a line ends depends on nothing of a user's.
        text += [indent + line.text] if line.asserts else wrapped(indent + line.text)


def _needs_package(args: tuple[Argument, ...], body: list[Line]) -> str:
    """What Triton's own interpreter gets wrong without the package; empty for nothing.

    It truncates to bfloat16 and multiplies bits. What a comparison of two single numbers gives
    has their dtype there, and takes part in no ``&`` and ``|``.
    """
    stored = any(arg.dtype is DataType.BFloat16 for arg in args)
    if stored or any("tl.bfloat16" in line.code for line in body):
        return "bfloat16"
    loads = any(_SINGLE_LOAD.search(line.code) for line in body)
    compares = any(_COMPARISON.search(line.code) for line in body)
    return "comparisons of numbers" if loads and compares else ""


def _parameter(arg: Argument) -> str:
    """A parameter; of a number with its type, or Triton would choose one by the value."""
    return arg.name if arg.is_tensor else f"{arg.name}: {triton_name(arg.dtype)}"


def _imported(module: str, names: list[str]) -> list[str]:
    """``from module import ...`` on one line, or one name a line where that is too long."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]
