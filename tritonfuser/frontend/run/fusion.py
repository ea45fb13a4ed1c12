"""``Fusion``: a recorded definition; ``FusionGuard``: makes it the one being recorded into."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch

from ... import options
from ...cache.dry_run import lower_for
from ...cache.executor import FusionExecutorCache
from ...dtypes import DataType
from ...errors import ArgumentError, DefinitionError, UndefinedFusionError
from ...heuristics.params import HeuristicParams
from ...lowering.run_options import DEFAULT, RunOptions
from ..inspect.legacy_printer import print_legacy_definition
from ..inspect.printer import print_definition
from ..record.handles import wrap
from ..record.inputs import Inputs, flatten_inputs, locate_errors, refuse_cpu, run_or_flatten
from ..record.operators import Operators
from ..record.recording import Recording, outside
from ..record.tensor_forms import DefinesTensors
from ..record.tensor_view import TensorView
from ..record.val import Val
from ..serialization.decode import restore
from ..serialization.encode import recording_data
from ..tune.stored_tuning import first_tuning
from ..vocabulary.argument_types import expect
from ..vocabulary.location import user_line
from ..vocabulary.untraced import untraced
from .arguments import with_device
from .bound_plan import BoundPlan, bind
from .example_inputs import example_inputs

_NAMESPACES = ("tritonfuser", "nvfuser_direct", "nvfuser")


class Fusion(Recording):
    """A definition outside of a ``FusionDefinition``: recorded under a ``FusionGuard``.

    ``Fusion()`` makes one, ``Fusion(id)`` finds the one whose ``id()`` that is.

    >>> fusion = Fusion()
    >>> with FusionGuard(fusion):
    ...     t = define_tensor(shape=[-1], contiguity=True)
    ...     fusion.add_input(t)
    ...     fusion.add_output(ops.relu(t))
    """

    cuda_only = False
    """Whether CPU tensors other than scalars are refused; the definition that records it says."""

    _by_id: dict[int, Fusion] = {}  # noqa: RUF012 - one table for all, by design

    def __new__(cls, id: int | None = None) -> Fusion:
        if id is None:
            return super().__new__(cls)
        expect("Fusion", int, id)
        if id not in cls._by_id:
            raise DefinitionError(f"there is no Fusion of id {id}", loc=user_line())
        return cls._by_id[id]

    def __init__(self, id: int | None = None) -> None:
        if id is None:
            super().__init__()
            self._id: int | None = None
            self._executor: FusionExecutorCache | None = None
            self.scheduled: HeuristicParams | None = None

    def id(self) -> int:
        """The number for ``Fusion(id)``. From this call on the process keeps the fusion alive."""
        if self._id is None:
            self._id = len(self._by_id)
            self._by_id[self._id] = self
        return self._id

    def defined(self) -> bool:
        """Whether it has outputs."""
        return bool(self.ir.outputs)

    def inputs(self) -> list[Val]:
        """The inputs in order."""
        return [wrap(self, value) for value in self.ir.inputs]

    def outputs(self) -> list[TensorView]:
        """The outputs in order, with those that are only written into an input."""
        return [wrap(self, out.value) for out in self.ir.outputs]

    def vals(self) -> list[Val]:
        """All values in the order they came."""
        made = [value for node in self.ir.nodes for value in node.outs]
        return [wrap(self, value) for value in (*self.ir.inputs, *made)]

    def to_dict(self) -> dict[str, Any]:
        """What was recorded, as plain data; see ``FusionDefinition.to_dict``."""
        return recording_data(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Fusion:
        """A Fusion from the data of ``to_dict``; see ``FusionDefinition.from_dict``."""
        fusion = cls()
        restore(fusion, data)
        return fusion

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_fusion, (self.to_dict(), self.cuda_only, self.namespace)

    @untraced
    def execute(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Run it as ``FusionDefinition.run`` does."""
        execute = self._core().execute
        if not self.gpu_only():
            return run_or_flatten(execute, self, inputs)
        given = flatten_inputs(inputs)
        with locate_errors(self):
            return execute(given, self.options_for(given))

    def plan(self, inputs: Sequence[Any]) -> BoundPlan:
        """The bound plan of ``execute`` for inputs like these; see ``FusionDefinition.plan``."""
        given = flatten_inputs(inputs)
        with locate_errors(self):
            return bind(self._core(), given, self, self.options_for(given))

    def gpu_only(self) -> bool:
        """Whether CPU tensors other than scalars are refused now; see ``NVF_CPU_AS_CUDA``."""
        return self.cuda_only and not options.current().cpu_as_cuda

    def options_for(self, given: Inputs, wanted: RunOptions = DEFAULT) -> RunOptions:
        """The options of a run on flat inputs: those wanted, with the device.

        Raises
        ------
        UnsupportedDeviceError
            A CPU tensor with dims, where these are refused.
        InputError
            The device asked for is not that of the inputs.
        """
        gpu_only = self.gpu_only()
        if gpu_only:
            refuse_cpu(self.ir, given)
        return with_device(wanted, given, gpu_only=gpu_only)

    def _core(self) -> FusionExecutorCache:
        if self._executor is None:
            if not self.defined():
                raise UndefinedFusionError("Fusion is empty!", loc=user_line())
            self.dump()
            self._executor = FusionExecutorCache(self.ir, tune=first_tuning(self))
        return self._executor

    def dump(self) -> None:
        """Print the program if ``TRITONFUSER_DUMP`` has ``python_definition``.

        It is the text of ``repr(fd)``. nvFuser's own variable, and programs written for its first
        frontend, get the text of that.
        """
        if "python_definition" not in options.dump_stages():
            return
        ours = "python_definition" in options.current().dump and self.namespace != "nvfuser"
        text = (
            print_definition(self.ir)
            if ours
            else print_legacy_definition(self.ir, self.id(), self.written_axes)
        )
        options.dump("python_definition", text.rstrip("\n"))

    def print(self) -> None:
        """Print the ops; the same as ``print_math``."""
        self.print_math()

    def print_math(self) -> None:
        """Print the inputs, the ops and the outputs, a line each."""
        sys.stdout.write(f"{self.ir}\n")

    def print_kernel(self, inputs: Sequence[Any] | None = None) -> None:
        """Print the generated kernels.

        Parameters
        ----------
        inputs : sequence, optional
            Example inputs. Without them symbolic extents are taken as 128, or less where a tensor
            would have too many elements to count its bytes.
        """
        given = example_inputs(self.ir) if inputs is None else flatten_inputs(inputs)
        for kernel in lower_for(self.ir, given)[0].sources:
            if kernel is not None:
                sys.stdout.write(f"{kernel.text}\n")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fusion):
            return False
        return self.ir == other.ir and self.shardings == other.shardings

    def __str__(self) -> str:
        return str(self.ir)


def restored_fusion(
    data: dict[str, Any], cuda_only: bool = False, namespace: str = "tritonfuser"
) -> Fusion:
    """A Fusion from plain data. Copies and pickles of fusions call it.

    Parameters
    ----------
    data : dict
        From ``to_dict``.
    cuda_only : bool
        Whether CPU tensors other than scalars are refused.
    namespace : str
        The module whose names the program knows.

    Raises
    ------
    ArgumentError
        There is no such namespace.
    DefinitionError
        The data is no definition.
    """
    if namespace not in _NAMESPACES:
        raise ArgumentError(
            f"restored_fusion(): incompatible function arguments: expected a namespace, one of "
            f"{', '.join(_NAMESPACES)}, got {namespace!r}",
            loc=user_line(),
        )
    fusion = Fusion.from_dict(data)
    fusion.cuda_only = bool(cuda_only)
    fusion.namespace = namespace
    return fusion


_current: ContextVar[tuple[Fusion, ...]] = ContextVar("current", default=())
"""The fusions being recorded in this thread, or in this task of asyncio, innermost last."""


class FusionGuard:
    """Makes a fusion the one that ``define_tensor``, ``define_scalar`` and ``ops`` record into."""

    def __init__(self, fusion: Fusion) -> None:
        expect("FusionGuard", Fusion, fusion)
        self._fusion = fusion

    def __enter__(self) -> FusionGuard:
        self._fusion.open += 1
        _current.set((*_current.get(), self._fusion))
        return self

    def __exit__(self, *exception: object) -> None:
        self._fusion.open -= 1
        # Others may have been entered since and not left yet, as by generators that take turns.
        stack = _current.get()
        own = max((n for n, fusion in enumerate(stack) if fusion is self._fusion), default=None)
        if own is not None:
            _current.set(stack[:own] + stack[own + 1 :])

    @staticmethod
    def get_current(what: str = "FusionGuard.get_current") -> Fusion:
        """The innermost fusion being recorded."""
        if not _current.get():
            raise outside(what, user_line())
        return _current.get()[-1]


class _CurrentFusion(DefinesTensors):
    def _define_tensor(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TensorView:
        return FusionGuard.get_current("define_tensor").new_tensor(*args, **kwargs)


define_tensor = _CurrentFusion().define_tensor
"""A tensor of the current fusion, not yet an input; as ``FusionDefinition.define_tensor``."""


def define_scalar(value: Any = None, dtype: DataType | torch.dtype | None = None) -> Val:
    """A scalar of the current fusion, not yet an input; as ``FusionDefinition.define_scalar``."""
    return FusionGuard.get_current("define_scalar").new_scalar(value, dtype)


def _record(name: str, *args: Any, **kwargs: Any) -> Any:
    return FusionGuard.get_current(f"ops.{name}").call(name, *args, **kwargs)


ops = Operators(_record)
"""The ops, recorded into the current fusion."""
