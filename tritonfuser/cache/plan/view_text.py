"""Values in memory as Python expressions over the variables of a plan: views of buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ...dtypes import Category
from ...ir import Value
from ...lowering.access.aliases import BufferView

_DIFFERENTIABLE = (Category.FLOAT, Category.COMPLEX)


@dataclass(frozen=True, eq=False)
class ViewWriter:
    """Writes values in memory as expressions.

    Attributes
    ----------
    name : callable
        The variable of a tensor.
    inputs : collection of Value
        The inputs of the fusion.
    external : collection of Value
        Tensors that the plan does not allocate, whose storage offset may differ from 0. The plan
        adds to it while it is written.
    numbers : callable
        Sizes, or one size, as an expression.
    """

    name: Callable[[Value], str]
    inputs: Collection[Value]
    external: Collection[Value]
    numbers: Callable[[int | tuple[int, ...]], str]

    def expression(self, view: BufferView) -> str:
        """A view of a buffer, or the buffer. A whole input is the tensor that the caller gave."""
        if view.memory is None and not view.pairs:
            return self.name(view.root)
        return self.for_torch(view)

    def for_torch(self, view: BufferView) -> str:
        """The same as an operand of torch, which is not to record a gradient of an input."""
        root = view.root
        own = self.name(root)
        text = self.detached(root) if root in self.inputs else own
        if view.pairs:
            own = text = f"torch.view_as_complex({text})"
        if view.memory is None:
            return text
        offset = self.numbers(view.memory.offset)
        if root in self.external:
            offset = f"{own}.storage_offset() + {offset}"
        sizes, strides = self.numbers(view.memory.sizes), self.numbers(view.memory.strides)
        return f"{text}.as_strided({sizes}, {strides}, {offset})"

    def detached(self, value: Value) -> str:
        """An input as a tensor without autograd, where its dtype has gradients."""
        own = self.name(value)
        return f"detached({own})" if value.dtype.info.category in _DIFFERENTIABLE else own
