"""Triton's directory of compiled kernels: where it is, what is done about broken entries, and the
error where it cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from triton import knobs
from triton.runtime.cache import FileCacheManager

from ... import options
from ...errors import CacheDirectoryError
from ...forks import Lock

_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
"""What an operating system says of a directory that takes no file."""


_BROKEN = (ValueError, LookupError, TypeError, AttributeError, OSError)
"""What reading an entry raises whose files are gone, or hold something else."""

_ATTEMPTS = 2
"""To make an entry anew that goes meanwhile; one more says what is wrong."""

_renewing = Lock()


def directory() -> Path:
    """Where Triton keeps compiled kernels: ``TRITON_CACHE_DIR``, or a folder in the home."""
    return Path(str(knobs.cache.dir))


def renew_if_broken(compile_kernel: Callable[[], Any], kinds: Sequence[str]) -> Any:
    """``compile_kernel()``, called again without cached entries where one of them is broken.

    Programs that clean up may remove some of an entry's files, or the directory while it is written
    to, and a machine that stops may leave empty ones.

    Parameters
    ----------
    compile_kernel : callable
        ``triton.compile`` with its arguments: it looks into the directory first.
    kinds : sequence of str
        The texts and binaries that a whole entry has: ``"ptx"``, ``"cubin"``.
    """
    try:
        found = compile_kernel()
        if all(found.asm.get(kind) for kind in kinds):
            return found
    except _BROKEN as error:
        if directory_error(error) is not None and not isinstance(error, FileNotFoundError):
            raise
    for _ in range(_ATTEMPTS):
        options.log("compile", f"an entry of {directory()} is broken and made anew")
        with suppress(FileNotFoundError), _without_entries():
            return compile_kernel()
    with _without_entries():
        return compile_kernel()


def retry_if_removed(build: Callable[[], None]) -> None:
    """Call what builds a launcher: once more where the directory is removed while it is written to,
    or before what was written is read.

    Parameters
    ----------
    build : callable
        ``_init_handles`` of Triton's: it makes the directory, and keeps nothing of a failed call.
    """
    for _ in range(_ATTEMPTS):
        try:
            return build()
        except (FileNotFoundError, ImportError) as error:
            if not _is_gone(error):
                raise
            options.log("compile", f"a launcher of {directory()} is gone and built anew")
    return build()


def _is_gone(error: FileNotFoundError | ImportError) -> bool:
    """Whether an error is about a file of the directory that is not there any more."""
    path = error.path if isinstance(error, ImportError) else error.filename
    if not isinstance(path, str | os.PathLike) or os.path.exists(path):
        return False
    return Path(os.path.abspath(path)).is_relative_to(os.path.abspath(directory()))


@contextmanager
def _without_entries() -> Iterator[None]:
    """A block in which Triton reads no cached entry, and overwrites them."""

    class Blind(knobs.cache.manager_class or FileCacheManager):  # type: ignore[misc]
        def get_group(self, filename: str) -> dict[str, str] | None:
            return None

    with _renewing, knobs.cache.scope():
        knobs.cache.manager_class = Blind
        yield


_NO_FOLDER = "Could not create or locate cache dir"
"""What Triton's ``FileCacheManager`` says of an empty ``TRITON_CACHE_DIR``."""


def directory_error(error: BaseException) -> CacheDirectoryError | None:
    """The error to raise where ``error`` came from writing compiled kernels; else None."""
    folder = directory()
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, RuntimeError) and str(cause) == _NO_FOLDER:
            return CacheDirectoryError(
                "there is no directory for compiled kernels: TRITON_CACHE_DIR is set and empty",
                hint="Set TRITON_CACHE_DIR to a directory that can be written to, or unset it.",
            )
        if isinstance(cause, OSError) and _is_about(cause, folder):
            return CacheDirectoryError(
                f"compiled kernels cannot be written to {folder}: {cause.strerror or cause}",
                hint="Set TRITON_CACHE_DIR to a directory that can be written to, or free space.",
            )
        if isinstance(cause, UnicodeEncodeError) and str(cause.object).startswith(str(folder)):
            return CacheDirectoryError(
                f"compiled kernels cannot be written to {str(folder)!a}: {_not_encoded(cause)}",
                hint="Set TRITON_CACHE_DIR to a directory with a name of ASCII characters, or "
                "PYTHONUTF8=1.",
            )
        cause = cause.__cause__ or cause.__context__
    return None


def _not_encoded(error: UnicodeEncodeError) -> str:
    """What keeps Python from naming a file: its encoding is that of the locale."""
    wrong = error.object[error.start : error.end]
    return f"names of files are written in {error.encoding} here, which has no {wrong!a}"


def _is_about(error: OSError, folder: Path) -> bool:
    if error.errno in _REFUSED and error.filename is None:
        return True  # a write to an open file names none
    if not isinstance(error.filename, str | os.PathLike):
        return False
    path, own = Path(os.path.abspath(error.filename)), Path(os.path.abspath(folder))
    # Making the directory fails at the first of its parents that cannot be made.
    return path.is_relative_to(own) or own.is_relative_to(path)


def write_problem(folder: Path) -> str:
    """Why no file can be written in a directory, which is made if need be; empty where one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeEncodeError as error:
        return _not_encoded(error)
    return ""
