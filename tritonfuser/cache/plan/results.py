"""The results of a run: new buffers, views of buffers or of inputs, and inputs written to.

With ``out``, a kernel writes a result with a buffer of its own into the tensor given for it. Any
other result (a view of an input or of another result's buffer, what torch computes, an input
written to) is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch

from ...dtypes import complex_dtype
from ...ir import Output, Value
from ...lowering.access.aliases import BufferView, buffer_strides
from ...lowering.lowered import Lowered
from ...shapes.memory import Memory
from ...symbolic.queries import assume_equal, assume_sorted
from .view_text import ViewWriter


@dataclass(frozen=True)
class ResultLayout:
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
    layout : ResultLayout
        Its layout in memory.
    hidden : bool
        Whether it is written into ``target`` and not returned.
    target : Value or None
        The input that it is written into.
    statement : str
        The statement that writes it into ``target``, with ``{}`` for the tensor. Empty without a
        target.
    target_name : str
        The variable of ``target``, which is returned. Empty without a target.
    buffer : Value or None
        The buffer that a tensor given in ``out`` can replace.
    as_buffer : str
        Expression of that tensor as the buffer, with ``{}`` for the tensor.
    in_place : bool
        Whether a kernel has stored it into ``target`` already, where the variable ``is_apart`` is
        true.
    """

    view: str
    layout: ResultLayout
    hidden: bool
    target: Value | None = None
    statement: str = ""
    target_name: str = ""
    buffer: Value | None = None
    as_buffer: str = "{}"
    in_place: bool = False


def results_of(
    lowered: Lowered,
    views: ViewWriter,
    buffers: Collection[Value],
    on_gpu: bool,
    in_place: Collection[Value] = (),
) -> tuple[Result, ...]:
    """The outputs of a plan, in the order of the definition.

    Parameters
    ----------
    lowered : Lowered
        The definition.
    views : ViewWriter
        Writes outputs as expressions.
    buffers : collection of Value
        Values that the plan allocates.
    on_gpu : bool
        Whether the plan runs on a GPU.
    in_place : collection of Value
        Inputs that kernels may store a result into.
    """
    segmented = lowered.segmented
    outputs = segmented.fusion.outputs
    targets = _targets(lowered, views)
    kept = kept_views(lowered, views)
    replaceable = set(buffers)
    results: list[Result] = []
    for place, (output, view) in enumerate(zip(outputs, segmented.results, strict=True)):
        layout = _layout(lowered, output, view)
        if output.alias_of is not None:
            copies = on_gpu and output.alias_of.tensor.is_cpu
            result = _written_result(output, output.alias_of, view, layout, views, targets, copies)
            results.append(replace(result, in_place=output.alias_of in in_place))
            continue
        made = _kept_name(place) if place in kept else views.expression(view)
        result = Result(made, layout, output.hidden)
        if view.root in replaceable and not output.hidden:
            as_buffer = _as_buffer(view, segmented.layouts[view.root], views)
            if as_buffer is not None:
                replaceable.remove(view.root)  # two results cannot both provide the buffer
                result = replace(result, buffer=view.root, as_buffer=as_buffer)
        results.append(result)
    return tuple(results)


def kept_views(lowered: Lowered, views: ViewWriter) -> dict[int, str]:
    """The lines that make views of inputs that are returned, where a run writes into inputs.

    They are copies where they share memory with what is written, as where one tensor is given as
    two inputs. Plans begin with them, for a copy takes memory: nothing is written yet if there is
    none. An input that is returned as a whole stays the tensor that it is.

    Returns
    -------
    dict of int to str
        Place of the output -> line.
    """
    targets = _targets(lowered, views)
    pairs = zip(lowered.segmented.fusion.outputs, lowered.segmented.results, strict=True)
    return {
        place: f"{_kept_name(place)} = apart({views.for_torch(view)}, {targets})"
        for place, (output, view) in enumerate(pairs)
        if targets and output.alias_of is None and view.root in views.inputs
        if view != BufferView(view.root)
    }


def _kept_name(place: int) -> str:
    return f"kept{place}"


def _targets(lowered: Lowered, views: ViewWriter) -> str:
    """The variables of the inputs that outputs are written into, separated by commas."""
    replaced = (out.alias_of for out in lowered.segmented.fusion.outputs)
    return ", ".join(map(views.name, dict.fromkeys(v for v in replaced if v is not None)))


def _written_result(
    output: Output,
    target: Value,
    view: BufferView,
    layout: ResultLayout,
    views: ViewWriter,
    targets: str,
    to_cpu: bool,
) -> Result:
    """An output that is written into the input ``target``.

    Parameters
    ----------
    targets : str
        The variables of all inputs that the run writes, separated by commas. A view of another
        input is copied before, where it overlaps one of them.
    to_cpu : bool
        Whether the target is on the CPU and the run on a GPU.
    """
    made = views.expression(view)
    if view.root in views.inputs and view.root != target:
        made = f"apart({made}, {targets})"
    into = views.name(target)
    statement = f"to_cpu({into}, {{}})" if to_cpu else f"put({into}, {{}})"
    return Result(made, layout, output.hidden, target, statement, views.name(target))


def _layout(lowered: Lowered, output: Output, view: BufferView) -> ResultLayout:
    """The layout of an output; of one that is written into an input, the input's."""
    segmented = lowered.segmented
    if output.alias_of is not None:
        view = BufferView(output.alias_of)
    root = view.root
    strides = segmented.layouts.get(root) or buffer_strides(segmented.fusion, root)
    memory = Memory(root.tensor.sizes, strides)
    dtype = root.dtype
    if view.pairs:
        memory = Memory(memory.sizes[:-1], tuple(s // 2 for s in memory.strides[:-1]))
        dtype = complex_dtype(dtype)
    memory = memory if view.memory is None else view.memory
    on_cpu = root in segmented.fusion.inputs and root.tensor.is_cpu
    assert dtype.info.torch is not None
    return ResultLayout(memory.sizes, memory.strides, dtype.info.torch, on_cpu)


def _as_buffer(view: BufferView, strides: tuple[int, ...], views: ViewWriter) -> str | None:
    """The expression that turns a tensor laid out as ``view`` into the whole buffer of its root.

    None where the view does not have all elements of the buffer.

    Parameters
    ----------
    strides : tuple of int
        The strides of the buffer, in elements.
    """
    if view.memory is None:
        return "torch.view_as_real({})" if view.pairs else "{}"
    sizes = view.root.tensor.sizes
    whole = Memory(sizes, strides)
    same = _is_dense(view.memory) and _is_dense(whole) and assume_equal(view.memory.offset, 0)
    if view.pairs or not same or not assume_equal(prod(view.memory.sizes), prod(sizes)):
        return None
    return f"{{}}.as_strided({views.numbers(sizes)}, {views.numbers(strides)})"


def _is_dense(memory: Memory) -> bool:
    """Whether the elements are contiguous in some order of dims, and none overlap."""
    steps = zip(memory.strides, memory.sizes, strict=True)
    reach = 1
    for stride, size in assume_sorted(step for step in steps if not assume_equal(step[1], 1)):
        if not assume_equal(stride, reach):
            return False
        reach *= size
    return True


# --- as lines ------------------------------------------------------------------------------------


def return_lines(results: Sequence[Result]) -> list[str]:
    """The last lines of a run: results are written into inputs, and those not hidden returned."""
    made = [f"out{place} = {result.view}" for place, result in enumerate(results)]
    shown = [_returned(place, r) for place, r in enumerate(results) if not r.hidden]
    return [*made, *_written(results), f"return [{', '.join(shown)}]"]


def return_into_lines(
    results: Sequence[Result],
    lines: Sequence[str],
    buffers: Mapping[Value, int],
    given: Sequence[bool],
) -> tuple[list[str], list[str]]:
    """The lines of a run that writes returned results into the tensors ``o0``, ``o1``, ...

    Parameters
    ----------
    results : sequence of Result
        The outputs.
    lines : sequence of str
        The lines before the results.
    buffers : mapping of Value to int
        The index of the line that allocates each buffer.
    given : sequence of bool
        For each returned result, whether there is a tensor to write it into.

    Returns
    -------
    (list of str, list of str)
        The lines before the results, and those of the results.
    """
    changed = list(lines)
    made: list[str] = []
    copies: list[str] = []
    shown: list[str] = []
    for place, result in enumerate(results):
        own = f"o{len(shown)}"
        is_given = not result.hidden and given[len(shown)]
        if not result.hidden:
            shown.append(own if is_given else _returned(place, result))
        if is_given and result.buffer is not None:
            text = result.as_buffer.format(own)
            changed[buffers[result.buffer]] = f"{result.buffer.name} = {text}"
            continue
        made.append(f"out{place} = {result.view}")
        if is_given:
            copies.append(f"put({own}, {_returned(place, result)})")
    return changed, [*made, *_written(results), *copies, f"return [{', '.join(shown)}]"]


def _returned(place: int, result: Result) -> str:
    """The variable of the tensor that is returned for a result."""
    return result.target_name or f"out{place}"


def _written(results: Sequence[Result]) -> list[str]:
    """The lines that write results into inputs.

    They come after all ``out0 = ...``: two results may each be a view of the other's target.
    """
    copies = [(r, r.statement.format(f"out{p}")) for p, r in enumerate(results) if r.target]
    stored = [r.target_name for r, _ in copies if r.in_place]
    if not stored:
        return [line for _, line in copies]
    return [
        "if is_apart:",
        f"    increment_version(({', '.join(stored)},))",
        *(f"    {line}" for r, line in copies if not r.in_place),
        "else:",
        *(f"    {line}" for _, line in copies),
    ]
