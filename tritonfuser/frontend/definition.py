"""``FusionDefinition``: records tensor operations, then runs them as fused kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import options
from ..cache.plan.copies import copied
from ..dtypes import DataType
from ..errors import ArgumentError, DefinitionError, UnsupportedDeviceError
from ..ops.arguments import shown
from .inspect.printer import print_definition
from .inspect.same_outputs import refuse_other_outputs
from .record.example_tensor import dtype_of_example, refuse_no_example
from .record.inputs import CPU_TEXT, Inputs, flatten_inputs
from .record.operators import Operators
from .record.recording import outside
from .record.tensor_forms import DefinesTensors
from .record.tensor_view import TensorView
from .record.val import Val
from .run.fusion import Fusion, FusionGuard
from .run.portable import Portable
from .run.scheduler_queries import Scheduling
from .vocabulary.argument_types import expect
from .vocabulary.location import user_line

MOST_SCALARS = 4096
"""Inputs that a vector may have: a kernel takes each as an argument."""

REPORTED = 6
"""How many of the last ops a note on an exception in a ``with`` block shows."""


class FusionDefinition(DefinesTensors, Portable):
    """A definition: recorded tensor operations, run as fused kernels.

    Record in a ``with`` block, or in the ``definition`` method of a subclass; then ``run``.

    Parameters
    ----------
    id : Fusion or int, optional
        A Fusion to record into, or the ``id()`` of one that is recorded: the forms of nvFuser's
        first frontends.
    max_length : int
        Accepted and not needed.

    Attributes
    ----------
    ops : Operators
        The ops: ``fd.ops.add(x, y)``; ``help(FusionDefinition.Operators)`` lists all.

    Examples
    --------
    >>> with FusionDefinition() as fd:
    ...     x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    ...     fd.add_output(fd.ops.sum(fd.ops.exp(x), dims=[1]))
    >>> (out,) = fd.run([torch.randn(4, 8)])
    """

    Operators = Operators
    namespace = "tritonfuser"
    """Whose names it has: ours, or those of ``"nvfuser_direct"`` or ``"nvfuser"``."""

    def __init__(self, id: Fusion | int | None = None, max_length: int = 9999) -> None:
        if id is not None:
            expect("FusionDefinition", (Fusion, int), id)
        self._start(Fusion(id) if isinstance(id, int) else id)

    def _start(self, given: Fusion | None) -> None:
        self._given = given
        if given is not None and given.defined():
            self._fusion = given
        self._guard: FusionGuard | None = None
        self._devices: set[str] = set()
        self.ops = self.Operators(self._record)
        self.sched = Scheduling(self._get_fusion)

    # --- recording -------------------------------------------------------------------------

    def __enter__(self) -> FusionDefinition:
        if "_given" not in vars(self):
            raise ArgumentError(
                f"{type(self).__name__}: FusionDefinition.__init__() must be called when "
                "overriding __init__",
                loc=user_line(),
                hint="Begin __init__ with super().__init__().",
            )
        if self._fusion is not None or self._fec is not None:
            raise DefinitionError(
                "this FusionDefinition is recorded already",
                loc=user_line(),
                hint="Make a new FusionDefinition for another recording.",
            )
        self._fusion = self._given if self._given is not None else Fusion()
        self._fusion.cuda_only = self.cuda_only
        self._fusion.namespace = self.namespace
        self._guard = FusionGuard(self._fusion)
        self._guard.__enter__()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        guard = vars(self).get("_guard")
        if guard is None or self._fusion is None:
            raise DefinitionError(
                "this FusionDefinition is not being recorded",
                loc=user_line(),
                hint="Record inside `with FusionDefinition() as fd: ...`.",
            )
        guard.__exit__(kind, error, trace)
        self._guard = None
        if kind is not None:
            _report(error, str(self._fusion))
            self._forget()
            return
        try:
            # What cannot be spread over the mesh as it says is refused before a run.
            self._fusion.shardings  # noqa: B018
        except DefinitionError:
            self._forget()
            raise

    def _forget(self) -> None:
        """A partial recording is no definition."""
        assert self._fusion is not None
        self._fusion.clear()
        self._fusion = None
        self._devices.clear()

    def _define(self) -> None:
        if type(self).definition is FusionDefinition.definition:
            self.definition()
        with self:
            self.definition()

    def _recording(self, what: str) -> Fusion:
        if self._fusion is None:
            raise outside(what, user_line())
        return self._fusion

    def _record(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._recording(f"fd.ops.{name}").call(name, *args, **kwargs)

    def _define_tensor(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TensorView:
        fusion = self._recording("define_tensor")
        tensor = fusion.new_tensor(*args, **kwargs)
        fusion.add_input(tensor)
        return tensor

    def define_scalar(self, value: Any = None, dtype: DataType | torch.dtype | None = None) -> Val:
        """A scalar: an input without a value, else a constant.

        Parameters
        ----------
        value : number, DataType or torch.dtype, optional
            A constant; its dtype is Bool, Int, Double or ComplexDouble unless one is given. A
            dtype alone is that of an input.
        dtype : DataType or torch.dtype, optional
            Of an input, by default Double; a constant is converted to it.
        """
        fusion = self._recording("define_scalar")
        scalar = fusion.new_scalar(value, dtype)
        if scalar.is_symbolic():
            fusion.add_input(scalar)
        return scalar

    def define_constant(self, value: Any) -> Val:
        """A constant, under the first frontend's name."""
        if not isinstance(value, bool | int | float | complex):
            raise ArgumentError(
                f"define_constant(): incompatible function arguments: expected a number, "
                f"got {value!r}"
            )
        return self.define_scalar(value)

    def define_vector(self, size: int) -> list[Val]:
        """``size`` Int inputs, given to ``run`` as one list or tuple of ints."""
        is_length = isinstance(size, int) and not isinstance(size, bool)
        if not is_length or not 0 <= size <= MOST_SCALARS:
            raise ArgumentError(
                "define_vector(): incompatible function arguments: expected a length from 0 to "
                f"{MOST_SCALARS}, got {shown(size)}"
            )
        return [self.define_scalar(dtype=DataType.Int) for _ in range(size)]

    def from_pytorch(self, tensor: torch.Tensor, static_sizes: bool = False) -> TensorView:
        """A tensor input like ``tensor``: its dtype, its memory layout, its rank.

        Parameters
        ----------
        tensor : torch.Tensor
            The example.
        static_sizes : bool
            Whether its sizes are part of the definition; by default only sizes of 1 are.

        Raises
        ------
        DefinitionError
            The tensor is sparse, nested or quantized, or there is no DataType for its dtype.
        UnsupportedDeviceError
            A ValueError: a CPU tensor that is no scalar beside GPU ones; through
            ``compat.nvfuser_direct`` any such tensor.
        """
        self._recording("from_pytorch")
        refuse_no_example(tensor, static_sizes)
        dtype = dtype_of_example(tensor)
        self._check_device(tensor)
        return self.define_tensor(
            sizes=list(tensor.shape),
            strides=list(tensor.stride()),
            dtype=dtype,
            static_sizes=static_sizes,
            is_cpu=tensor.is_cpu and not tensor.dim(),
        )

    def _check_device(self, tensor: torch.Tensor) -> None:
        kinds = {tensor.device.type} if tensor.dim() or not tensor.is_cpu else set()
        strict = self.cuda_only and not options.current().cpu_as_cuda
        if ("cpu" in kinds and strict) or len(self._devices | kinds) > 1:
            raise UnsupportedDeviceError(
                CPU_TEXT,
                loc=user_line(),
                hint="NVF_CPU_AS_CUDA=1 lets CPU tensors in."
                if strict
                else "All tensors but scalars must be on one device.",
            )
        self._devices |= kinds

    def add_output(self, output: TensorView, alias_input: TensorView | None = None) -> None:
        """Return a tensor from ``run``, or write it into an input.

        Parameters
        ----------
        output : TensorView
            A tensor of this definition. It may be added more than once.
        alias_input : TensorView, optional
            An input that the output is written into when all reads of it are done. Then it is
            returned only if ``add_output(output)`` is called too, and it is the input's buffer
            that is returned. Inputs are written in the order of these calls, after all reads of
            all inputs: where two of them share memory, it holds what is written last.
        """
        self._recording("add_output").add_output(output, alias_input)

    # --- what is recorded ------------------------------------------------------------------

    @property
    def fusion(self) -> Fusion:
        """The recorded fusion; ``fd.fusion.ir`` is its IR."""
        return self._get_fusion()

    def _get_fusion(self) -> Fusion:
        if self._fusion is None and self._fec is None:
            self._ready()
        if self._fusion is not None:
            return self._fusion
        return self.fec.fusion()

    def id(self) -> int:
        """The number for ``FusionDefinition(id)``."""
        return self.fusion.id()

    def __repr__(self) -> str:
        if self._fusion is None and self._fec is None:
            return f"<{type(self).__name__}: nothing recorded>"
        return print_definition(self.fusion.ir)

    # --- the printed definition --------------------------------------------------------------

    def validate_definition(
        self, inputs: Inputs, reference_outputs: list[torch.Tensor] | None = None
    ) -> None:
        """Record the printed definition again, run it on copies, and compare.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        reference_outputs : list of Tensor, optional
            What should come out; by default what this definition gives for copies of the inputs.

        Raises
        ------
        ValidationError
            The number of outputs, a value or a stride differs.
        """
        given = flatten_inputs(inputs)
        expected = reference_outputs
        if expected is None:
            expected = self.run(copied(given))
        refuse_other_outputs(self._recorded_again().run(copied(given)), expected)

    def _recorded_again(self) -> FusionDefinition:
        scope: dict[str, Any] = {
            "FusionDefinition": FusionDefinition,
            "DataType": DataType,
            "TensorView": TensorView,
            "torch": torch,
        }
        exec(compile(repr(self), "<printed definition>", "exec"), scope)
        with FusionDefinition() as again:
            scope["nvfuser_fusion"](again)
        return again


def _report(error: object, recorded: str) -> None:
    """Note in an exception, where Python has notes (3.11), what was recorded before it."""
    first, *lines = recorded.splitlines()[:-1]
    shown = lines if len(lines) <= REPORTED else ["...", *lines[-REPORTED:]]
    if hasattr(error, "add_note"):
        error.add_note("\n  ".join(["Recorded so far:", first, *shown]))
