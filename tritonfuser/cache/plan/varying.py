"""Objects of a plan that depend on sizes, and their values at given sizes.

The text of a plan is the same at all sizes of a variant. Where a number varies it has a name
there, ``size0`` or ``dims0``, whose value is put into the scope of the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...lowering.device_lib.division_functions import inverse_of
from ...lowering.kernel_source import InverseArg
from ...symbolic.evaluation import AtomValues, evaluate, has_sizes
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.sizes import size_of_atom

T = TypeVar("T")


class Varying:
    """Names for what varies, each with how it is made from the objects at some sizes."""

    def __init__(self, env: ShapeEnv | None) -> None:
        self.env = env
        self._makers: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._fixed: dict[int, Any] = {}
        self._names: dict[str, str] = {}

    def text(self, value: int | tuple[int, ...]) -> str:
        """A number, or some, as an expression: a name where it varies."""
        text = repr(value)
        if not has_sizes(value):
            return text
        if text not in self._names:
            name = text if text.isidentifier() else f"dims{len(self._names)}"
            self._names[text] = name
            self.make(name, _itself, value)
        return self._names[text]

    def atom(self, name: str) -> str:
        """An atom of the env by its name."""
        self.make(name, _itself, self._size(name))
        return name

    def inverse(self, arg: InverseArg) -> str:
        """What a kernel divides by an atom with."""
        self.make(arg.name, _inverse, self._size(arg.size), arg)
        return arg.name

    def _size(self, name: str) -> int:
        """The atom of that name as a size."""
        assert self.env is not None
        return size_of_atom(self.env, next(atom for atom in self.env.atoms if atom.name == name))

    def make(self, name: str, maker: Callable[..., Any], *given: Any) -> Any:
        """``maker(*given)`` under a name; what it is in this run."""
        if not any(has_sizes(item) for item in given):
            return maker(*given)
        self._makers[name] = (maker, given)
        assert self.env is not None
        return maker(*evaluate(given, [atom.hint for atom in self.env.atoms]))

    def scope(self, atoms: AtomValues) -> dict[str, Any]:
        """All that varies, by name."""
        return {
            name: maker(*evaluate(given, atoms, self._fixed))
            for name, (maker, given) in self._makers.items()
        }

    def at(self, value: T, atoms: AtomValues) -> T:
        """An object that lives as long as this, with all sizes in it as numbers."""
        return value if self.env is None else evaluate(value, atoms, self._fixed)


def _itself(value: Any) -> Any:
    return value


def _inverse(size: int, arg: InverseArg) -> int:
    return inverse_of(size, arg.dtype.info.bits)[arg.is_shift]
