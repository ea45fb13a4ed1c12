"""The base classes of handles: each belongs to one recording."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from ...ir import Fusion, Node, Operand, Value
from ...pickling import Unpicklable
from .device_mesh import DeviceMesh

Text = str
"""``str`` where a class has a method of that name."""


class HasFusion(Protocol):
    """A frontend Fusion, or whatever else carries an IR fusion."""

    @property
    def ir(self) -> Fusion: ...


class Container(HasFusion, Protocol):
    """The recording that a handle belongs to.

    Attributes
    ----------
    open : int
        The ``with`` blocks in which it may be added to: 0 when it is complete.
    handles : dict
        The one ``Val`` of each value and constant.
    """

    open: int
    handles: dict[Operand, Any]

    @property
    def uses_nvfuser_names(self) -> bool: ...

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any: ...

    def handle_of(self, value: Operand) -> Any: ...

    def expression(self, node: Node) -> Any: ...

    def domain_of(self, value: Value) -> Any: ...

    def put(self, value: Value, mesh: DeviceMesh) -> None: ...

    def partial_of(self, value: Value, dims: Sequence[int]) -> Any: ...


class Statement:
    """A value or an expression of a definition."""

    __slots__ = ("_container",)

    def __init__(self, container: Container) -> None:
        self._container = container

    @property
    def container(self) -> Container:
        """The recording it was made in."""
        return self._container

    def str(self) -> Text:
        """``str(statement)``."""
        return repr(self)


class Expr(Statement, Unpicklable, ABC):
    """What makes one thing of others: an op of a definition, or the split of a dim."""

    __slots__ = ()
    send_instead = "Send the TensorView that it makes, and ask for its definition() there."

    @property
    @abstractmethod
    def op(self) -> Text:
        """Its name."""

    @abstractmethod
    def inputs(self) -> list[Any]:
        """What it takes."""

    @abstractmethod
    def outputs(self) -> list[Any]:
        """What it makes."""

    def input(self, index: int) -> Any:
        """One of ``inputs()``."""
        return self.inputs()[index]

    def output(self, index: int) -> Any:
        """One of ``outputs()``."""
        return self.outputs()[index]
