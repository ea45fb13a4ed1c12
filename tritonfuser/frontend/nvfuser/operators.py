"""``fd.ops`` of nvFuser's first frontend: names and composites that it had, and has no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dtypes import DataType
from ...errors import ArgumentError
from ..record.operators import Operators, Record
from ..record.tensor_view import TensorView
from ..record.val import Val, Vector
from ..vocabulary.argument_types import expect
from ..vocabulary.location import user_line

OLDER_NAMES: Mapping[str, Mapping[str, str]] = {
    "broadcast_in_dim": {"output_shape": "shape"},
    "full": {"size": "shape", "arg": "fill_value"},
}
"""Op -> parameters under the names that they had."""

SHAPED = frozenset({"reshape", "squeeze"})
"""Ops that were told the shape of their operand, as their second parameter."""

Results = tuple[TensorView, TensorView, TensorView]


class LegacyOperators(Operators):
    __doc__ = Operators.__doc__

    def __init__(self, record: Record) -> None:
        def recorded(name: str, *args: Any, **kwargs: Any) -> Any:
            args, kwargs = _as_today(name, args, kwargs)
            return record(name, *args, **kwargs)

        super().__init__(recorded)
        self._recorded = recorded

    def at(self, vector: Sequence[Val], index: int) -> Val:
        """A scalar of a vector or of a shape."""
        expect("at", (list, tuple), vector)
        expect("at", int, index)
        if not -len(vector) <= index < len(vector):
            raise ArgumentError(
                f"at(): expected an index of {len(vector)} scalars, got {index}", loc=user_line()
            )
        return vector[index]

    def shape(self, arg: TensorView) -> Vector:
        """The extents of all dims of a tensor."""
        return Vector(self._recorded("shape", arg))

    def view(
        self,
        arg: TensorView,
        original_shape: Sequence[int],
        new_shape: Sequence[int | Val],
    ) -> TensorView:
        """``reshape``, under the name that it had."""
        found: TensorView = self._recorded("reshape", arg, new_shape)
        return found

    def _unbiased(self, variance: TensorView, arg: TensorView, dims: Sequence[int]) -> TensorView:
        """The variance over ``dims`` of ``arg`` with Bessel's correction."""
        count: Any = 1
        for dim in dims:
            count = self.mul(count, arg.size(dim))
        found: TensorView = self.mul(variance, self.truediv(count, self.sub(count, 1)))
        return found

    def batch_norm(
        self,
        arg: TensorView,
        weight: TensorView | None,
        bias: TensorView | None,
        running_mean: TensorView | None,
        running_var: TensorView | None,
        momentum: Val | float,
        eps: Val | float,
        training: bool,
        channels_last: bool = False,
    ) -> Results:
        """A batch norm, recorded as the ops that it consists of.

        Parameters
        ----------
        arg : TensorView
            [N, C, ...], or [N, ..., C] where ``channels_last``.
        weight, bias : TensorView, optional
            One for each channel.
        running_mean, running_var : TensorView, optional
            Inputs with one for each channel; those of training are written into.
        momentum, eps : Val or float
            As for ``torch.nn.functional.batch_norm``.
        training : bool
            Whether statistics are those of ``arg``, and not the running ones.
        channels_last : bool
            Where the channels are.

        Returns
        -------
        tuple of TensorView
            The result, and the mean and the inverse of the deviation that it was computed with.
        """
        place = arg.ndim - 1 if channels_last else 1
        others = [dim for dim in range(arg.ndim) if dim != place]
        wide = self.cast(arg, DataType.Float) if arg.dtype() in _NARROW else arg
        if training:
            variance, mean = self.var_mean(wide, others, 0)
            self._keep(running_mean, mean, momentum)
            if running_var is not None:
                self._keep(running_var, self._unbiased(variance, arg, others), momentum)
        elif running_mean is None or running_var is None:
            raise ArgumentError(
                "batch_norm(): running_mean and running_var are needed where training is False",
                loc=user_line(),
            )
        else:
            variance, mean = running_var, running_mean
        inverse = self.rsqrt(self.add(variance, eps))
        along = [dim != place for dim in range(arg.ndim)]

        def spread(value: TensorView) -> TensorView:
            return self.broadcast(value, along)

        found = self.mul(self.sub(wide, spread(mean)), spread(inverse))
        found = found if weight is None else self.mul(found, spread(weight))
        found = found if bias is None else self.add(found, spread(bias))
        return found, mean, inverse

    def _keep(self, running: TensorView | None, found: TensorView, momentum: Val | float) -> None:
        """Update a running statistic in place: ``(1 - momentum) * running + momentum * found``."""
        if running is None:
            return
        kept = self.mul(running, self.sub(1.0, momentum))
        updated = self.cast(self.add(kept, self.mul(found, momentum)), running.dtype())
        definition: Any = running._container
        definition.add_output(updated, running)


_NARROW = frozenset({DataType.Half, DataType.BFloat16})


def _as_today(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, given as an older version took them."""
    if name in SHAPED:
        kwargs = {key: value for key, value in kwargs.items() if key != "original_shape"}
        if len(args) == 3 and isinstance(args[2], list | tuple):
            args = (args[0], args[2])
    older = OLDER_NAMES.get(name)
    if older is not None:
        kwargs = {older.get(key, key): value for key, value in kwargs.items()}
    return args, kwargs
