"""Right programs as data: the calls that recorded a definition, to be made again with a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritonfuser import FusionDefinition
from tritonfuser.frontend.record.tensor_view import TensorView
from tritonfuser.frontend.record.val import Val
from tritonfuser.ir import Const


@dataclass(frozen=True)
class Ref:
    """A handle that an earlier step made."""

    number: int


@dataclass(frozen=True)
class Step:
    """One call of a program: ``fd.NAME(*args, **kwargs)``, and the handles that it made."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    made: tuple[int, ...]

    @property
    def op(self) -> str:
        """The name without ``ops.``."""
        return self.name.rpartition(".")[2]

    def __str__(self) -> str:
        given = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        return f"{list(self.made)} = {self.name}({', '.join(given)})"


class Traced(FusionDefinition):
    """A definition that keeps the calls of its user."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        self._quiet = False

    def _record(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._kept_step(f"ops.{name}", super()._record, (name, *args), kwargs)

    def define_tensor(self, *args: Any, **kwargs: Any) -> TensorView:
        return self._kept_step("define_tensor", super().define_tensor, args, kwargs)

    def define_scalar(self, *args: Any, **kwargs: Any) -> Val:
        return self._kept_step("define_scalar", super().define_scalar, args, kwargs)

    def from_pytorch(self, *args: Any, **kwargs: Any) -> TensorView:
        return self._kept_step("from_pytorch", super().from_pytorch, args, kwargs)

    def add_output(self, *args: Any, **kwargs: Any) -> None:
        return self._kept_step("add_output", super().add_output, args, kwargs)

    def _kept_step(
        self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if self._quiet:
            return call(*args, **kwargs)
        given = args[1:] if name.startswith("ops.") else args
        shown = tuple(self._refs(arg) for arg in given)
        named = {key: self._refs(arg) for key, arg in kwargs.items()}
        self._quiet = True
        try:
            made = call(*args, **kwargs)
        finally:
            self._quiet = False
        self.steps.append(Step(name, shown, named, tuple(map(self._number, handles(made)))))
        return made

    def _number(self, handle: Val) -> int:
        self._kept.append(handle)
        return self._numbers.setdefault(id(handle), len(self._numbers))

    def _refs(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return type(given)(map(self._refs, given))
        if not isinstance(given, Val):
            return given
        if id(given) not in self._numbers:
            self._made_elsewhere(given)
        return Ref(self._numbers[id(given)])

    def _made_elsewhere(self, handle: Val) -> None:
        """A size of a tensor: ``t.size(d)`` is no call of the definition's."""
        if isinstance(handle.value, Const):
            given, name = (handle.value.value, handle.value.dtype), "define_scalar"
        else:
            node = handle.definition().node
            source = next(h for h in self._kept if h.value == node.args[0])
            given, name = (self._refs(source), dict(node.attrs)["dim"]), "ops.size"
        self.steps.append(Step(name, given, {}, (self._number(handle),)))


def handles(made: Any) -> Iterator[Val]:
    """The handles that a call gave back."""
    for item in made if isinstance(made, list | tuple) else (made,):
        if isinstance(item, Val):
            yield item


class Replay:
    """The steps made again in another definition."""

    def __init__(self, fd: FusionDefinition) -> None:
        self.fd = fd
        self.handles: dict[int, Val] = {}

    def do(self, step: Step) -> Any:
        """Make a step, and keep what it made."""
        args = [self.given(arg) for arg in step.args]
        kwargs = {key: self.given(arg) for key, arg in step.kwargs.items()}
        owner = self.fd.ops if step.name.startswith("ops.") else self.fd
        made = getattr(owner, step.op)(*args, **kwargs)
        self.handles.update(zip(step.made, handles(made), strict=False))
        return made

    def given(self, arg: Any) -> Any:
        """An argument with this definition's handles for the references in it."""
        if isinstance(arg, Ref):
            return self.handles[arg.number]
        if type(arg) in (list, tuple) and any(isinstance(item, Ref) for item in arg):
            return type(arg)(map(self.given, arg))
        return arg.make(self.fd) if hasattr(arg, "make") else arg
