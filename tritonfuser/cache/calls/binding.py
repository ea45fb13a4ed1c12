"""A plan bound to the signature of example inputs: checks inputs and ``out`` against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import InputError
from ...ir import Fusion
from ...lowering.passes.concretize import shape_scalars
from ..keys.signature import is_aligned
from ..keys.storage_problems import storage_problem
from ..plan.execution_plan import ExecutionPlan
from ..plan.memory_overlap import OverlapCheck, extent_bytes, has_distinct_elements
from ..plan.results import ResultLayout
from .diagnosis import InputMismatch, explain_mismatch
from .guarded_calls import GuardedCall, GuardedCallInto

_OTHERS = "fd.run(inputs) takes inputs of any size; fd.plan(inputs) makes a plan for these."
_ALLOCATE = "plan.allocate() makes tensors that fit; None leaves an output to the plan."


@dataclass(frozen=True)
class ExpectedTensor:
    """The layout that a plan expects of an input, or of a tensor given for a result.

    Attributes
    ----------
    shape, strides : tuple of int
        In elements.
    dtype : torch.dtype
        The element type.
    device : torch.device
        Where it is.
    aligned : bool
        Whether its address must be a multiple of 16 bytes.
    resolved : bool
        Whether it must not have torch's negative or conjugate bit.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    aligned: bool
    resolved: bool

    @property
    def extent_bytes(self) -> int:
        return extent_bytes(self.shape, self.strides, self.dtype)

    def difference(self, given: torch.Tensor) -> tuple[str, str] | None:
        """``(expected, given)`` of the first property that differs."""
        facts = (
            ("shape", list(self.shape), list(given.shape)),
            ("strides", list(self.strides), list(given.stride())),
            ("dtype", self.dtype, given.dtype),
            ("device", self.device, given.device),
        )
        for what, wanted, came in facts:
            if wanted != came:
                return f"{what} {wanted}", f"{what} {came}"
        if self.aligned and not is_aligned(given):
            place = f"an address of {given.data_ptr():#x}"
            return "an address that is a multiple of 16", place
        if self.resolved and (given.is_neg() or given.is_conj()):
            bits = "a tensor without torch's negative and conjugate bits, as x.resolve_neg() gives"
            return bits, "a tensor that is marked as negated"
        return None


class Binding:
    """A plan, and what inputs and ``out`` must be like to be run by it.

    Parameters
    ----------
    plan : ExecutionPlan
        What runs.
    fusion : Fusion
        The definition of the plan.
    inputs : sequence
        Example inputs, flat, that fit the plan. They are not kept.

    Attributes
    ----------
    outs : list of ExpectedTensor
        What a tensor given for each returned output must be like.
    """

    def __init__(self, plan: ExecutionPlan, fusion: Fusion, inputs: Sequence[Any]) -> None:
        self.plan = plan
        self._fusion = fusion
        in_shapes = shape_scalars(fusion)
        names = zip(fusion.inputs, plan.body.inputs, inputs, strict=True)
        self._inputs: dict[int, ExpectedTensor] = {}
        self._shape_numbers: dict[int, Any] = {}
        for place, (value, named, given) in enumerate(names):
            if value.is_tensor:
                self._inputs[place] = expected_input(
                    given, named in plan.body.aligned, named in plan.body.resolved
                )
            elif value in in_shapes:
                self._shape_numbers[place] = given
        shown = [result for result in plan.body.results if not result.hidden]
        on_gpu = plan.device.type != "cpu"
        self.outs = [
            _expected_result(r.layout, plan.device, on_gpu and r.buffer is not None) for r in shown
        ]
        self._targets = [None if r.target is None else r.target.name for r in shown]

    # -- guarded calls -------------------------------------------------------

    def guarded(self, inputs: Sequence[Any], before: GuardedCall | None = None) -> GuardedCall:
        """A guarded call for inputs like these, which fit."""
        return GuardedCall(self.plan, self._fusion, inputs, before)

    def guarded_into(
        self,
        inputs: Sequence[Any],
        out: Sequence[torch.Tensor | None],
        before: GuardedCallInto | None = None,
    ) -> GuardedCallInto:
        """A guarded call for inputs and ``out`` like these, which fit."""
        return GuardedCallInto(
            self.plan, self._fusion, inputs, out, self._overlap_check(out), before
        )

    def run_into(
        self, inputs: Sequence[Any], out: Sequence[torch.Tensor | None]
    ) -> list[torch.Tensor]:
        """Run on inputs and into ``out`` that are known to fit, unseen by profilers."""
        return self.guarded_into(inputs, out).plain(inputs, out, refuse_changed)

    @property
    def writes_inputs(self) -> bool:
        """Whether a run writes outputs into inputs."""
        return any(result.target is not None for result in self.plan.body.results)

    @property
    def writes_to_cpu(self) -> bool:
        """Whether a run on a GPU writes an output into an input on the CPU."""
        targets = (result.target for result in self.plan.body.results)
        on_cpu = any(target is not None and target.tensor.is_cpu for target in targets)
        return on_cpu and self.plan.device.type != "cpu"

    def allocate(self) -> list[torch.Tensor | None]:
        """New tensors for ``out``; None for a result whose elements share memory."""
        return [
            torch.empty_strided(out.shape, out.strides, dtype=out.dtype, device=out.device)
            if has_distinct_elements(out.shape, out.strides)
            else None
            for out in self.outs
        ]

    # -- errors --------------------------------------------------------------

    def input_error(self, inputs: Sequence[Any]) -> InputError | None:
        """The error for inputs that do not fit; None where they fit."""
        error = explain_mismatch(self._fusion, inputs)
        if error is not None:
            return error
        for place, want in self._inputs.items():
            found = want.difference(inputs[place])
            if found is not None:
                return self._mismatch(place, *found)
        for place, number in self._shape_numbers.items():
            if inputs[place] != number:
                return self._mismatch(place, f"value {number}", f"{inputs[place]}")
        return None

    def _mismatch(self, place: int, expected: str, came: str) -> InputMismatch:
        name = self._fusion.inputs[place].name
        which = InputMismatch.named(place, name)
        text = f"Expected {which} to have {expected}, as the plan is bound to, but got {came}"
        return InputMismatch(text, hint=_OTHERS, place=place, name=name)

    def out_error(self, inputs: Sequence[Any], out: Any) -> InputError | None:
        """The error for ``out`` that does not fit, given inputs that do; None where it fits."""
        count = len(self.outs)
        if not isinstance(out, list | tuple) or len(out) != count:
            came = f"{len(out)}" if isinstance(out, list | tuple) else f"a {type(out).__name__}"
            return InputError(
                f"Expected a list of {count} tensors in out, got {came}", hint=_ALLOCATE
            )
        for place, (want, given) in enumerate(zip(self.outs, out, strict=True)):
            text = None if given is None else _out_problem(want, given)
            if text is not None:
                return InputError(f"out[{place}]: {text}", hint=_ALLOCATE)
        return self._overlap(inputs, out)

    # -- memory --------------------------------------------------------------

    def _overlap_check(self, out: Sequence[torch.Tensor | None]) -> OverlapCheck:
        """A check over the tensors among the inputs, then those in ``out``."""
        first = len(self._inputs)
        given = [place for place, tensor in enumerate(out) if tensor is not None]
        lengths = [
            want.extent_bytes for want in (*self._inputs.values(), *(self.outs[p] for p in given))
        ]
        tensors = [value.name for value in self.plan.body.tensors]
        same = [
            (first + number, tensors.index(target))
            for number, place in enumerate(given)
            if (target := self._targets[place]) is not None
        ]
        return OverlapCheck(lengths, range(first, len(lengths)), same)

    def _overlap(
        self, inputs: Sequence[Any], out: Sequence[torch.Tensor | None]
    ) -> InputError | None:
        given = [place for place, tensor in enumerate(out) if tensor is not None]
        tensors = [*(inputs[p] for p in self._inputs), *(o for o in out if o is not None)]
        found = self._overlap_check(out).overlap([tensor.data_ptr() for tensor in tensors])
        if found is None:
            return None
        names = [*(f"input {p}" for p in self._inputs), *(f"out[{p}]" for p in given)]
        own, other = (names[place] for place in found)
        return InputError(
            f"{own} shares memory with {other}",
            hint="What a run writes has to be apart from all else that it reads or writes.",
        )


def refuse_changed(inputs: Sequence[Any], out: Any) -> list[torch.Tensor]:
    """The ``miss`` of a call whose inputs have been checked already."""
    raise InputError(
        "the inputs of a plan changed while they were looked at",
        hint="Do not change a list that another thread gives to a run.",
    )


def expected_input(given: torch.Tensor, aligned: bool, resolved: bool) -> ExpectedTensor:
    """What an input must be like to be taken in place of ``given``."""
    shape, strides = tuple(given.shape), tuple(given.stride())
    return ExpectedTensor(shape, strides, given.dtype, given.device, aligned, resolved)


def _expected_result(layout: ResultLayout, device: torch.device, aligned: bool) -> ExpectedTensor:
    where = torch.device("cpu") if layout.on_cpu else device
    return ExpectedTensor(layout.shape, layout.strides, layout.dtype, where, aligned, True)


def _out_problem(want: ExpectedTensor, given: Any) -> str | None:
    if not isinstance(given, torch.Tensor):
        return f"expected a tensor, got a value of type {type(given).__name__}"
    if given.is_nested:
        return "expected a strided tensor, got a nested one"
    if given.layout is not torch.strided:
        return f"expected a strided tensor, got layout {given.layout}"
    found = want.difference(given)
    if found is not None:
        return f"expected {found[0]}, got {found[1]}"
    if given.requires_grad and torch.is_grad_enabled():
        return "expected a tensor that does not require grad: a run records nothing for autograd"
    if problem := storage_problem(given):
        return f"{problem[0].replace('INPUT', 'expected it')}. {problem[1]}"
    if not has_distinct_elements(want.shape, want.strides):
        return "expected None: elements of this output share memory, as after expand"
    return None
