"""Fusion with complex numbers in, an equal Fusion over pairs of reals out.

Kernels compute with real numbers only: each complex value becomes a real and an imaginary part, by
the rules in the op table. In memory a complex buffer is a real one with a last dim of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...dtypes import Category, DataType, real_dtype
from ...errors import TritonFuserError
from ...ir import (
    Arg,
    Const,
    Fusion,
    Node,
    Operand,
    Output,
    ScalarType,
    TensorType,
    Type,
    Value,
)
from ...ops.builder import GraphBuilder, OpNamespace, as_call, check_complex
from ...ops.complex.pairs import cast
from ...ops.complex.terms import Pair
from ...ops.forms import Pointwise
from ...ops.table import Call, View
from ...ops.typing_rules import operand_types
from ...symbolic.queries import assume_same_shape
from ..access.aliases import BufferView, buffer_strides, requested_order, resolve
from .complex_split import (
    IMAG,
    REAL,
    VIEW,
    ComplexSplit,
    HiddenInput,
    is_complex,
    real_view_type,
)
from .substitution import Substitution, next_free


def split_complex(fusion: Fusion) -> ComplexSplit:
    """Every complex value as two real ones.

    ``mul(x, y)`` -> ``sub(mul(x0, y0), mul(x1, y1))`` and ``add(mul(x0, y1), mul(x1, y0))``, with
    ``x0 = select(x_pairs, 0, -1)``.

    Raises
    ------
    DefinitionError
        An op has no rule for complex numbers.
    """
    values = [*fusion.inputs, *(v for n in fusion.nodes for v in (*n.outs, *_operands(n)))]
    if not any(map(is_complex, values)):
        return ComplexSplit(fusion)
    return _Splitter(fusion).run()


def _operands(node: Node) -> list[Operand]:
    items = (a if isinstance(a, tuple) else (a,) for a in node.args)
    return [item for group in items for item in group if item is not None]


class _Splitter:
    """Rewrites the nodes in order.

    Attributes
    ----------
    pairs : dict
        The parts of each complex value so far.
    joined : dict
        Complex value -> the real tensor with a last dim of two that holds it in memory.
    parts : list of HiddenInput
        The hidden inputs so far.
    """

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.builder = GraphBuilder(*next_free(fusion))
        self.ops = OpNamespace(self.builder)
        self.swap = Substitution()
        self.pairs: dict[Value, Pair] = {}
        self.joined: dict[Value, Value] = {}
        self.parts: list[HiddenInput] = []

    def run(self) -> ComplexSplit:
        for node in self.fusion.nodes:
            self.builder.loc = node.loc
            try:
                self._node(node)
            except TritonFuserError as error:
                raise error.located(node.loc) from error.__cause__
        outputs, results = self._outputs()
        inputs = (*self.fusion.inputs, *(part.value for part in self.parts))
        split = Fusion(inputs, tuple(self.builder.nodes), tuple(outputs))
        return ComplexSplit(split, tuple(self.parts), tuple(results))

    # -- nodes ---------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if not any(map(is_complex, (*_operands(node), *node.outs))):
            self.builder.nodes.append(self.swap.node(node))
            return
        call = as_call(node)
        check_complex(call)
        if isinstance(call.op.form, View):
            made: Any = self._view(call)
        else:
            assert call.op.complex is not None, f"{node.op} is there to be decomposed first"
            made = call.op.complex(self.ops, *self._given(call), **call.attrs)
        results = made if isinstance(made, tuple) else (made,)
        for out, result in zip(node.outs, results, strict=True):
            self._define(out, result)

    def _view(self, call: Call) -> Pair:
        """A view op applied to the real and to the imaginary parts."""

        def part(choose: Callable[[Pair], Any]) -> Any:
            args = tuple(self._mapped(arg, choose) for arg in call.args)
            return self.builder.append(replace(call, args=args))

        return Pair(part(lambda pair: pair.re), part(lambda pair: pair.im))

    def _mapped(self, arg: Arg, choose: Callable[[Pair], Any]) -> Any:
        if isinstance(arg, tuple):
            return tuple(self._mapped(item, choose) for item in arg)
        found = self._operand(arg)
        return choose(found) if isinstance(found, Pair) else found

    def _given(self, call: Call) -> list[Any]:
        """The operands for a rule, cast as the typing rule says for pointwise ops."""
        operands = [
            self.swap.arg(arg) if isinstance(arg, tuple) else self._operand(arg)
            for arg in call.args
        ]
        if not isinstance(call.op.form, Pointwise):
            return operands
        present = [arg for arg in call.args if arg is not None]
        targets = iter(call.op.form.typing(operand_types(present)).operands)
        return [None if x is None else self._as(x, next(targets)) for x in operands]

    def _as(self, x: Any, dtype: DataType) -> Any:
        """An operand cast; real ones that stay real are cast by their op."""
        if isinstance(x, Pair) or dtype.info.category is Category.COMPLEX:
            return cast(self.ops, x, dtype)
        return x

    def _operand(self, arg: Arg) -> Any:
        """A complex operand as a pair, a real one as it is substituted."""
        if arg is None or isinstance(arg, tuple) or not is_complex(arg):
            return None if arg is None else self.swap.arg(arg)
        if isinstance(arg, Const):
            number, kind = complex(arg.value), real_dtype(arg.dtype)
            return Pair(Const(number.real, kind), Const(number.imag, kind))
        if arg not in self.pairs:
            self.pairs[arg] = self._input(arg)
        return self.pairs[arg]

    # -- inputs --------------------------------------------------------------

    def _input(self, value: Value) -> Pair:
        """Both parts of a complex input: elements 0 and 1 of the last dim of its memory."""
        if isinstance(value.type, ScalarType):
            kind = ScalarType(real_dtype(value.dtype))
            return Pair(self._part(value, kind, REAL), self._part(value, kind, IMAG))
        type_ = value.tensor
        pairs = self._part(value, real_view_type(type_, buffer_strides(self.fusion, value)), VIEW)
        return Pair(*(self.ops.select(pairs, place, type_.rank) for place in (0, 1)))

    def _part(self, source: Value, type_: Type, how: str) -> Value:
        value = self.builder.new_value(type_)
        self.parts.append(HiddenInput(value, source, how))
        return value

    # -- results -------------------------------------------------------------

    def _define(self, out: Value, result: Any) -> None:
        """Record the parts, or the real replacement, of a result."""
        if not is_complex(out):
            self.swap.set(out, self._fit(result, out.type))
            return
        if not isinstance(result, Pair):
            result = Pair(result, Const(0.0, real_dtype(out.dtype)))
        self.pairs[out] = Pair(self._fit(result.re, out.type), self._fit(result.im, out.type))

    def _fit(self, x: Any, type_: Type) -> Any:
        """A part cast to the value's real dtype and expanded to its shape."""
        dtype = real_dtype(type_.dtype)
        x = x if isinstance(x, Value | Const) else Const.of(x)
        if x.dtype is not dtype:
            x = self.ops.cast(x, dtype)
        if not isinstance(type_, TensorType):
            return x
        if not (isinstance(x, Value) and x.is_tensor):
            held = [
                1 if dim.expanded else n for dim, n in zip(type_.dims, type_.sizes, strict=True)
            ]
            x = self.ops.full(held, x, dtype)
        whole = assume_same_shape(x.tensor.sizes, type_.sizes)
        return x if whole else self.ops.expand(x, list(type_.sizes))

    def _outputs(self) -> tuple[list[Output], list[BufferView | None]]:
        """The outputs of the real fusion: for a complex one, the real buffer that it lies in."""
        places = resolve(self.fusion, [output.value for output in self.fusion.outputs])
        outputs: list[Output] = []
        results: list[BufferView | None] = []
        for output, place in zip(self.fusion.outputs, places, strict=True):
            if not is_complex(output.value):
                outputs.append(self.swap.output(output))
                results.append(None)
                continue
            root, given = place.root, place.root in self.fusion.inputs
            outputs.append(replace(output, value=root if given else self._in_memory(root)))
            results.append(replace(place, pairs=not given))
        return outputs, results

    def _in_memory(self, value: Value) -> Value:
        """A complex value as a real tensor with a last dim of two, in the requested order."""
        if value not in self.joined:
            pair, node = self.pairs[value], self.fusion.producers[value]
            self.builder.loc = node.loc
            new = [False] * value.tensor.rank + [True]
            whole = self.ops.cat(
                [self.ops.broadcast(part, new) for part in (pair.re, pair.im)], value.tensor.rank
            )
            order = requested_order(as_call(node))
            if order:
                whole = self.ops.stride_order(whole, [*(place + 1 for place in order), 0])
            self.joined[value] = whole
        return self.joined[value]
