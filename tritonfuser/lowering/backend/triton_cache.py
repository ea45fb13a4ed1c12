"""Triton's directory of compiled kernels: where it is, and the error where it cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from triton import knobs

from ...errors import CacheDirectoryError

_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
"""What an operating system says of a directory that takes no file."""


def directory() -> Path:
    """Where Triton keeps compiled kernels: ``TRITON_CACHE_DIR``, or a folder in the home."""
    return Path(str(knobs.cache.dir))


def directory_error(error: BaseException) -> CacheDirectoryError | None:
    """The error to raise where ``error`` came from writing compiled kernels; else None."""
    folder = directory()
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and _is_about(cause, folder):
            return CacheDirectoryError(
                f"compiled kernels cannot be written to {folder}: {cause.strerror or cause}",
                hint="Set TRITON_CACHE_DIR to a directory that can be written to, or free space.",
            )
        cause = cause.__cause__ or cause.__context__
    return None


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
    return ""
