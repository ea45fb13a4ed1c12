"""Writes ``launch(...)``: the function of a kernel's module that runs it on tensors."""

from __future__ import annotations

import textwrap
from typing import Any

from ...dtypes import EIGHT_BIT_FLOATS, Category
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.size_text import atoms_in, computed
from ..device_lib.division_functions import inverse_of
from ..kernel_source import (
    Argument,
    ArrivalCounters,
    CooperativeWorkspace,
    InverseArg,
    KernelArg,
    SizeArg,
)
from ..register_room import max_registers
from ..segments.segment import Segment
from ..tile.nest import Nest
from .lines import Line
from .long_lines import WIDTH, signature

INVERSE = inverse_of.__name__
"""The function that ``launch`` calls for what a kernel divides with."""

_INDENTED: dict[str, Any] = {"initial_indent": " " * 8, "subsequent_indent": " " * 8}

_MEMORY: dict[type, tuple[str, str]] = {
    CooperativeWorkspace: (
        "workspace",
        "Where programs publish what they reduced; all of them run at a time.",
    ),
    ArrivalCounters: ("arrivals", "How many programs have done their part, by what they share."),
}
"""What memory a kernel needs for itself is called, and what it is for."""


def grid_of(nest: Nest) -> tuple[int, int, int]:
    """Programs along x, y, z."""
    counts = [count for _, count in nest.grid] + [1, 1]
    return counts[0], counts[1], counts[2]


def uses_torch(args: tuple[Argument, ...], body: list[Line]) -> bool:
    """Whether ``launch`` needs torch by name."""
    return (
        _makes_descriptors(body)
        or any(type(arg) in _MEMORY for arg in args)
        or any("torch." in _passed(arg) for arg in args)
    )


def launch_lines(
    name: str,
    programs: tuple[int, int, int],
    constants: tuple[tuple[str, int], ...],
    args: tuple[Argument, ...],
    segment: Segment,
    body: list[Line],
    env: ShapeEnv | None,
) -> list[str]:
    """The lines of ``def launch(tv0, tv1, size0):``.

    Parameters
    ----------
    name : str
        The kernel's name.
    programs : tuple of int
        The grid.
    constants : tuple of (str, int)
        The block sizes.
    args : tuple of Argument
        What the kernel takes.
    body : list of Line
        The kernel's lines.
    env : ShapeEnv, optional
        Of sizes that vary: ``launch`` takes those that the others are computed from.
    """
    grid = ", ".join(repr(count) for count in programs)
    given = [arg for arg in args if isinstance(arg, KernelArg)]
    symbols: list[str] = []
    lines: list[str] = []
    if env is not None:
        words = [a.name for a in args if isinstance(a, SizeArg)]
        words += [a.size for a in args if isinstance(a, InverseArg)]
        symbols, lines = computed(env, [*words, *(atom.name for atom in atoms_in(env, grid))])
        lines += _inverses(args)
    tensors = [_given(arg) for arg in given if arg.is_tensor]
    numbers = [*(arg.name for arg in given if not arg.is_tensor), *symbols]
    told = f"Run the kernel on tensors: {', '.join(tensors)}"
    told += f"; numbers: {', '.join(numbers)}." if numbers else "."
    call = [*map(_passed, args), *_options(constants, args, segment, body)]
    return [
        *signature("launch", [*map(_given, given), *symbols]),
        *textwrap.wrap(f'"""{told}"""', WIDTH, initial_indent="    ", subsequent_indent="    "),
        *_memory(args, body),
        *(f"    {line}" for line in lines),
        f"    {name}[({grid})](",
        *textwrap.wrap(", ".join(call), WIDTH, **_INDENTED),
        "    )",
    ]


def _inverses(args: tuple[Argument, ...]) -> list[str]:
    """The lines that compute the inverses and shifts of divisors (``inverse_of``)."""
    found = [arg for arg in args if isinstance(arg, InverseArg)]
    return [
        f"{inverse.name}, {shift.name} = {INVERSE}({inverse.size}, {inverse.dtype.info.bits})"
        for inverse, shift in zip(found[::2], found[1::2], strict=True)
    ]


def _given(arg: Argument) -> str:
    """The name of an argument in ``launch``."""
    return arg.name.removesuffix("_ptr") if arg.is_tensor else arg.name


def _passed(arg: Argument) -> str:
    """What is passed: kernels take floats of eight bits as bytes, complex numbers as pairs."""
    name = _given(arg)
    if not arg.is_tensor:
        return name
    if arg.dtype in EIGHT_BIT_FLOATS:
        return f"{name}.view(torch.uint8)"
    return f"torch.view_as_real({name})" if arg.dtype.info.category is Category.COMPLEX else name


def _memory(args: tuple[Argument, ...], body: list[Line]) -> list[str]:
    """The lines that make memory which the kernel has for itself."""
    lines: list[str] = []
    if _makes_descriptors(body):
        lines = [
            "    # Where Triton puts the descriptors.",
            "    triton.set_allocator(lambda n, *_: "
            'torch.empty(n, dtype=torch.int8, device="cuda"))',
        ]
    for memory in args:
        if isinstance(memory, CooperativeWorkspace | ArrivalCounters):
            device = next(f"{_given(a)}.device" for a in args if a.is_tensor)
            name, note = _MEMORY[type(memory)]
            lines += [f"    # {note}", f"    {name} = {memory.made.format(device)}"]
    return lines


def _options(
    blocks: tuple[tuple[str, int], ...],
    args: tuple[Argument, ...],
    segment: Segment,
    body: list[Line],
) -> list[str]:
    """The constants, and how Triton is to compile and launch the kernel."""
    constants = [f"{key}={value}" for key, value in blocks]
    params = segment.kernel_params
    options = [f"num_warps={params.num_warps}", f"num_stages={params.num_stages}"]
    options += ["launch_pdl=True"] if segment.follows else []
    if any(isinstance(a, CooperativeWorkspace) for a in args):
        options.append("launch_cooperative_grid=True")
    if limit := max_registers(segment):
        options.append(f"maxnreg={limit}")
    if any(line.asserts for line in body):
        options += ["debug=True", "sanitize_overflow=False"]
    return [*constants, *options]


def _makes_descriptors(body: list[Line]) -> bool:
    return any("tl.make_tensor_descriptor" in line.code for line in body)
