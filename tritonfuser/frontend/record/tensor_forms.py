"""``define_tensor``, with its forms spelt out for type checkers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Union, overload

import torch

from ...dtypes import DataType
from .tensor_view import TensorView

DType = Union[DataType, torch.dtype]
Contiguity = Union[bool, Sequence[Union[bool, None]]]


class DefinesTensors(ABC):
    """What has ``define_tensor``."""

    __slots__ = ()

    @abstractmethod
    def _define_tensor(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TensorView:
        """A tensor from the arguments of a form."""

    @overload
    def define_tensor(
        self,
        shape: Sequence[int],
        contiguity: Contiguity = False,
        dtype: DType = DataType.Float,
        is_cpu: bool = False,
        stride_order: Sequence[int] = (),
    ) -> TensorView: ...

    @overload
    def define_tensor(
        self,
        sizes: Sequence[int],
        strides: Sequence[int],
        dtype: DType = DataType.Float,
        static_sizes: bool = False,
        is_cpu: bool = False,
    ) -> TensorView: ...

    @overload
    def define_tensor(
        self,
        *,
        symbolic_sizes: Sequence[int],
        contiguous: Contiguity = False,
        dtype: DType = DataType.Float,
        is_cpu: bool = False,
        stride_order: Sequence[int] = (),
    ) -> TensorView: ...

    @overload
    def define_tensor(self, ndims: int, dtype: DType = DataType.Float) -> TensorView: ...

    def define_tensor(self, *args: Any, **kwargs: Any) -> TensorView:
        """A tensor input. Inputs are given to ``run`` in the order of their definition.

        Four forms::

            define_tensor(shape, contiguity=False, dtype=DataType.Float, is_cpu=False,
                          stride_order=[])
            define_tensor(sizes, strides, dtype=DataType.Float, static_sizes=False, is_cpu=False)
            define_tensor(symbolic_sizes=[...], contiguous=[...], dtype=DataType.Float)
            define_tensor(ndims, dtype=DataType.Float)

        Parameters
        ----------
        shape : list of int
            -1 for a size known only at run time, 1 for a dim that broadcasts, else the size.
        contiguity : bool or list of (bool or None)
            Whether each dim lies densely around the next inner one, outermost in memory first;
            None for dims of size 1 and for dims stretched by expand. One bool stands for all.
        dtype : DataType or torch.dtype
            The element type.
        is_cpu : bool
            A 0-dim tensor that stays on the CPU.
        stride_order : list of int
            For each dim its place in memory, 0 the fastest; by default row-major.
        sizes, strides : list of int
            As a tensor has them; sizes other than 1 are taken as -1 unless ``static_sizes``.

        Raises
        ------
        ArgumentError
            A TypeError: an argument of the wrong type, or an integer beyond int64.
        DefinitionError
            A RuntimeError: values that describe no tensor.
        """
        return self._define_tensor(args, kwargs)
