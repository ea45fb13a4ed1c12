"""Kernel text -> a live module without a file, with its lines for tracebacks and ``inspect``."""

from __future__ import annotations

import hashlib
import linecache
import re
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from triton.runtime import jit
from triton.runtime.jit import JITFunction

from ...errors import LoweringError, SourceLoc
from ...forks import Lock
from ..kernel_source import KernelSource

_NAME = re.compile(r"[a-z0-9_]+")
_lock = Lock()
_modules: weakref.WeakValueDictionary[str, ModuleType] = weakref.WeakValueDictionary()


def file_name(source: KernelSource) -> str:
    """The pseudo file of a kernel: ``<tritonfuser kernel NAME DIGEST>``."""
    digest = hashlib.sha256(source.text.encode()).hexdigest()[:16]
    return f"<tritonfuser kernel {source.name} {digest}>"


def load_module(source: KernelSource) -> ModuleType:
    """Execute the text of a kernel in a module of its own; equal texts share one.

    The text is kept in ``linecache`` as long as the module lives: Triton reads a kernel's source
    through ``inspect``.

    Raises
    ------
    LoweringError
        The text is no valid Python, or does not define the kernel.
    """
    if not _NAME.fullmatch(source.name):
        raise LoweringError(f"{source.name!r} is no name of a generated kernel")
    name = file_name(source)
    with _lock:
        module = _modules.get(name)
        if module is None:
            module = _execute(source, name)
            _modules[name] = module
    return module


def _execute(source: KernelSource, name: str) -> ModuleType:
    module = ModuleType(f"tritonfuser_{source.name}")
    module.__file__ = name
    # Functions hold their globals, not their module: so it lives as long as they do.
    module.__dict__["__tritonfuser_module__"] = module
    # No modification time: then linecache.checkcache leaves the entry alone.
    lines = (len(source.text), None, source.text.splitlines(True), name)
    linecache.cache[name] = lines
    weakref.finalize(module, _forget, name, lines)
    try:
        exec(compile(source.text, name, "exec"), module.__dict__)
    except Exception as error:
        raise failure(
            source, f"{type(error).__name__}: {error}", error_line(error, name)
        ) from error
    if source.name not in module.__dict__:
        raise LoweringError(f"the text of kernel {source.name} does not define it")
    # Triton 3.7 and later keep every jitted function by name, and so for ever.
    by_name = getattr(jit, "_triton_jit_function_registry", {})
    for found in [key for key in by_name if key.startswith(f"{module.__name__}:")]:
        del by_name[found]
    return module


def _forget(name: str, lines: object) -> None:
    """Drop the lines of a module that is gone, unless another one of the same text has come since.

    Between the two weak references to a module, that of ``_modules`` and its finalizer's, another
    thread may run.
    """
    if linecache.cache.get(name) is lines:
        del linecache.cache[name]


def jit_function(source: KernelSource) -> Any:
    """The kernel as Triton's JITFunction."""
    found = load_module(source).__dict__[source.name]
    return found if isinstance(found, JITFunction) else JITFunction(plain_function(source))


def plain_function(source: KernelSource) -> Callable[..., None]:
    """The kernel as the Python function that was decorated."""
    found = load_module(source).__dict__[source.name]
    plain: Callable[..., None] = getattr(found, "fn", found)
    return plain


# --- errors in generated code --------------------------------------------------------------------


def error_line(error: BaseException, name: str) -> int | None:
    """The innermost line of the pseudo file ``name`` in a traceback or a syntax error."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def user_line(source: KernelSource, line: int | None) -> SourceLoc | None:
    """The user's line that a line of the kernel, or the nearest above it, was made for."""
    above = [(number, loc) for number, loc in source.lines if line and number <= line]
    return max(above, key=lambda item: item[0])[1] if above else None


def excerpt(source: KernelSource, line: int | None, around: int = 4) -> str:
    """The kernel's text around a line, numbered and marked; all of it where line is None."""
    lines = source.text.splitlines()
    first = max(line - 1 - around, 0) if line else 0
    last = line + around if line else len(lines)
    return "\n".join(
        f"{'>' if number == line else ' '} {number:4} | {text}"
        for number, text in enumerate(lines[first:last], first + 1)
    )


def failure(source: KernelSource, what: str, line: int | None) -> LoweringError:
    """A LoweringError that shows the kernel's line and points at the user's."""
    return LoweringError(
        f"kernel {source.name}: {what}\n{excerpt(source, line)}",
        loc=user_line(source, line),
        hint="This is a fault of tritonfuser: please report it with the definition.",
    )
