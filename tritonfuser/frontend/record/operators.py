"""``fd.ops``: one method for each row of the op table, with its signature and docstring.

What type checkers see is ``operators.pyi``, which docs/stubs.py writes from the same table.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from ...ops.registry import OPS
from ...ops.table import Op
from .op_signatures import docstring_of, signature_of

Record = Callable[..., Any]
"""``record(name, *args, **kwargs)``: where the ops are recorded."""


class Operators:
    """The ops of a definition: ``fd.ops.add(x, y)`` records an addition and returns its result.

    Operands are tensors and scalars of the definition being recorded, or Python numbers. Names
    of parameters may be used for all arguments.
    """

    def __init__(self, record: Record) -> None:
        self._record = record

    def __getattr__(self, name: str) -> Callable[..., Any]:
        near = difflib.get_close_matches(name, OPS, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(f"fd.ops has no op {name!r}{hint}")


def _method(op: Op) -> Callable[..., Any]:
    def method(self: Operators, /, *args: Any, **kwargs: Any) -> Any:
        return self._record(op.name, *args, **kwargs)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signature = signature_of(op)
    method.__name__ = op.name
    method.__qualname__ = f"Operators.{op.name}"
    method.__doc__ = docstring_of(op)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *signature.parameters.values()]
    )
    return method


for _op in OPS.values():
    setattr(Operators, _op.name, _method(_op))
