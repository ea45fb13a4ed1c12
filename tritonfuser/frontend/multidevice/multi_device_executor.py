"""``MultiDeviceExecutor``: nvFuser's class that runs a fusion over a mesh by itself."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from ...cache.executor import FusionExecutorCache
from ...errors import ArgumentError, UndefinedFusionError
from ...ir import Fusion
from ...lowering.run_options import RunOptions
from ..record.inputs import Inputs, flatten_inputs, locate_errors
from ..record.recording import Recording
from ..record.sharding import Shardings
from ..vocabulary.enums import CommunicatorBackend
from .sharded_executor import ShardedExecutor


class MultiDeviceExecutorParams:
    """What nvFuser's executor over a mesh can be told; results do not depend on it.

    Attributes
    ----------
    backend_type : CommunicatorBackend
        Accepted: parts are exchanged by the backend that torch.distributed has for the device.
    use_allocation_cache : bool
        Accepted: memory always comes from torch's caching allocator.
    offset_stream_indexing_by_rank : bool
        Accepted: the steps of a loop over streams are computed together.

    Raises
    ------
    ArgumentError
        A TypeError: a value of another type.
    AttributeError
        Another attribute is set.
    """

    __slots__ = ("backend_type", "offset_stream_indexing_by_rank", "use_allocation_cache")
    backend_type: CommunicatorBackend
    offset_stream_indexing_by_rank: bool
    use_allocation_cache: bool

    def __init__(self) -> None:
        self.backend_type = CommunicatorBackend.nccl
        self.use_allocation_cache = False
        self.offset_stream_indexing_by_rank = True

    def __setattr__(self, name: str, value: Any) -> None:
        wanted = CommunicatorBackend if name == "backend_type" else bool
        if name in self.__slots__ and not isinstance(value, wanted):
            raise ArgumentError(
                f"MultiDeviceExecutorParams.{name}: incompatible function arguments: expected a "
                f"{wanted.__name__}, got {value!r}"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"MultiDeviceExecutorParams({fields})"


class HasShardings(Protocol):
    """A frontend Fusion."""

    @property
    def ir(self) -> Fusion: ...

    @property
    def shardings(self) -> Shardings: ...

    def defined(self) -> bool: ...

    def options_for(self, given: Inputs) -> RunOptions: ...


class MultiDeviceExecutor:
    """Runs a fusion over a mesh, as ``fd.run`` does.

    Parameters
    ----------
    fusion : Fusion
        ``fd.fusion``. Ops added to it afterwards have no effect.
    params : MultiDeviceExecutorParams, optional
        As nvFuser has them.

    Raises
    ------
    UndefinedFusionError
        Nothing is recorded.
    """

    def __init__(self, fusion: Any, params: MultiDeviceExecutorParams | None = None) -> None:
        if params is not None and not isinstance(params, MultiDeviceExecutorParams):
            raise ArgumentError(
                "MultiDeviceExecutor(): incompatible function arguments: expected "
                f"MultiDeviceExecutorParams, got {params!r}"
            )
        if not isinstance(fusion, Recording):
            raise ArgumentError(
                "MultiDeviceExecutor(): incompatible function arguments: expected a Fusion, "
                f"got {fusion!r}"
            )
        self._recording: Recording = fusion
        self._fusion: HasShardings = _as_fusion(fusion)
        self.params = params or MultiDeviceExecutorParams()
        shardings = self._fusion.shardings
        self._core = (
            ShardedExecutor(fusion.ir, shardings) if shardings else FusionExecutorCache(fusion.ir)
        )

    def run(self, args: Inputs) -> list[torch.Tensor]:
        """This device's parts of the outputs, of its parts of the inputs."""
        given = flatten_inputs(args)
        with locate_errors(self._recording):
            return self._core.execute(given, self._fusion.options_for(given))

    def __str__(self) -> str:
        """What this device does, step by step, as the last run did."""
        core = self._core
        program = core.newest_program() if isinstance(core, ShardedExecutor) else None
        return str(self._recording if program is None else program)


def _as_fusion(fusion: Any) -> HasShardings:
    if not fusion.defined():
        raise UndefinedFusionError("Fusion is empty!")
    found: HasShardings = fusion
    return found
