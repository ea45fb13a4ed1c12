"""``FusionCache`` of nvFuser's first frontend: every definition of a process, once."""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import disk
from ...errors import DefinitionError, TritonFuserError
from ...forks import Lock
from ...pickling import Unpicklable
from ..record.layouts import compute_tensor_descriptor
from ..run.executors import FusionExecutorCache
from ..run.fusion import Fusion
from ..vocabulary.location import user_line
from .definition_cache import LRUCache, check_limit

FORMAT = "tritonfuser definitions"
"""What a file of definitions says that it is."""


class FusionCache(Unpicklable):
    """The definitions recorded with the legacy frontend; equal ones share what is compiled.

    Not made by hand: ``FusionCache.get()``.
    """

    send_instead = "Each process has its own: send the definitions, which are added to it."
    _only: FusionCache | None = None
    _making = Lock()

    def __init__(self, max_fusions: int) -> None:
        self._max = max_fusions
        self._fusions = LRUCache(max_fusions)
        self._adding = Lock()

    def __repr__(self) -> str:
        return f"<FusionCache: {self.num_fusions()} of at most {self._max} fusions>"

    @classmethod
    def get(
        cls,
        max_fusions: int = 8192,
        selected_device: int | None = None,
        load_from_default_workspace: bool = True,
    ) -> FusionCache:
        """The one cache; the arguments count where it is made.

        Parameters
        ----------
        max_fusions : int
            Most definitions.
        selected_device : int, optional
            Accepted: definitions are of no device.
        load_from_default_workspace : bool
            Whether it has the definitions of the last ``serialize()``, where there are any.
        """
        check_limit("FusionCache.get", max_fusions)
        with FusionCache._making:
            found = FusionCache._only
            if found is None:
                found = cls(max_fusions)
                # Of another version, or in no state: as if there were none.
                with suppress(OSError, TritonFuserError):
                    if load_from_default_workspace:
                        found.deserialize(_workspace())
                FusionCache._only = found
            return found

    @classmethod
    def reset(cls) -> None:
        """Forget all definitions."""
        with FusionCache._making:
            FusionCache._only = None

    def num_fusions(self) -> int:
        """How many different definitions there are."""
        return self._fusions.num_fusions()

    def stats(self) -> str:
        """Counts of definitions, look-ups and hits."""
        return self._fusions.stats()

    def print_stats(self) -> None:
        """Print ``stats()``."""
        sys.stdout.write(self.stats())

    def add(self, fusion: Fusion) -> FusionExecutorCache:
        """What runs a definition, shared with all equal ones.

        Raises
        ------
        DefinitionError
            There is no room for another definition.
        """
        with self._adding:
            if self.num_fusions() >= self._max and not self._fusions.knows(fusion):
                raise DefinitionError(
                    f"the FusionCache is full: {self._max} fusions",
                    loc=user_line(),
                    hint="FusionCache.reset(), then FusionCache.get(max_fusions=...) for more.",
                )
            return self._fusions.cache_compile(fusion)

    def serialize(self, filename: str | os.PathLike[str]) -> None:
        """Write all definitions to a file, as plain data; kernels stay in Triton's own cache.

        Raises
        ------
        OSError
            It cannot be written.
        """
        found = [fusion.to_dict() for fusion in self._fusions.fusions()]
        disk.replace_json(Path(filename), {"format": FORMAT, "definitions": found})

    def deserialize(self, filename: str | os.PathLike[str]) -> None:
        """Add the definitions that ``serialize`` wrote. Nothing in the file is executed.

        Raises
        ------
        OSError
            It cannot be read.
        DefinitionError
            It is no such file, or there is no room.
        """
        try:
            data: Any = json.loads(Path(filename).read_text())
        except (ValueError, RecursionError):
            data = None
        is_ours = isinstance(data, dict) and data.get("format") == FORMAT
        if not is_ours or not isinstance(data.get("definitions"), list):
            raise DefinitionError(
                f"{os.fspath(filename)}: expected definitions that serialize() wrote",
                loc=user_line(),
            )
        # All of them, or none.
        for fusion in [Fusion.from_dict(one) for one in data["definitions"]]:
            fusion.namespace, fusion.cuda_only = "nvfuser", True
            self.add(fusion)


def _workspace() -> Path:
    return disk.cache_folder() / "definitions.json"


def serialize() -> None:
    """Write the definitions of this process to the user's directory for caches.

    Raises
    ------
    OSError
        They cannot be written.
    """
    FusionCache.get().serialize(_workspace())


def _serialize_at_exit() -> None:
    try:
        serialize()
    except OSError as error:
        sys.stderr.write(f"the definitions are not written: {error}\n")


def enable_automatic_serialization() -> None:
    """Have ``serialize()`` called when the process ends."""
    atexit.register(_serialize_at_exit)


def disable_automatic_serialization() -> None:
    """Undo ``enable_automatic_serialization``."""
    atexit.unregister(_serialize_at_exit)


def compute_contiguity(sizes: Sequence[int], strides: Sequence[int]) -> list[bool | None]:
    """The contiguity alone of what ``compute_tensor_descriptor`` gives."""
    return compute_tensor_descriptor(sizes, strides)[0]
