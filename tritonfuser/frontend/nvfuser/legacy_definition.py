"""``FusionDefinition`` of nvFuser's first frontend: its forms, and a place in the FusionCache."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from typing import Any

import torch

from ...cache.plan.execution_plan import ExecutionPlan
from ...dtypes import DataType
from ...errors import ArgumentError, InputError
from ..definition import FusionDefinition
from ..inspect.profiler import PythonProfiler
from ..inspect.profiles import FusionProfile
from ..record.inputs import Inputs
from ..record.tensor_view import TensorView
from ..record.val import Val, Vector
from ..run.validation import get_val_tolerances
from ..serialization.decode import restore
from ..vocabulary.argument_types import expect
from ..vocabulary.location import user_line
from .fusion_cache import FusionCache
from .operators import LegacyOperators


class LegacyFusionDefinition(FusionDefinition):
    """A FusionDefinition that goes into the FusionCache when its ``with`` block ends."""

    Operators = LegacyOperators
    namespace = "nvfuser"

    _profile: FusionProfile | None = None
    _debug_output: str | None = None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._restored()

    def _restored(self) -> None:
        if self.fusion.defined():
            self._cache = FusionCache.get().add(self.fusion)

    # --- recording -------------------------------------------------------------------------

    def define_vector(
        self, size: int | Sequence[int | Val], dtype: DataType | torch.dtype = DataType.Int
    ) -> Vector:
        """Scalars in a row.

        Parameters
        ----------
        size : int or list of (int or Val)
            That many inputs, which are given to ``execute`` as one list; or numbers and scalars.
        dtype : DataType or torch.dtype
            Of the numbers.
        """
        given: Any = size
        if not isinstance(given, list | tuple):
            return Vector(super().define_vector(given))
        return Vector(
            item if isinstance(item, Val) else self.define_scalar(item, dtype) for item in given
        )

    def add_output(
        self,
        output: TensorView,
        alias_input: TensorView | Sequence[int] | None = None,
        stride_order: Sequence[int] | None = None,
    ) -> None:
        """Return a tensor from ``execute``, or write it into an input.

        Parameters
        ----------
        output : TensorView
            A tensor of this definition.
        alias_input : TensorView, optional
            An input that the output is written into. A list in its place is ``stride_order``.
        stride_order : list of int, optional
            For each dim its place in memory, 0 the fastest.
        """
        if isinstance(alias_input, list | tuple):
            alias_input, stride_order = None, alias_input
        if stride_order and alias_input is not None:
            raise ArgumentError(
                "add_output(): an input that is written into has its own stride order",
                loc=user_line(),
            )
        if stride_order:
            output = self.ops.stride_order(output, stride_order)
        target: Any = alias_input
        super().add_output(output, target)

    # --- running ---------------------------------------------------------------------------

    def execute(
        self,
        inputs: Inputs,
        *,
        override_user_schedule: bool = False,
        capture_debug_output: bool = False,
        print_repro: bool = False,
        profile: bool = False,
        **options: Any,
    ) -> list[torch.Tensor]:
        """Run the definition; see ``run``.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        override_user_schedule : bool
            All runs are scheduled automatically. False warns where a subclass has a
            ``schedule()``, which nvFuser called.
        capture_debug_output : bool
            Keep what is printed meanwhile for ``debug_output()``.
        print_repro : bool
            Print ``repro_script_for(inputs)``.
        profile : bool
            Time the run for ``profile()``.
        **options
            As for ``run``: ``device``, ``save_repro_inputs``, ``_enable_options``,
            ``_disable_options``.
        """
        if not override_user_schedule and type(self).schedule is not FusionDefinition.schedule:
            _warn_of_schedule(type(self))
        if print_repro:
            sys.stdout.write(f"{self.repro_script_for(inputs)}\n")
        self._debug_output = None
        if capture_debug_output:
            with redirect_stdout(io.StringIO()) as printed:
                found = self._executed(inputs, profile, options)
            self._debug_output = printed.getvalue()
            return found
        return self._executed(inputs, profile, options)

    def _executed(
        self, inputs: Inputs, profile: bool, options: dict[str, Any]
    ) -> list[torch.Tensor]:
        if not profile:
            return self.run(inputs, **options)
        profiler = PythonProfiler()
        with profiler:
            found = self.run(inputs, **options)
        self._profile = profiler.profile
        return found

    def profile(self) -> FusionProfile:
        """The profile of the last ``execute(inputs, profile=True)``.

        Raises
        ------
        InputError
            There was none.
        """
        if self._profile is None:
            raise InputError(
                "profile: nothing was executed with profile=True",
                loc=user_line(),
                hint="Call fd.execute(inputs, profile=True) first.",
            )
        return self._profile

    def debug_output(self) -> str | None:
        """What was printed during the last ``execute(inputs, capture_debug_output=True)``."""
        return self._debug_output

    # --- texts -----------------------------------------------------------------------------

    def fusion_ir(self) -> str:
        """The ops as text, as ``print(fd.fusion)`` shows them."""
        return str(self.fusion)

    def last_cuda_code(self, intrinsic_code: bool = False, **options: Any) -> str:
        """The kernels of the last run: Triton source, where nvFuser gives CUDA.

        Parameters
        ----------
        intrinsic_code : bool
            Accepted and not read, as are ``options``.

        Raises
        ------
        InputError
            Nothing was executed yet.
        """
        sources = self._last_run("last_cuda_code").lowered.sources
        return "\n".join(source.text for source in sources if source is not None)

    def cuda_code_for(self, inputs: Inputs, intrinsic_code: bool = False, **options: Any) -> str:
        """``last_cuda_code`` for a run with inputs like these; ``options`` are not read."""
        return "\n".join(source.text for source in self.kernels(inputs))

    def last_scheduled_fusion_ir(self, tensor_transforms: bool = False, **options: Any) -> str:
        """The segments of the last run with their ops and params, as text.

        Parameters
        ----------
        tensor_transforms : bool
            Accepted and not read, as are ``options``.

        Raises
        ------
        InputError
            Nothing was executed yet.
        """
        return str(self._last_run("last_scheduled_fusion_ir").lowered.segmented)

    def scheduled_fusion_ir_for(
        self, inputs: Inputs, tensor_transforms: bool = False, **options: Any
    ) -> str:
        """``last_scheduled_fusion_ir`` for a run with these inputs; ``options`` are not read."""
        return str(self.segments(inputs))

    def getValTolerances(self, inputs: Inputs) -> Any:
        """``get_val_tolerances`` of this definition."""
        return get_val_tolerances(self.fusion, inputs)

    def _last_run(self, what: str) -> ExecutionPlan:
        executor = self._fec if self._ke is None else self._ke
        plan = None if executor is None else executor.core.newest()
        if plan is None:
            raise InputError(
                f"{what}: nothing was executed yet",
                loc=user_line(),
                hint="Call fd.execute(inputs) or fd.manual_execute(inputs) first.",
            )
        return plan


def _warn_of_schedule(kind: type) -> None:
    """``schedule`` of a subclass splits loops and binds them to CUDA threads; there are none."""
    warnings.warn(
        f"{kind.__name__}.schedule() is not called: kernels are scheduled automatically. Change "
        "what fd.heuristics(inputs) gives, and pass it to fd.run(inputs, params=[...]); "
        "override_user_schedule=True asks for automatic schedules without this warning.",
        UserWarning,
        stacklevel=3,
    )


def clone(source: FusionDefinition, target: FusionDefinition) -> None:
    """Record what a definition has into another one, in its ``with`` block or without one.

    Parameters
    ----------
    source : FusionDefinition
        A definition that is recorded.
    target : FusionDefinition
        One in which nothing is recorded yet.

    Raises
    ------
    DefinitionError
        Something is recorded in ``target``.
    """
    expect("clone", FusionDefinition, source)
    expect("clone", FusionDefinition, target)
    data = source.to_dict()
    is_open = target._fusion is not None and target._fusion.open > 0
    with nullcontext() if is_open else target:
        restore(target.fusion, data)
