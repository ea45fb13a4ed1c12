"""The time that a thread spends on imports."""

from __future__ import annotations

import importlib
import threading
import time
from typing import Any
from unittest import mock


class ImportClock:
    """Context manager that measures the seconds its thread spends on imports.

    Like ``python -X importtime`` it wraps ``importlib._bootstrap._find_and_load``, which runs for
    modules that are not loaded yet. Nested imports count once.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False
        bootstrap: Any = importlib._bootstrap
        self._find = bootstrap._find_and_load
        self._patch = mock.patch.object(bootstrap, "_find_and_load", self._timed)

    def __enter__(self) -> ImportClock:
        self._thread = threading.get_ident()
        self._patch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._patch.stop()

    def _timed(self, *args: Any) -> Any:
        if self._inside or threading.get_ident() != self._thread:
            return self._find(*args)
        self._inside = True
        begun = time.perf_counter()
        try:
            return self._find(*args)
        finally:
            self.seconds += time.perf_counter() - begun
            self._inside = False
