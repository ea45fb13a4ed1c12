"""Why inputs do not fit a definition: an ``InputError`` for those that every guard refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...dtypes import from_torch, holds_int, of_python
from ...errors import ArgumentError, InputError, SourceLoc
from ...ir import Dim, Fusion, Layout, Value, type_text
from ..keys.storage_problems import (
    Problem,
    abstract_problem,
    memory_error,
    storage_problem,
    tracing_error,
)

WRITTEN_BITS = 1500
"""Longer integers are not written out. Python itself refuses to, beyond some 14,000."""
_NO_KERNEL = "KernelExecutor does not support the Fusion provided."


class InputMismatch(InputError):
    """One input that does not fit.

    Attributes
    ----------
    place : int
        Its index among the flat inputs.
    name : str
        Its name in ``print(fd)``, as the message has it.
    """

    def __init__(
        self,
        message: str,
        *,
        loc: SourceLoc | None = None,
        hint: str = "",
        place: int = -1,
        name: str = "",
    ) -> None:
        self.place = place
        self.name = name
        super().__init__(message, loc=loc, hint=hint)

    @staticmethod
    def named(place: int, name: str) -> str:
        """How messages speak of an input: ``input 0, tv0,``."""
        return f"input {place}, {name},"

    def renamed(self, name: str) -> InputMismatch:
        """This error with ``name`` as the name of the input."""
        place = self.place
        message = self.message.replace(self.named(place, self.name), self.named(place, name))
        return InputMismatch(message, loc=self.loc, hint=self.hint, place=place, name=name)


def refuse_unlisted(inputs: object) -> None:
    """Refuse inputs that are neither a list nor a tuple.

    Raises
    ------
    ArgumentError
        Says what they are.
    """
    if not isinstance(inputs, list | tuple):
        raise ArgumentError(
            f"inputs must be a list or a tuple, got {type(inputs).__name__}",
            hint="A single input is given as run([x]).",
        )


def explain_mismatch(
    fusion: Fusion, inputs: Sequence[Any], *, abstract: bool = False
) -> InputError | None:
    """The first thing about flat inputs that does not fit the definition.

    Parameters
    ----------
    abstract : bool
        Whether fake and meta tensors fit, since no kernel will read them.

    Returns
    -------
    InputError or None
        In nvFuser's words; None where the inputs fit.
    """
    if len(inputs) != len(fusion.inputs):
        return InputError(
            f"Expected {len(fusion.inputs)} inputs but got {len(inputs)}",
            hint=f"The definition takes, in order: {_declared(fusion) or 'nothing'}.",
        )
    error = tracing_error() or (None if abstract else memory_error(inputs))
    if error is not None:
        return error
    for place, (value, given) in enumerate(zip(fusion.inputs, inputs, strict=True)):
        found = _tensor_problem(value, given) if value.is_tensor else _scalar_problem(value, given)
        if found is None and value.is_tensor and not abstract:
            found = abstract_problem(given)
        if found is not None:
            message, hint = found
            text = message.replace("INPUT", f"Expected {InputMismatch.named(place, value.name)}")
            return InputMismatch(text, hint=hint, place=place, name=value.name)
    return _device_problem(fusion, inputs)


# --- texts -----------------------------------------------------------------------------------


def _declared(fusion: Fusion) -> str:
    """The inputs with their types: ``tv0: Float[i0, 4], c0: Double``."""
    return ", ".join(f"{value.name}: {type_text(value.type)}" for value in fusion.inputs)


def number_text(value: object) -> str:
    """A number as C++ streams it: 2.0 is 2, 2 + 1j is (2,1). Of longer integers their length."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, complex):
        return f"({value.real:g},{value.imag:g})"
    if isinstance(value, int) and value.bit_length() > WRITTEN_BITS:
        return f"of {value.bit_length()} bits"
    return f"{value}"


# --- one input -------------------------------------------------------------------------------


def _scalar_problem(value: Value, given: Any) -> Problem | None:
    expected = value.dtype
    if isinstance(given, torch.Tensor):
        kind = _dtype_name(given.dtype)
        return (
            f"INPUT to be a scalar but got {kind} tensor of rank {given.dim()}",
            "Pass a Python number, such as t.item().",
        )
    if not isinstance(given, bool | int | float | complex):
        return f"INPUT to be a scalar but got {_type_name(given)}", "Pass a Python number."
    own = of_python(given).info.category
    wrong = expected.info.category < own
    if wrong or (isinstance(given, int) and not holds_int(expected, given)):
        return (
            f"Scalar value {number_text(given)} is not compatible with the expected data type: "
            f"{expected.value}.",
            f"The definition's scalar is of {expected}.",
        )
    return None


def _tensor_problem(value: Value, given: Any) -> Problem | None:
    type_ = value.tensor
    if not isinstance(given, torch.Tensor):
        is_number = isinstance(given, bool | int | float | complex)
        got = f"scalar {number_text(given)}" if is_number else _type_name(given)
        return f"INPUT to be an at::Tensor but got {got}", "Pass a torch.Tensor."
    problem = storage_problem(given)
    if problem is not None:
        return problem
    if type_.dtype.info.torch != given.dtype:
        return (
            f"INPUT to be bound to a tensor of dtype {type_.dtype.value}, but got a tensor of "
            f"dtype {_dtype_name(given.dtype)}",
            f"Convert it with .to({type_.dtype.info.torch}).",
        )
    if given.dim() != type_.rank:
        return (
            f"INPUT to be bound to a tensor of rank {type_.rank}, but got a tensor of rank "
            f"{given.dim()}",
            f"Its shape is {list(given.shape)}.",
        )
    for dim, (declared, size) in enumerate(zip(type_.shape, given.shape, strict=True)):
        if isinstance(declared, int) and declared != size:
            return (
                f"INPUT to have size {declared} in dim {dim}, but got a tensor of shape "
                f"{list(given.shape)}",
                "Define the dim as -1 for a size that varies.",
            )
    return None if type_.layout is None else _layout_problem(type_.dims, type_.layout, given)


def _layout_problem(dims: Sequence[Dim], layout: Layout, given: torch.Tensor) -> Problem | None:
    """The problem where strides do not match the declared contiguity; None where they do.

    Dims are checked from the fastest to the slowest. Dims of size 1 may have any stride.
    """
    if not given.numel():
        return None
    rank = len(dims)
    by_order = sorted(range(rank), key=lambda d: layout.stride_order[d])
    expected: int | None = 1
    shown = f"The tensor has shape {list(given.shape)} and strides {list(given.stride())}."
    for place, dim in enumerate(by_order):
        size, stride = given.size(dim), given.stride(dim)
        promised = layout.contiguity[rank - 1 - place]
        if size == 1:
            # A declared gap behind a size-1 dim leaves the next stride open; its own is arbitrary.
            expected = None if promised is False else expected
            continue
        if promised is None:
            if stride:
                return (
                    f"INPUT to be expanded (stride 0) in dim {dim}, whose contiguity is None, "
                    f"but found stride {stride}",
                    shown,
                )
            continue
        if promised and expected is not None and stride != expected:
            return (
                f"INPUT to be contiguous: Stride mismatch with contiguity info in dim {dim}: "
                f"expected stride {expected}, but found {stride}",
                f"{shown} Define it with contiguity False, or pass t.contiguous().",
            )
        expected = stride * size
    return None


def _dtype_name(dtype: torch.dtype) -> str:
    try:
        return from_torch(dtype).value
    except KeyError:
        return str(dtype)


def _type_name(given: Any) -> str:
    return f"a value of type {type(given).__name__}"


# --- where they are --------------------------------------------------------------------------


def _device_problem(fusion: Fusion, inputs: Sequence[Any]) -> InputError | None:
    """The error for CPU tensors beside GPU tensors; None where they fit.

    They have to be 0-dim, and no output may be computed from them alone.
    """
    given = _tensors(fusion, inputs)
    if all(tensor.device.type in ("cpu", "meta") for tensor in given.values()):
        return None
    for place, value in enumerate(fusion.inputs):
        if value in given and given[value].device.type == "cpu" and given[value].dim():
            return InputMismatch(
                f"{_NO_KERNEL} Input {place} is on the CPU, others are on a GPU",
                hint="Only 0-dim CPU tensors can be mixed with CUDA tensors.",
                place=place,
            )
    return explain_cpu_scalars(fusion, inputs)


def _tensors(fusion: Fusion, inputs: Sequence[Any]) -> dict[Value, torch.Tensor]:
    pairs = zip(fusion.inputs, inputs, strict=True)
    return {value: tensor for value, tensor in pairs if value.is_tensor}


def explain_cpu_scalars(fusion: Fusion, inputs: Sequence[Any]) -> InputError | None:
    """The error for an output that is computed from CPU tensors alone in a run on a GPU."""
    given = _tensors(fusion, inputs)
    made = {value for value, tensor in given.items() if tensor.device.type == "cpu"}
    outputs = {out.value for out in fusion.outputs}
    for node in fusion.nodes:
        tensors = [value for value in node.operands() if value.is_tensor]
        if not tensors or not made.issuperset(tensors):
            continue
        made.update(node.outs)
        if not outputs.isdisjoint(node.outs):
            return InputError(
                f"{_NO_KERNEL} {node.op} takes CPU scalars alone and gives an output",
                loc=node.loc,
                hint="Move one of its operands to the GPU.",
            )
    return None
