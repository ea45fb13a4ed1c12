"""The patches that Triton's interpreter makes to ``triton.language``: recorded, applied, undone.

Finding out what to change costs it a millisecond a call; making known changes, a few hundredths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

from .language import positions

_MISSING = object()
_Change = tuple[Any, str, Any]


class Changes:
    """Attributes of modules and classes to be replaced, and put back.

    Parameters
    ----------
    items : list of (object, name, value)
        A later entry wins over an earlier one of the same place.
    """

    def __init__(self, items: list[_Change]) -> None:
        latest = {(id(owner), name): (owner, name, value) for owner, name, value in items}
        self._items = list(latest.values())
        self._before: list[_Change] = []

    def apply(self) -> Changes:
        for owner, name, value in self._items:
            self._before.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, value)
        return self

    def restore(self) -> None:
        """Put back what is replaced, if anything is."""
        while self._before:
            owner, name, value = self._before[-1]
            if value is not _MISSING:
                setattr(owner, name, value)
            elif name in vars(owner):
                delattr(owner, name)
            self._before.pop()


class Patch:
    """The interpreter's own changes, and the builder they work on."""

    def __init__(self, function: Any) -> None:
        self.builder = interpreter.interpreter_builder
        self.semantic = interpreter.interpreter_semantic
        scope = interpreter._patch_lang(function)
        try:
            places = [(owner, name) for owner, name, _ in scope._changes]
            changes = [(owner, name, vars(owner)[name]) for owner, name in places]
            # A program's number is an array of one, which int() takes no more.
            changes.append((tl.tensor, "__index__", lambda self: int(self.handle.data.item())))
            changes.append((tl, "range", positions))
            self._language = Changes(changes)
        finally:
            scope.restore()

    @contextmanager
    def in_place(self, call: Callable[..., Any]) -> Iterator[None]:
        """For the time of a run: the interpreter makes these changes when it patches.

        ``call`` stands for calling a jitted function, which the compiler's objects refuse.
        """
        hooks = Changes(
            [
                (interpreter, "interpreter_builder", self.builder),
                (interpreter, "interpreter_semantic", self.semantic),
                (interpreter, "_patch_lang", lambda function: self._language.apply()),
                (JITFunction, "__call__", call),
                # With TRITON_INTERPRET set, what a kernel's text calls is of this class.
                (interpreter.InterpretedFunction, "__call__", call),
            ]
        )
        try:
            hooks.apply()
            yield
        finally:
            try:
                self._restore(hooks)
            finally:
                self._restore(hooks)  # nothing, unless a signal interrupted the first time

    def _restore(self, hooks: Changes) -> None:
        # Triton has put back its own, unless it was interrupted where it begins or ends to patch.
        self._language.restore()
        hooks.restore()
