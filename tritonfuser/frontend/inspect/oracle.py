"""The reference: a fusion run op by op by the torch functions of the op table.

In float64 it says what the numbers should be; in the fusion's own dtypes, what eager torch gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Union

import torch

from ...cache.keys.signature import signature
from ...dtypes import REDUCED_FLOATS, Category, DataType
from ...errors import IndexRangeError, TritonFuserError
from ...ir import Arg, Attr, Const, Fusion, Node, Number, ScalarType, Value
from ...lowering.passes.concretize import concretize
from ...lowering.passes.constant_folding import as_number
from ...ops import registry
from ...ops.builder import as_call
from ...ops.forms import Pointwise, Random, Scan
from ...ops.parameters import Kind, Param
from ...ops.pointwise.constructors import as_tensor
from ...ops.table import Op, Scatter, View
from ...ops.typing_rules import operand_types
from ..record.statements import HasFusion
from .tolerances import ValidationError

Result = Union[torch.Tensor, Number]

_DOUBLE = {
    **dict.fromkeys((DataType.Float, *REDUCED_FLOATS), DataType.Double),
    DataType.ComplexFloat: DataType.ComplexDouble,
}


def reference(
    fusion: Fusion | HasFusion, inputs: Sequence[Any], double: bool = True
) -> list[torch.Tensor]:
    """The outputs that a run should return, computed by torch; the inputs are left as they are.

    Parameters
    ----------
    fusion : Fusion
        The definition: ``fd.fusion``, or its IR.
    inputs : sequence
        Tensors and numbers, flat.
    double : bool
        True: floats are computed and returned in float64; what the fusion stores in half, bf16
        or fp8 is rounded to that on the way. False: every result has its own dtype.
    """
    ir = fusion if isinstance(fusion, Fusion) else fusion.ir
    evaluation = Evaluation(as_returned(ir), inputs, double)
    return [evaluation.outputs[place] for place, out in enumerate(ir.outputs) if not out.hidden]


def as_returned(fusion: Fusion) -> Fusion:
    """The fusion with what is returned for each output: an input after it was written into."""
    written = {out.alias_of: out.value for out in fusion.outputs if out.alias_of is not None}
    outputs = (replace(out, value=written.get(out.value, out.value)) for out in fusion.outputs)
    return replace(fusion, outputs=tuple(outputs))


class Evaluation:
    """One run of the reference.

    Attributes
    ----------
    outputs : list of Tensor
        One for each output of the fusion, hidden ones too.
    lengths : list of int
        For each output, how many elements were reduced into one on the way to it.
    determined : list of bool
        For each output, whether it is free of random numbers whose seed is not known.
    """

    def __init__(self, fusion: Fusion, inputs: Sequence[Any], double: bool) -> None:
        self._double = double
        self._results: dict[Value, Result] = {}
        self._lengths: dict[Value, int] = {}
        self._drawn: set[Value] = set()
        # Sizes are those of the run, whose scalars are rounded.
        fusion = concretize(fusion, signature(fusion, inputs, device_of(inputs)), folds=False)
        for value, given in zip(fusion.inputs, inputs, strict=True):
            self._keep(value, as_given(value, given), 1)
        last = last_uses(fusion)
        own_dtypes = torch._C._DisableAutocast()
        with torch.device(device_of(inputs)), torch.no_grad(), own_dtypes:
            for node in fusion.nodes:
                if any(out in last for out in node.outs):
                    self._run(node)
                    self._forget(node, last)
        self.outputs = [as_tensor(self._results[out.value]) for out in fusion.outputs]
        self.lengths = [self._lengths[out.value] for out in fusion.outputs]
        self.determined = [out.value not in self._drawn for out in fusion.outputs]

    def replace(self, fusion: Fusion, outputs: Sequence[torch.Tensor]) -> None:
        """Take other tensors for the expected outputs, hidden ones excepted.

        Raises
        ------
        ValidationError
            Their number is another than that of the outputs.
        """
        shown = [place for place, out in enumerate(fusion.outputs) if not out.hidden]
        if len(outputs) != len(shown):
            raise ValidationError(
                f"expected {len(shown)} reference outputs, one an output, got {len(outputs)}"
            )
        for place, given in zip(shown, outputs, strict=True):
            self.outputs[place] = given
            self.determined[place] = True

    def _run(self, node: Node) -> None:
        op = registry.get(node.op)
        operands = [
            self._operand(param, arg)
            for param, arg in zip(
                (p for p in op.params if p.kind.is_operand), node.args, strict=True
            )
        ]
        attrs = dict(node.attrs)
        if isinstance(op.form, Pointwise):
            operands = self._typed(node, operands)
            # A cast to Float stays in float64; one to half rounds.
            attrs = {key: self._asked(attr) for key, attr in attrs.items()}
        results = _evaluated(node, op, operands, attrs)
        results = results if isinstance(results, tuple | list) else (results,)
        length = self._length(node, results[0])
        seedless = isinstance(op.form, Random) and None in node.args
        if seedless or any(value in self._drawn for value in node.operands()):
            self._drawn.update(node.outs)
        for out, result in zip(node.outs, results, strict=True):
            self._keep(out, result, length)

    def _asked(self, attr: Attr) -> Attr:
        if isinstance(attr, DataType) and attr not in REDUCED_FLOATS:
            return self._wider(attr)
        return attr

    def _typed(self, node: Node, operands: Sequence[Any]) -> list[Any]:
        """Operands cast as the op's typing rule says: by the fusion's dtypes, not the results'."""
        form = registry.get(node.op).form
        assert isinstance(form, Pointwise)
        present = [arg for arg in node.args if arg is not None]
        targets = iter(form.typing(operand_types(present)).operands)
        if not form.accuracy.of_dtype:
            targets = map(self._wider, targets)
        return [None if operand is None else _cast(operand, next(targets)) for operand in operands]

    def _operand(self, param: Param, arg: Arg) -> Any:
        if isinstance(arg, tuple):
            return tuple(self._operand(param, item) for item in arg)
        found = self._results[arg] if isinstance(arg, Value) else None
        if isinstance(arg, Const):
            found = arg.value
        # A size may be computed in floating point.
        if param.kind in (Kind.EXTENT, Kind.EXTENTS) and isinstance(found, int | float):
            return int(found)
        return found

    def _keep(self, value: Value, result: Any, length: int) -> None:
        self._lengths[value] = length
        if isinstance(value.type, ScalarType):
            narrow = value.dtype in REDUCED_FLOATS
            dtype = value.dtype if narrow else self._wider(value.dtype)
            self._results[value] = as_number(_number(result), dtype)
            return
        if self._double and value.dtype in REDUCED_FLOATS:
            result = result.to(value.dtype.info.torch)
        wide = result.to(self._wider(value.dtype).info.torch)
        self._results[value] = overflowed(wide, value.dtype) if self._double else wide

    def _wider(self, dtype: DataType) -> DataType:
        """The dtype that stands for ``dtype``: Double for floats in the float64 mode."""
        return _DOUBLE.get(dtype, dtype) if self._double else dtype

    def _length(self, node: Node, result: Any) -> int:
        """Elements that one of the result was reduced from, along the longest way."""
        operands = list(node.operands())
        before = max((self._lengths[value] for value in operands), default=1)
        op = registry.get(node.op)
        if op.category == "reduction":
            source = as_tensor(self._results[operands[0]])
            per_result = source.numel() // max(as_tensor(result).numel(), 1)
            return before * max(per_result, 1)
        if op.category == "contraction":
            # Each element is a sum over the last dim of the first operand.
            left = as_tensor(self._results[operands[0]])
            return before * max(left.shape[-1] if left.dim() else 1, 1)
        if isinstance(op.form, Scan):
            dim = node.attr("dim")
            assert isinstance(dim, int)
            return before * max(as_tensor(self._results[operands[0]]).shape[dim], 1)
        return before

    def _forget(self, node: Node, last: dict[Value, Node | None]) -> None:
        for value in {*node.operands(), *node.outs}:
            if last.get(value) is node or value not in last:
                del self._results[value]


class NoReferenceError(TritonFuserError, NotImplementedError):
    """An op in dtypes that torch has no function for."""


def _evaluated(node: Node, op: Op, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """The results of an op.

    Raises
    ------
    IndexRangeError
        It reads an index that its dim does not have. On a GPU torch would end the process, so what
        has indices is computed on the CPU.
    NoReferenceError
        torch has no such function for these dtypes.
    """
    oracle = as_call(node).oracle
    if not isinstance(op.form, View | Scatter) or not op.form.indices:
        try:
            return oracle(*operands, **attrs)
        except NotImplementedError as error:
            raise NoReferenceError(
                f"{node.op}: there is no reference, torch does not compute it: {error}",
                loc=node.loc,
                hint="Compare what fd.run(inputs) gives with numbers of your own.",
            ) from error
    moved = [x.cpu() if isinstance(x, torch.Tensor) else x for x in operands]
    try:
        found = oracle(*moved, **attrs)
    except IndexRangeError as error:
        raise error.located(node.loc) from None
    return found.to(device_of(operands))


def as_given(value: Value, given: Any) -> Any:
    """An input as a run gets it: a number of a floating-point scalar rounded to its dtype."""
    exact = value.is_tensor or value.dtype.info.category < Category.FLOAT
    return given if exact else as_number(given, value.dtype)


def device_of(inputs: Sequence[Any]) -> torch.device:
    """Where inputs are computed on: a CPU scalar counts only among its like."""
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    for tensor in tensors:
        if tensor.device.type != "cpu":
            return tensor.device
    return torch.device("cpu")


def overflowed(wide: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Numbers in float64, infinite where a dtype has none as large: ops behind go on with that.

    The tensor itself where there are none, with the strides that it has.
    """
    if dtype is DataType.ComplexFloat:
        given = torch.view_as_real(wide.resolve_conj())
        parts = overflowed(given, DataType.Float)
        return wide if parts is given else torch.view_as_complex(parts.contiguous())
    if dtype is not DataType.Float:
        return wide
    held = wide.to(torch.float32)
    too_large = held.isinf() & wide.isfinite()
    return torch.where(too_large, held.double(), wide) if too_large.any() else wide


def last_uses(fusion: Fusion) -> dict[Value, Node | None]:
    """The last node that takes each value that is needed; None for outputs."""
    last: dict[Value, Node | None] = {out.value: None for out in fusion.outputs}
    for node in reversed(fusion.nodes):
        if any(out in last for out in node.outs):
            for value in node.operands():
                last.setdefault(value, node)
    return last


def _number(result: Any) -> Number:
    found: Number = result.item() if isinstance(result, torch.Tensor) else result
    return found


def _cast(operand: Any, dtype: DataType) -> torch.Tensor:
    tensor = as_tensor(operand)
    target = dtype.info.torch
    assert target is not None, f"torch has no {dtype}"
    if tensor.is_complex() and not target.is_complex and target is not torch.bool:
        tensor = tensor.real
    return tensor.to(target)
