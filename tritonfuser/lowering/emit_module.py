"""Segment in, KernelSource out: a whole runnable module around the kernel's body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from ..dtypes import DataType
from ..errors import SourceLoc
from ..ir import Fusion, Value
from ..ops.builder import as_call
from ..ops.table import View
from ..shapes import INT32_LIMIT, Memory, index_dtype
from . import library
from .emit_kernel import KernelBody
from .emit_product import ProductBody
from .kernel import KernelArg, KernelSource
from .nests import Nest, ProductNest, nest_of
from .segments import Segment
from .writer import Line

Strides = Mapping[Value, tuple[int, ...]]

_LIBRARY = frozenset(n for n, f in vars(library).items() if type(f).__name__ == "JITFunction")


def emit(
    fusion: Fusion,
    segment: Segment,
    inputs: Strides,
    outputs: Strides,
    misaligned: frozenset[Value] = frozenset(),
) -> KernelSource:
    """The kernel of a segment.

    Parameters
    ----------
    inputs, outputs : mapping
        Strides of the buffers of what it loads and stores, in elements.
    misaligned : frozenset of Value
        Those that do not start at a multiple of 16 bytes.
    """
    nest = nest_of(segment)
    wide = _is_wide(nest, _memories(segment, inputs, outputs))
    if isinstance(nest, ProductNest):
        writer: KernelBody = ProductBody(fusion, segment, nest, inputs, outputs, wide, misaligned)
    else:
        writer = KernelBody(fusion, segment, nest, inputs, outputs, wide)
    body = writer.write()
    args = _args(segment)
    name = kernel_name(segment)
    params = segment.params
    text, lines = _module(name, segment, nest, args, body)
    return KernelSource(
        name=name,
        text=text,
        args=args,
        constants=nest.constants,
        grid=_grid(nest),
        num_warps=params.num_warps,
        num_stages=params.num_stages,
        lines=lines,
    )


def _is_wide(nest: Nest, memories: list[Memory]) -> bool:
    """Whether positions in a tensor, or along an axis of the kernel, need 64 bits."""
    longest = max(tile.axis.extent for tile in nest.tiles)
    return longest >= INT32_LIMIT or index_dtype(memories) is not DataType.Int32


def _memories(segment: Segment, inputs: Strides, outputs: Strides) -> list[Memory]:
    found = [Memory(v.tensor.sizes, inputs[v]) for v in segment.inputs if v.is_tensor]
    return found + [Memory(v.tensor.sizes, outputs[v]) for v in segment.outputs]


def _grid(nest: Nest) -> tuple[int, int, int]:
    counts = [count for _, count in nest.grid] + [1, 1]
    return counts[0], counts[1], counts[2]


def _args(segment: Segment) -> tuple[KernelArg, ...]:
    return tuple(
        KernelArg(f"{v.name}_ptr" if v.is_tensor else v.name, v, v.is_tensor)
        for v in (*segment.inputs, *segment.outputs)
    )


def kernel_name(segment: Segment) -> str:
    """``s0_inner_persistent_max_sub_exp_sum``: scheduler and the first few telling ops."""
    ops = [n.op for n in segment.nodes if not isinstance(as_call(n).op.form, View)]
    telling = list(dict.fromkeys(op for op in ops if op != "cast"))[:4]
    return "_".join([segment.name, segment.scheduler, *telling]).lower()


def _module(
    name: str, segment: Segment, nest: Nest, args: tuple[KernelArg, ...], body: list[Line]
) -> tuple[str, tuple[tuple[int, SourceLoc], ...]]:
    used = set(re.findall(r"[a-z_]\w*", "\n".join(line.text for line in body)))
    parameters = [*(a.name for a in args), *(f"{c}: tl.constexpr" for c, _ in nest.constants)]
    text = [f'"""{segment.scheduler}: {segment.reason}."""', ""]
    if _makes_descriptors(body):
        text.append("import torch")
    text += ["import triton", "import triton.language as tl"]
    if "libdevice" in used:
        text.append("from triton.language.extra import libdevice")
    helpers = sorted(used & _LIBRARY)
    if helpers:
        text += ["", f"from tritonfuser.lowering.library import {', '.join(helpers)}"]
    text += ["", "", "@triton.jit", *_signature(name, parameters)]
    lines: list[tuple[int, SourceLoc]] = []
    shown: SourceLoc | None = None
    for line in body:
        indent = "    " * (line.depth + 1)
        if line.loc is not None and line.loc != shown:
            shown = line.loc
            text.append(f"{indent}# {place_text(shown)}")
        text.append(indent + line.text)
        if line.loc is not None:
            lines.append((len(text), line.loc))
    text += ["", "", *_launch(name, nest, args, segment, body)]
    return "\n".join(text) + "\n", tuple(lines)


def _signature(name: str, parameters: list[str]) -> list[str]:
    """``def name(...):`` on one line, or one parameter a line where that is too long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= 100:
        return [line]
    return [f"def {name}(", *(f"    {p}," for p in parameters), "):"]


def place_text(loc: SourceLoc) -> str:
    """``model.py:12``: the file's last part with nothing but harmless characters in it."""
    file = re.sub(r"[^\w.<>-]", "_", PurePath(loc.file).name)
    return f"{file}:{loc.line}"


def _launch(
    name: str, nest: Nest, args: tuple[KernelArg, ...], segment: Segment, body: list[Line]
) -> list[str]:
    memory = []
    if _makes_descriptors(body):
        memory = [
            "    # Where Triton puts the descriptors.",
            "    triton.set_allocator(lambda n, *_: "
            'torch.empty(n, dtype=torch.int8, device="cuda"))',
        ]
    given = [a.name.removesuffix("_ptr") if a.is_tensor else a.name for a in args]
    constants = [f"{key}={value}" for key, value in nest.constants]
    options = [f"num_warps={segment.params.num_warps}", f"num_stages={segment.params.num_stages}"]
    grid = ", ".join(str(count) for count in _grid(nest))
    return [
        f"def launch({', '.join(given)}):",
        f'    """Run the kernel on tensors: {", ".join(given)}."""',
        *memory,
        f"    {name}[({grid})](",
        f"        {', '.join([*given, *constants, *options])}",
        "    )",
    ]


def _makes_descriptors(body: list[Line]) -> bool:
    return any("tl.make_tensor_descriptor" in line.text for line in body)
