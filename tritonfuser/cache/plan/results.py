"""The results of a run: new buffers, views of buffers or of inputs, and inputs written to.

With ``out``, a kernel writes a result with a buffer of its own into the tensor given for it. Any
other result (a view of an input or of another result's buffer, what torch computes, an input
written to) is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch

from ...dtypes import Category, complex_dtype
from ...ir import Output, Value
from ...lowering.access.aliases import BufferView, buffer_strides
from ...lowering.pipeline import Lowered
from ...shapes import Memory
from ...symbolic.queries import assume_equal, assume_sorted

_DIFFERENTIABLE = (Category.FLOAT, Category.COMPLEX)


@dataclass(frozen=True)
class Layout:
    """The layout of a result, which a tensor given for it must have."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    on_cpu: bool


@dataclass(frozen=True)
class Result:
    """An output of a plan.

    Attributes
    ----------
    view : str
        Python expression of the tensor, over the names of the body.
    layout : Layout
        Its layout in memory.
    hidden : bool
        Whether it is written into ``target`` and not returned.
    target : Value or None
        The input that it is written into.
    writing : str
        Statement that writes it into ``target``, with ``{}`` for the tensor; else empty.
    handed : str
        Name of the tensor that is returned where that is ``target``; else empty.
    buffer : Value or None
        The buffer that a tensor given in ``out`` can replace.
    as_buffer : str
        Expression of such a tensor as that buffer, with ``{}`` for the tensor.
    in_place : bool
        Whether a kernel has stored it into ``target`` where ``is_apart``.
    """

    view: str
    layout: Layout
    hidden: bool
    target: Value | None = None
    writing: str = ""
    handed: str = ""
    buffer: Value | None = None
    as_buffer: str = "{}"
    in_place: bool = False


def results_of(
    lowered: Lowered,
    buffers: Collection[Value],
    name: Callable[[Value], str],
    anywhere: Collection[Value],
    on_gpu: bool,
    numbers: Callable[[int | tuple[int, ...]], str],
    in_place: Collection[Value] = (),
) -> tuple[Result, ...]:
    """The outputs in order.

    Parameters
    ----------
    buffers : collection of Value
        Values that the plan allocates.
    name : callable
        The variable of a value.
    anywhere : collection of Value
        Tensors whose storage offset may differ from 0.
    on_gpu : bool
        Whether the plan runs on a GPU.
    numbers : callable
        Sizes as a Python expression.
    in_place : collection of Value
        Inputs that kernels may store a result into.
    """
    segmented = lowered.segmented
    given = segmented.fusion.given
    written = [out.alias_of for out in segmented.fusion.outputs if out.alias_of is not None]
    targets = ", ".join(map(name, dict.fromkeys(written)))
    taken: set[Value] = set()
    results: list[Result] = []
    for output, lies in zip(segmented.fusion.outputs, segmented.results, strict=True):
        # What is returned as it is given stays the tensor that it is.
        whole = lies.memory is None and not lies.pairs
        view = name(lies.root) if whole else view_text(lies, name, given, anywhere, numbers)
        layout = _layout(lowered, output, lies)
        target = output.alias_of
        if target is not None:
            own = name(target)
            into = _detached(target, own)
            if lies.root in given and lies.root != target:
                view = f"apart({view}, {targets})"
            copies = on_gpu and target.tensor.is_cpu
            writing = f"to_cpu({into}, {{}})" if copies else f"{into}.copy_({{}})"
            results.append(
                Result(
                    view,
                    layout,
                    output.hidden,
                    target,
                    writing,
                    own,
                    in_place=target in in_place,
                )
            )
            continue
        made = lies.root in buffers and lies.root not in taken and not output.hidden
        how = _as_buffer(lies, segmented.layouts[lies.root], numbers) if made else None
        if how is None:
            results.append(Result(view, layout, output.hidden))
            continue
        taken.add(lies.root)
        results.append(Result(view, layout, False, buffer=lies.root, as_buffer=how))
    return tuple(results)


def view_text(
    lies: BufferView,
    name: Callable[[Value], str],
    given: Collection[Value],
    anywhere: Collection[Value],
    numbers: Callable[[int | tuple[int, ...]], str],
) -> str:
    """A value in memory as an expression: a buffer, or a view of one.

    Parameters
    ----------
    given : collection of Value
        The inputs.
    name, anywhere, numbers
        As for ``results_of``.
    """
    own = name(lies.root)
    text = _detached(lies.root, own) if lies.root in given else own
    if lies.pairs:
        own = text = f"torch.view_as_complex({text})"
    if lies.memory is None:
        return text
    offset = numbers(lies.memory.offset)
    if lies.root in anywhere:
        offset = f"{own}.storage_offset() + {offset}"
    sizes, strides = numbers(lies.memory.sizes), numbers(lies.memory.strides)
    return f"{text}.as_strided({sizes}, {strides}, {offset})"


def _detached(value: Value, text: str) -> str:
    """The variable of an input for functions of torch, which are not to record a gradient."""
    return f"detached({text})" if value.dtype.info.category in _DIFFERENTIABLE else text


def _layout(lowered: Lowered, output: Output, lies: BufferView) -> Layout:
    segmented = lowered.segmented
    if output.alias_of is not None:
        lies = BufferView(output.alias_of)
    root = lies.root
    strides = segmented.layouts.get(root) or buffer_strides(segmented.fusion, root)
    memory = Memory(root.tensor.sizes, strides)
    dtype = root.dtype
    if lies.pairs:
        memory = Memory(memory.sizes[:-1], tuple(s // 2 for s in memory.strides[:-1]))
        dtype = complex_dtype(dtype)
    memory = memory if lies.memory is None else lies.memory
    on_cpu = root in segmented.fusion.inputs and root.tensor.is_cpu
    assert dtype.info.torch is not None
    return Layout(memory.sizes, memory.strides, dtype.info.torch, on_cpu)


def _as_buffer(
    lies: BufferView,
    strides: tuple[int, ...],
    numbers: Callable[[int | tuple[int, ...]], str],
) -> str | None:
    """How a tensor that lies as a result does is the whole buffer, if it is."""
    if lies.memory is None:
        return "torch.view_as_real({})" if lies.pairs else "{}"
    sizes = lies.root.tensor.sizes
    whole = Memory(sizes, strides)
    same = _is_dense(lies.memory) and _is_dense(whole) and assume_equal(lies.memory.offset, 0)
    if lies.pairs or not same or not assume_equal(prod(lies.memory.sizes), prod(sizes)):
        return None
    return f"{{}}.as_strided({numbers(sizes)}, {numbers(strides)})"


def _is_dense(memory: Memory) -> bool:
    """Whether its elements are neighbours, each in a place of its own."""
    steps = zip(memory.strides, memory.sizes, strict=True)
    reach = 1
    for stride, size in assume_sorted(step for step in steps if not assume_equal(step[1], 1)):
        if not assume_equal(stride, reach):
            return False
        reach *= size
    return True


# --- as lines ------------------------------------------------------------------------------------


def return_lines(results: Sequence[Result]) -> list[str]:
    """The last lines of a run: write the inputs that are written, return what is not hidden."""
    made = [f"out{place} = {result.view}" for place, result in enumerate(results)]
    shown = [_handed(place, r) for place, r in enumerate(results) if not r.hidden]
    return [*made, *_written(results), f"return [{', '.join(shown)}]"]


def return_into_lines(
    results: Sequence[Result],
    lines: Sequence[str],
    buffers: Mapping[Value, int],
    given: Sequence[bool],
) -> tuple[list[str], list[str]]:
    """The lines of a run, and the last ones, with results put into ``o0``, ``o1``, ...

    Parameters
    ----------
    given : sequence of bool
        For each result that is handed out whether there is a tensor to put it into.
    """
    changed = list(lines)
    made: list[str] = []
    copies: list[str] = []
    shown: list[str] = []
    for place, result in enumerate(results):
        own = f"o{len(shown)}"
        is_given = not result.hidden and given[len(shown)]
        if not result.hidden:
            shown.append(own if is_given else _handed(place, result))
        if is_given and result.buffer is not None:
            text = result.as_buffer.format(own)
            changed[buffers[result.buffer]] = f"{result.buffer.name} = {text}"
            continue
        made.append(f"out{place} = {result.view}")
        if is_given:
            copies.append(f"put({own}, {_handed(place, result)})")
    return changed, [*made, *_written(results), *copies, f"return [{', '.join(shown)}]"]


def _handed(place: int, result: Result) -> str:
    return result.handed or f"out{place}"


def _written(results: Sequence[Result]) -> list[str]:
    """All that is written is made before: inputs may be written crosswise."""
    copies = [(r, r.writing.format(f"out{p}")) for p, r in enumerate(results) if r.target]
    stored = [r.handed for r, _ in copies if r.in_place]
    if not stored:
        return [line for _, line in copies]
    return [
        "if is_apart:",
        f"    increment_version(({', '.join(stored)},))",
        *(f"    {line}" for r, line in copies if not r.in_place),
        "else:",
        *(f"    {line}" for _, line in copies),
    ]
