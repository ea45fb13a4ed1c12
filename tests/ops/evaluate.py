"""Recording and brute-force evaluation of definitions, for the tests of the op table.

Views are evaluated by their index maps, one element at a time; all other ops by their oracle.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from tritonfuser.dtypes import DataType, from_torch
from tritonfuser.ir import Const, Dim, Fusion, Output, TensorType, Value
from tritonfuser.lowering.passes.concretize import ScalarSpec, TensorSpec, concretize
from tritonfuser.ops.builder import GraphBuilder, as_call
from tritonfuser.ops.table import View
from tritonfuser.shapes.index_map import Pull
from tritonfuser.symbolic.extents import symbol
from tritonfuser.symbolic.index_expr import Affine, Axis, Digit, digit
from tritonfuser.symbolic.loaded_index import LoadedIndex

Env = dict[str, int]


def add_tensor(
    builder: GraphBuilder,
    sizes: Sequence[int],
    dtype: DataType = DataType.Float,
    expanded: Sequence[int] = (),
) -> Value:
    """An input; a size of -1 is a symbol, the dims in ``expanded`` are stretched ones."""
    place = len(builder.inputs)
    dims = tuple(
        Dim(
            symbol(f"i{place}_{d}") if size < 0 else size,
            d in expanded,
        )
        for d, size in enumerate(sizes)
    )
    return builder.add_input(TensorType(dims, dtype, weak=not dims))


def inputs_for(
    builder: GraphBuilder, tensors: Sequence[torch.Tensor], dynamic: bool
) -> list[Value]:
    """An input for each tensor, of its sizes or of unknown ones; stride-0 dims are stretched."""
    return [
        add_tensor(
            builder,
            [-1] * t.dim() if dynamic else list(t.shape),
            from_torch(t.dtype),
            [d for d in range(t.dim()) if t.stride(d) == 0 and t.shape[d] > 1],
        )
        for t in tensors
    ]


def concrete(builder: GraphBuilder, results: Sequence[Value], feeds: Sequence[Any]) -> Fusion:
    """The recording at the sizes of ``feeds``: tensors, and numbers for scalar inputs."""
    fusion = Fusion(
        tuple(builder.inputs), tuple(builder.nodes), tuple(Output(value) for value in results)
    )
    signature = tuple(
        TensorSpec(tuple(f.shape), f.stride(), value.dtype)
        if isinstance(f, torch.Tensor)
        else ScalarSpec(value.dtype, f)
        for value, f in zip(fusion.inputs, feeds, strict=True)
    )
    return concretize(fusion, signature)


def run(
    builder: GraphBuilder, results: Sequence[Value], feeds: Sequence[Any]
) -> list[torch.Tensor]:
    """The results for these inputs, by brute force."""
    fusion = concrete(builder, results, feeds)
    known: dict[Value, Any] = dict(zip(fusion.inputs, feeds, strict=True))
    for node in fusion.nodes:
        form = as_call(node).op.form
        if isinstance(form, View):
            made: Any = (pulled(node, known),)
        else:
            made = by_oracle(node, known)
        for out, found in zip(node.outs, made, strict=True):
            known[out] = found
            if out.is_tensor:
                assert tuple(found.shape) == out.tensor.sizes, node
                assert found.dtype is out.dtype.info.torch, node
    return [known[o.value] for o in fusion.outputs]


def by_oracle(node: Any, known: dict[Value, Any]) -> tuple[Any, ...]:
    def operand(arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple(operand(item) for item in arg)
        return known[arg] if isinstance(arg, Value) else getattr(arg, "value", arg)

    call = as_call(node)
    found = call.op.oracle(*(operand(arg) for arg in node.args), **call.attrs)
    found = found if isinstance(found, tuple) else (found,)
    return tuple(f.to(o.dtype.info.torch) for f, o in zip(found, node.outs, strict=True))


def pulled(node: Any, known: dict[Value, Any]) -> torch.Tensor:
    """A view's result, element by element through its index map."""
    call, sizes = as_call(node), node.out.tensor.sizes
    axes = [Axis(f"d{d}", size) for d, size in enumerate(sizes)]
    pull = Pull(tuple(digit(a) for a in axes), lambda v, index, dim: digit(LoadedIndex((v, index))))
    sources = call.op.form.pull(call, pull)
    out = torch.empty(sizes, dtype=node.out.dtype.info.torch)
    for place in itertools.product(*(range(size) for size in sizes)):
        env = {axis.name: i for axis, i in zip(axes, place, strict=True)}
        out[place] = element(sources, env, known)
    return out


def element(sources: Sequence[Any], env: Env, known: dict[Value, Any]) -> Any:
    for source in sources:
        if not all(g.low <= value(g.expr, env, known) < g.high for g in source.guards):
            continue
        if source.operand is None:
            return 0
        if isinstance(source.operand, Const):
            return source.operand.value
        index = tuple(value(item, env, known) for item in source.index)
        found = known[source.operand]
        if not isinstance(found, torch.Tensor):
            return found
        assert all(0 <= i < n for i, n in zip(index, found.shape, strict=True)), (index, source)
        return found[index]
    raise AssertionError(f"no source holds at {env}")


def value(expr: Affine, env: Env, known: dict[Value, Any] | None = None) -> int:
    """An index expression at values of its axes."""
    return expr.const + sum(c * digit_value(d, env, known) for d, c in expr.terms)


def digit_value(item: Digit, env: Env, known: dict[Value, Any] | None) -> int:
    base = item.base
    if isinstance(base, Axis):
        number = env[base.name]
    elif isinstance(base, Affine):
        number = value(base, env, known)
    else:
        number = loaded(base.key, env, known)
    number //= item.div
    return number if item.mod is None else number % item.mod


def loaded(key: Any, env: Env, known: dict[Value, Any] | None) -> int:
    if not isinstance(key, tuple):
        return env[key]
    operand, index = key
    assert known is not None
    found = known[operand]
    if not isinstance(found, torch.Tensor):
        return int(found)
    return int(found[tuple(value(item, env, known) for item in index)])
