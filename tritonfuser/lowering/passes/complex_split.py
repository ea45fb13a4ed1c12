"""A fusion without complex numbers: its hidden real inputs, and where its results lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...dtypes import Category, DataType, real_dtype
from ...ir import Dim, Fusion, Layout, TensorType, Value
from ..access.aliases import BufferView

VIEW, REAL, IMAG = "view_as_real", "real", "imag"


@dataclass(frozen=True, slots=True)
class HiddenInput:
    """A hidden real input that a run derives from a complex one.

    Attributes
    ----------
    value : Value
        The hidden input.
    source : Value
        The complex input.
    how : str
        VIEW for a tensor, whose memory it shares; REAL or IMAG for a scalar.
    """

    value: Value
    source: Value
    how: str


@dataclass(frozen=True)
class ComplexSplit:
    """A fusion without complex numbers.

    Attributes
    ----------
    fusion : Fusion
        Complex inputs remain inputs without uses; the hidden inputs follow them.
    parts : tuple of HiddenInput
        The hidden inputs.
    results : tuple
        For each complex output where it lies, in complex numbers: in an input's buffer, or, with
        ``pairs``, in that of the fusion's output at that position. None for real outputs; empty
        for a fusion without complex numbers.
    """

    fusion: Fusion
    parts: tuple[HiddenInput, ...] = ()
    results: tuple[BufferView | None, ...] = ()

    def rejoined(self, results: tuple[BufferView, ...]) -> tuple[BufferView, ...]:
        """Where the outputs lie, with complex ones in complex numbers."""
        if not self.results:
            return results
        return tuple(
            made if wanted is None else replace(wanted, root=made.root)
            for made, wanted in zip(results, self.results, strict=True)
        )


def is_complex(item: object) -> bool:
    """Whether an operand or a type is of complex numbers."""
    found = getattr(item, "dtype", None)
    return isinstance(found, DataType) and found.info.category is Category.COMPLEX


def real_view_type(type_: TensorType, strides: tuple[int, ...]) -> TensorType:
    """The type of ``torch.view_as_real``: a last dim of two, strides doubled."""
    layout = Layout((), (), (*(2 * stride for stride in strides), 1))
    dims = (*type_.dims, Dim(2))
    return TensorType(dims, real_dtype(type_.dtype), type_.is_cpu, layout)
