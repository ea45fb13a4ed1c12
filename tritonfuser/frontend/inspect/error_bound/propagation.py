"""The bounds of all values of a fusion, op by op in order, by the lowering form of each op."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ....dtypes import DataType, compute_dtype
from ....ir import Arg, Const, Fusion, Node, Value
from ....lowering.passes.arithmetic.reduced_precision import rounded_to_half
from ....ops.builder import as_call
from ....ops.forms import Factory, Materialize, Moments, Pointwise, Random, Reduction, Scan
from ....ops.parameters import Kind
from ....ops.pointwise.constructors import as_tensor
from ....ops.table import Call, Library, Scatter, View
from ....ops.typing_rules import operand_types
from ..oracle import last_uses
from .bounded import WithErrorBound, exact, is_arithmetic, stored
from .moved import drawn, made, moved, scattered
from .pointwise import applied, as_operand
from .products import product, tried
from .sums import chosen, moments, multiplied, summed


def propagated(
    fusion: Fusion, inputs: dict[Value, Any], overflows: bool = True
) -> list[WithErrorBound]:
    """The outputs of a fusion of real numbers with their bounds.

    Parameters
    ----------
    fusion : Fusion
        Concrete, without composite ops.
    inputs : dict
        Tensors and numbers; inputs that no op reads may be missing.
    overflows : bool
        False: what overflows in Float alone goes on as in Double.
    """
    walk = _Walk(rounded_to_half(fusion), overflows)
    for value, given in inputs.items():
        walk.known[value] = _given(value, given)
    last = last_uses(fusion)
    for node in fusion.nodes:
        if any(out in last for out in node.outs):
            walk.run(node)
            for value in {*node.operands(), *node.outs}:
                if last.get(value) is node or value not in last:
                    walk.known.pop(value, None)
    return [walk.known[out.value] for out in fusion.outputs]


def _given(value: Value, given: Any) -> WithErrorBound:
    return exact(as_tensor(given), value.dtype)


class _Walk:
    """What is known so far; ``narrow`` are the values that only results of 16 bits depend on."""

    def __init__(self, narrow: frozenset[Value], overflows: bool) -> None:
        self.narrow = narrow
        self.overflows = overflows
        self.known: dict[Value, WithErrorBound] = {}

    def run(self, node: Node) -> None:
        call = as_call(node)
        results = _RULES[type(call.op.form)](self, node, call)
        for out, found in zip(node.outs, results, strict=True):
            self.known[out] = stored(found, self.computed(out.dtype), self.dtype(out.dtype))

    def dtype(self, dtype: DataType) -> DataType:
        """The dtype that stands for ``dtype``: Double for Float where nothing is to overflow."""
        return DataType.Double if dtype is DataType.Float and not self.overflows else dtype

    def computed(self, dtype: DataType) -> DataType:
        """What results of a dtype are computed in."""
        return self.dtype(compute_dtype(dtype))

    def operands(self, call: Call) -> list[Any]:
        """Tensors and numbers with their bounds, tuples of them, None, and ints for extents."""
        kinds = [param.kind for param in call.op.params if param.kind.is_operand]
        return [self._operand(arg, kind) for arg, kind in zip(call.args, kinds, strict=True)]

    def _operand(self, arg: Arg, kind: Kind) -> Any:
        if isinstance(arg, tuple):
            one = Kind.EXTENT if kind is Kind.EXTENTS else Kind.TENSOR
            return tuple(self._operand(item, one) for item in arg)
        if arg is None or isinstance(arg, Value):
            return None if arg is None else self.known[arg]
        assert not isinstance(arg.value, complex)
        return int(arg.value) if kind is Kind.EXTENT else _number(arg)

    # -- rules ---------------------------------------------------------------

    def pointwise(self, node: Node, call: Call) -> list[WithErrorBound]:
        form = call.op.form
        assert isinstance(form, Pointwise)
        typing = form.typing(operand_types([arg for arg in call.args if arg is not None]))
        targets = map(self.dtype, typing.operands)
        operands = [
            None if x is None else as_operand(x, next(targets)) for x in self.operands(call)
        ]
        accuracy = form.accuracy
        if node.out not in self.narrow or typing.computed is not DataType.Float:
            accuracy = replace(accuracy, coarse=0.0, coarse_floor=0.0)
        attrs = {key: _wide(attr) for key, attr in call.attrs.items()}

        def function(*given: torch.Tensor | None) -> torch.Tensor:
            if accuracy.of_dtype:
                given = tuple(None if x is None else x.to(own) for x in given)
            found = call.oracle(*given, **attrs)
            assert isinstance(found, torch.Tensor)
            return found.double() if accuracy.of_dtype else found

        own = typing.computed.info.torch
        computed = self.dtype(typing.computed)
        found = applied(function, operands, computed, accuracy)
        return [stored(found, computed, self.dtype(node.out.dtype))]

    def reduction(self, node: Node, call: Call) -> list[WithErrorBound]:
        form, (given, *_) = call.op.form, self.operands(call)
        assert isinstance(form, Reduction | Scan)

        def along(x: torch.Tensor) -> torch.Tensor:
            found = call.op.oracle(x, **call.attrs)
            assert isinstance(found, torch.Tensor)
            return found

        if not is_arithmetic(node.out.dtype):
            return [_whole(call, given, along(given.center))]
        joined = _count(call, given.center, node.out)
        if form.identity in ("lowest", "highest"):
            return [chosen(given, along, self.computed(node.out.dtype))]
        rule = summed if form.identity == "zero" else multiplied
        return [rule(given, along, joined, self.computed(node.out.dtype))]

    def moments(self, node: Node, call: Call) -> list[WithErrorBound]:
        (given,) = self.operands(call)
        count = math.prod(given.center.shape[d] for d in call.dims())
        return moments(given, call.dims(), count, self.dtype(node.out.dtype))

    def view(self, node: Node, call: Call) -> list[WithErrorBound]:
        form = call.op.form
        assert isinstance(form, View | Scatter)
        rule = scattered if isinstance(form, Scatter) else moved
        return [rule(call, self.operands(call), form.indices)]

    def factory(self, node: Node, call: Call) -> list[WithErrorBound]:
        form = call.op.form
        assert isinstance(form, Factory)
        return [made(call, self.operands(call), form)]

    def random(self, node: Node, call: Call) -> list[WithErrorBound]:
        form = call.op.form
        assert isinstance(form, Random)
        return [drawn(call, self.operands(call), form)]

    def materialize(self, node: Node, call: Call) -> list[WithErrorBound]:
        return [self.operands(call)[0]]

    def library(self, node: Node, call: Call) -> list[WithErrorBound]:
        form = call.op.form
        assert isinstance(form, Library)
        operands = self.operands(call)
        if form.product is not None:
            return [product(call, operands, node.out.dtype)]
        pairs = list(zip(call.args, operands, strict=True))
        plain = [_unbounded(arg, x) for arg, x in pairs]
        return tried(call, node, plain, [_narrow(arg, x) for arg, x in pairs])


_RULES: dict[type, Callable[[_Walk, Node, Call], list[WithErrorBound]]] = {
    Pointwise: _Walk.pointwise,
    Reduction: _Walk.reduction,
    Scan: _Walk.reduction,
    Moments: _Walk.moments,
    View: _Walk.view,
    Scatter: _Walk.view,
    Factory: _Walk.factory,
    Random: _Walk.random,
    Materialize: _Walk.materialize,
    Library: _Walk.library,
}


def _number(const: Const) -> WithErrorBound:
    return exact(
        as_tensor(const.value), DataType.Double if isinstance(const.value, float) else const.dtype
    )


def _wide(attr: Any) -> Any:
    """A cast to any float is one to float64; its rounding comes when the result is stored."""
    return DataType.Double if isinstance(attr, DataType) and is_arithmetic(attr) else attr


def _whole(call: Call, given: WithErrorBound, center: torch.Tensor) -> WithErrorBound:
    """Integers and Bools, joined: one that is undecided makes the result undecided."""
    dims = call.dims() if isinstance(call.op.form, Reduction) else None
    if dims is not None:
        bound = given.bound.sum(dims)
    else:
        bound = given.bound.cumsum(_dim(call))
    return WithErrorBound(center, torch.zeros_like(bound).masked_fill(bound > 0, math.inf))


def _dim(call: Call) -> int:
    dim = call.attrs["dim"]
    assert isinstance(dim, int)
    return dim


def _count(call: Call, x: torch.Tensor, out: Value) -> int:
    """How many elements are joined into one at most."""
    if isinstance(call.op.form, Scan):
        return x.shape[_dim(call)]
    return math.prod(x.shape[d] for d in call.dims())


def _unbounded(arg: Arg, operand: Any) -> Any:
    """Scalars as Python numbers."""
    is_scalar = isinstance(arg, Const) or (isinstance(arg, Value) and not arg.is_tensor)
    return operand.center.item() if is_scalar and isinstance(operand, WithErrorBound) else operand


def _narrow(arg: Arg, operand: Any) -> Any:
    """An operand in its own dtype."""
    if isinstance(arg, tuple):
        return tuple(_narrow(a, x) for a, x in zip(arg, operand, strict=True))
    if isinstance(arg, Value) and arg.is_tensor:
        return operand.center.to(arg.dtype.info.torch)
    return _unbounded(arg, operand)
