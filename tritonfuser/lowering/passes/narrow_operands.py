"""Fusion in, an equal Fusion that moves and orders elements in the narrowest dtype out.

``topk(cast(x: BFloat16, Float))`` -> ``cast(topk(x), Float)``: half of the bytes are in memory, and
no kernel writes the cast. Likewise of a scatter, whose result then is as narrow as its operand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import isnan

import torch

from ...dtypes import Category, DataType, holds_int
from ...ir import Const, Fusion, Node, Operand, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.shape_rules import with_operands
from ...ops.table import Call, Library, Scatter, View
from .invariants.exact_dtypes import exact_dtype, narrowed, widened_source
from .substitution import next_free


def narrow_operands(fusion: Fusion) -> Fusion:
    """Give ops the operands that a lossless cast widened as they are before it, where no more
    kernels are needed for that."""
    if not any(any(_moved(as_call(node))) for node in fusion.nodes):
        return fusion
    builder = GraphBuilder(*next_free(fusion))
    makers: dict[Value, Node] = {}
    stored = _stored(fusion)
    for node in fusion.nodes:
        builder.loc = node.loc
        before = len(builder.nodes)
        dtype = _narrowest(node, makers)
        if dtype is None or _needs_kernels(node, makers, stored, fusion):
            builder.nodes.append(node)
        else:
            _record(node, dtype, makers, builder)
        makers.update((out, made) for made in builder.nodes[before:] for out in made.outs)
    nodes = tuple(builder.nodes)
    return fusion if nodes == fusion.nodes else replace(fusion, nodes=nodes)


def _moved(call: Call) -> Iterator[tuple[str, Operand]]:
    """The operands of a call whose elements its results are, or whose order they tell."""
    form = call.op.form
    if isinstance(form, Library | Scatter):
        yield from ((name, call.operand(name)) for name in form.moves)


def _tensors(call: Call) -> list[Value]:
    """The operands of ``_moved`` that are tensors."""
    return [o for _, o in _moved(call) if isinstance(o, Value) and o.is_tensor]


def _stored(fusion: Fusion) -> frozenset[Value]:
    """Values that are in memory in their own dtype: outputs, what library ops read, and what views
    of them are of."""
    found = {output.value for output in fusion.outputs}
    for node in reversed(fusion.nodes):
        form = as_call(node).op.form
        if isinstance(form, Library) or (isinstance(form, View) and node.out in found):
            found.update(node.operands())
    return frozenset(found)


def _narrowest(node: Node, makers: Mapping[Value, Node]) -> DataType | None:
    """A narrower dtype that holds all that a node moves; None where there is none."""
    call = as_call(node)
    tensors = _tensors(call)
    if not tensors:
        return None
    wide = tensors[0].dtype
    found = {exact_dtype(tensor, makers) for tensor in tensors}
    dtype = found.pop()
    if found or dtype is wide or dtype.info.category is not wide.info.category:
        return None
    numbers = (o for _, o in _moved(call) if o not in tensors)
    return dtype if all(_is_exact(number, dtype) for number in numbers) else None


def _needs_kernels(
    node: Node, makers: Mapping[Value, Node], stored: Collection[Value], fusion: Fusion
) -> bool:
    """Whether narrow operands need a kernel more: one that casts a result which is in memory, where
    none is saved that casts an operand; or one that stores elements that others view wide."""
    call = as_call(node)
    casts = any(out in stored for out in node.outs if out.dtype is _tensors(call)[0].dtype)
    for tensor in _tensors(call):
        source, views = widened_source(tensor, makers)
        is_read = isinstance(call.op.form, Library) and source in fusion.inputs
        if casts and not is_read:
            return True
        if len(fusion.consumers.get(tensor, ())) > 1 and not all(map(_is_alias, views)):
            return True
    return False


def _is_alias(view: Node) -> bool:
    """Whether a view needs no kernel."""
    form = as_call(view).op.form
    return isinstance(form, View) and form.alias is not None


def _is_exact(number: Operand, dtype: DataType) -> bool:
    """Whether a constant is a number of a dtype."""
    kind = dtype.info.torch
    if kind is None or not isinstance(number, Const) or isinstance(number.value, complex):
        return False
    if dtype.info.category is Category.INT:
        return isinstance(number.value, int) and holds_int(dtype, number.value)
    value = float(number.value)
    return isnan(value) or torch.tensor(value, dtype=torch.double).to(kind).item() == value


def _record(node: Node, dtype: DataType, makers: dict[Value, Node], builder: GraphBuilder) -> None:
    """Record a node of narrowed operands, whose results are cast to the dtypes that they had."""
    call = as_call(node)
    operands = {
        name: narrowed(operand, makers, builder)
        if isinstance(operand, Value)
        else Const(operand.value, dtype)
        for name, operand in _moved(call)
    }
    builder.append(with_operands(call, **operands))
    made = builder.nodes[-1]
    kept = [o if new.dtype is o.dtype else new for new, o in zip(made.outs, node.outs, strict=True)]
    builder.nodes[-1] = replace(made, outs=tuple(kept))
    for new, out in zip(kept, node.outs, strict=True):
        if new is not out:
            builder.call("cast", new, out.dtype)
            builder.nodes[-1] = replace(builder.nodes[-1], outs=(out,))
