"""The inputs of a plan: those that a caller gives, and the copies that kernels read instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ...dtypes import REDUCED_FLOATS
from ...ir import Value
from ...lowering.lowered import Lowered
from ..keys.signature import is_aligned
from .capture import to_device
from .kernel_operands import may_be_negated, resolve_neg, rounded, view_as_real


class GivenInputs:
    """The inputs of a lowered fusion, with what example inputs say of them.

    Attributes
    ----------
    all : tuple of Value
        All inputs in order, with seeds and the parts of complex inputs.
    aligned : dict of Value to bool
        Whether each tensor starts at a multiple of 16 bytes.
    read : set of Value
        The inputs that kernels or torch read.
    """

    def __init__(self, lowered: Lowered, inputs: Sequence[Any], on_gpu: bool) -> None:
        fusion = lowered.segmented.fusion
        self.all = fusion.inputs
        pairs = zip(fusion.inputs, inputs, strict=False)
        tensors = {value: tensor for value, tensor in pairs if value.is_tensor}
        self.aligned = {value: is_aligned(tensor) for value, tensor in tensors.items()}
        for part in lowered.parts:
            self.aligned[part.value] = self.aligned.get(part.source, False)
        used = {value for segment in lowered.segmented.segments for value in segment.inputs}
        self.read = used & set(fusion.inputs)
        self._lowered = lowered
        self._on_gpu = on_gpu
        self._negated = {value for value, tensor in tensors.items() if tensor.is_neg()}

    @cached_property
    def listed(self) -> tuple[Value, ...]:
        """The inputs that a caller gives: without seeds and parts of complex inputs."""
        seeds = {value for pair in self._lowered.seeds for value in pair}
        hidden = seeds | {part.value for part in self._lowered.parts}
        return tuple(value for value in self.all if value not in hidden)

    @cached_property
    def on_device(self) -> tuple[Value, ...]:
        """The tensors that a caller gives on the device of the run."""
        tensors = (value for value in self.listed if value.is_tensor)
        return tuple(v for v in tensors if not (self._on_gpu and v.tensor.is_cpu))

    @cached_property
    def writable(self) -> frozenset[Value]:
        """The tensors that kernels may store into: aligned, not copied, without negative bit."""
        direct = (v for v in self.on_device if self.aligned.get(v) and v not in self.copies)
        return frozenset(v for v in direct if not self._may_be_negated(v))

    @cached_property
    def copies(self) -> dict[Value, Callable[..., Any]]:
        """The tensors of which kernels read a copy, each with the function that copies it.

        They are CPU tensors in a run on a GPU, and tensors that may have the negative bit.
        """
        tensors = [value for value in self.all if value.is_tensor and value in self.read]
        return {
            value: to_device if self._on_gpu and value.tensor.is_cpu else resolve_neg
            for value in tensors
            if (self._on_gpu and value.tensor.is_cpu) or self._may_be_negated(value)
        }

    @property
    def needs_device(self) -> bool:
        """Whether something is copied to the device."""
        return to_device in self.copies.values()

    def _may_be_negated(self, value: Value) -> bool:
        return value in self._negated or may_be_negated(value.tensor)

    def name(self, value: Value) -> str:
        """The variable of the tensor that a caller gave, not that of its copy."""
        return f"{value.name}_given" if value in self.copies else value.name

    def lines(self, scope: dict[str, Any]) -> list[str]:
        """The lines that prepare inputs for kernels: real parts, rounded numbers, copies.

        Parameters
        ----------
        scope : dict
            Takes the functions that the lines call.
        """
        lines = []
        for part in self._lowered.parts:  # complex inputs as real ones
            made = f"{part.source.name}.{part.how}"
            if part.value.is_tensor:
                scope[part.how] = view_as_real
                made = f"{part.how}({part.source.name})"
            lines.append(f"{part.value.name} = {made}")
        for value in self.all:
            if not value.is_tensor and value.dtype in REDUCED_FLOATS:
                scope["rounded"] = rounded
                lines.append(f"{value.name} = rounded({value.name}, {value.dtype.info.torch})")
        for value, function in self.copies.items():
            scope[function.__name__] = function
            where = ", device" if function is to_device else ""
            lines.append(f"{value.name}_given = {value.name}")
            lines.append(f"{value.name} = {function.__name__}({value.name}{where})")
        return lines
