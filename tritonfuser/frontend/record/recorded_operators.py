"""Python's operators on handles: each records the op that its row of the op table names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
import torch

from ...errors import ArgumentError
from ...ops.registry import BY_OPERATOR
from ..vocabulary.location import user_line
from .constants import NUMBERS

OPERANDS = (*NUMBERS, np.generic)
ARRAYS = (torch.Tensor, np.ndarray)


class RecordedOperators(ABC):
    """The operators that torch's tensors have, for handles of a definition.

    Comparisons are in ``Val``: they record an op only while the definition is being recorded.
    """

    __slots__ = ()

    __array_ufunc__ = None
    """NumPy leaves operators to handles. Else they are objects to it: ``np.ones(3) + x`` is three
    sums, and ``np.sum(x)`` is ``x``."""

    @abstractmethod
    def _record(self, op: str, *operands: Any) -> Any:
        """Record an op of the operands."""

    def _operator(self, name: str, *operands: Any) -> Any:
        """Record what ``__NAME__`` stands for; other classes may know how to take a handle.

        Tensors and arrays do not, and torch's say of ``==`` that the two differ.
        """
        for array in (item for item in operands if isinstance(item, ARRAYS)):
            kind, made = "torch.Tensor", "tensor"
            if isinstance(array, np.ndarray):
                kind, made = "NumPy array", "torch.from_numpy(array)"
            raise ArgumentError(
                f"{BY_OPERATOR[name]}(): expected handles or numbers, got a {kind}",
                loc=user_line(),
                hint=f"Define an input for it: fd.from_pytorch({made}). One element is a number by "
                f"{made}.item().",
            )
        if not all(isinstance(item, (*OPERANDS, RecordedOperators)) for item in operands):
            return NotImplemented
        return self._record(BY_OPERATOR[name], *operands)

    def __add__(self, other: Any) -> Any:
        return self._operator("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._operator("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._operator("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._operator("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._operator("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._operator("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._operator("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._operator("truediv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._operator("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._operator("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._operator("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._operator("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._operator("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._operator("pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._operator("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._operator("matmul", other, self)

    def __and__(self, other: Any) -> Any:
        return self._operator("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._operator("and", other, self)

    def __or__(self, other: Any) -> Any:
        return self._operator("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._operator("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self._operator("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._operator("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self._operator("lshift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self._operator("lshift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self._operator("rshift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._operator("rshift", other, self)

    def __neg__(self) -> Any:
        return self._operator("neg", self)

    def __abs__(self) -> Any:
        return self._operator("abs", self)

    def __invert__(self) -> Any:
        return self._operator("invert", self)

    def __pos__(self) -> Any:
        return self

    def __lt__(self, other: Any) -> Any:
        return self._operator("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self._operator("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._operator("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._operator("ge", self, other)

    # --- what needs a number now -----------------------------------------------------------

    def __bool__(self) -> bool:
        self._has_no_number(
            "bool()",
            "For `if`, `and`, `or`, `not` and chained comparisons use fd.ops.where, `&`, `|`, `~` "
            "and one comparison at a time.",
        )

    def __float__(self) -> float:
        self._has_no_number("float()", "Use it as an operand, or pass a number as an input.")

    def __int__(self) -> int:
        self._has_no_number("int()", "Use it as an operand; ops take sizes as they are.")

    def __complex__(self) -> complex:
        self._has_no_number("complex()", "Use it as an operand, or pass a number as an input.")

    def __len__(self) -> int:
        self._has_no_number("len()", "Use t.ndim for the number of dims, t.size(dim) for one.")

    def __iter__(self) -> NoReturn:
        self._has_no_number("iteration", "Use fd.ops.select(t, i, dim) or fd.ops.slice(t, ...).")

    def __index__(self) -> int:
        self._has_no_number(
            "an index or a range",
            "Ops take sizes as they are; a loop in Python needs a number, as of a torch tensor's "
            "shape.",
        )

    def __getitem__(self, key: object) -> NoReturn:
        raise ArgumentError(
            f"indexing of {self!r}: a value of a definition has no [...]",
            loc=user_line(),
            hint="Use fd.ops.select(t, i, dim) or fd.ops.slice(t, ...); t.size(dim) is a size.",
        )

    def __contains__(self, item: object) -> bool:
        self._has_no_number("`in`", "Compare by ==, and reduce: fd.ops.max(t == value).")

    def _has_no_number(self, what: str, hint: str) -> NoReturn:
        raise ArgumentError(
            f"{what} of {self!r}: a value of a definition is not known while it is recorded",
            loc=user_line(),
            hint=hint,
        )
