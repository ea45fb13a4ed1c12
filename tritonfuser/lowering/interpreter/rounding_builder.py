"""The interpreter's builder with the casts of hardware: bf16 and fp8 round to nearest even.

Triton's own cuts bf16 off, reads it as an integer next to float64 and integers, and carries
fp8 roundings wrongly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

_HIDDEN: dict[tl.dtype, torch.dtype] = {
    tl.bfloat16: torch.bfloat16,
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e5: torch.float8_e5m2,
}
"""The types that NumPy lacks: the interpreter keeps their bits as unsigned integers."""


def as_torch(array: Any) -> torch.Tensor:
    """An array as a torch tensor of its dtype; copied where torch would complain."""
    array = np.asarray(array)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


class Builder(InterpreterBuilder):  # type: ignore[misc]
    """``InterpreterBuilder`` that knows the numbers of every type."""

    def cast_impl(self, src: TensorHandle, dst_type: tl.dtype) -> TensorHandle:
        """A conversion between any two element types."""
        source = tl.int1 if src.data.dtype == np.bool_ else src.dtype.scalar
        target = dst_type.scalar
        if source not in _HIDDEN and target not in _HIDDEN:
            return TensorHandle(src.data.astype(_get_np_dtype(target)), target)
        return TensorHandle(_store(_load(src.data, source), target), target)

    def create_fp_to_fp(self, src: TensorHandle, dst_type: tl.dtype, rounding: Any) -> TensorHandle:
        """Conversions with an fp8 type; always to nearest even."""
        return self.cast_impl(src, dst_type)

    def get_all_ones_value(self, dtype: tl.dtype) -> TensorHandle:
        """All bits set, of unsigned integers too."""
        if dtype.scalar.is_int_unsigned():
            return TensorHandle(~np.zeros(1, _get_np_dtype(dtype)), dtype.scalar)
        return super().get_all_ones_value(dtype)

    def binary_op(self, lhs: TensorHandle, rhs: TensorHandle, op: Any) -> TensorHandle:
        """Arithmetic and comparisons, on numbers where NumPy would see the bits."""
        dtype = lhs.dtype.scalar
        if dtype in _HIDDEN and lhs.data.dtype != np.bool_:
            data = op(_load(lhs.data, dtype).numpy(), _load(rhs.data, dtype).numpy())
            found = data if data.dtype == np.bool_ else _store(as_torch(data), dtype)
        else:
            found = super().binary_op(lhs, rhs, op).data
        # Under the operands' type, the truth of a scalar would be spread over a tile as a number.
        return TensorHandle(found, tl.int1 if found.dtype == np.bool_ else dtype)

    def create_dot(
        self,
        a: TensorHandle,
        b: TensorHandle,
        d: TensorHandle,
        input_precision: Any,
        max_num_imprecise_acc: Any,
    ) -> TensorHandle:
        """A product summed in the accumulator's type, as tensor cores do."""
        left, right = (_load(x.data, x.dtype.scalar).numpy() for x in (a, b))
        total = np.matmul(left, right, dtype=d.data.dtype)
        return TensorHandle(total + d.data, d.dtype.scalar)

    def get_bf16(self, value: float) -> TensorHandle:
        """A constant of a type that NumPy lacks."""
        return self._constant(value, tl.bfloat16)

    def get_fp8e4nv(self, value: float) -> TensorHandle:
        return self._constant(value, tl.float8e4nv)

    def get_fp8e5(self, value: float) -> TensorHandle:
        return self._constant(value, tl.float8e5)

    def _constant(self, value: float, dtype: tl.dtype) -> TensorHandle:
        return TensorHandle(_store(torch.tensor([value]), dtype), dtype)

    def create_erf(self, arg: TensorHandle) -> TensorHandle:
        """The error function of a whole array at once."""
        return TensorHandle(torch.erf(as_torch(arg.data)).numpy(), arg.dtype.scalar)


def _load(data: Any, dtype: tl.dtype) -> torch.Tensor:
    """The numbers of an array, as float64 where torch has no arithmetic on their type."""
    if dtype in _HIDDEN:
        signed = np.ascontiguousarray(data).view(f"int{8 * data.itemsize}")
        return as_torch(signed).view(_HIDDEN[dtype]).float()
    if data.dtype.kind == "u":
        data = data.astype(np.float64)
    return as_torch(data)


def _store(values: torch.Tensor, dtype: tl.dtype) -> Any:
    if dtype in _HIDDEN:
        bits = values.to(_HIDDEN[dtype]).contiguous()
        words = bits.view(torch.int8 if bits.element_size() == 1 else torch.int16).numpy()
        return words.view(_get_np_dtype(dtype))
    return values.numpy().astype(_get_np_dtype(dtype))
