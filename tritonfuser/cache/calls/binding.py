"""A plan together with what it is bound to: says what of inputs or outputs does not fit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import InputError
from ...ir import Fusion
from ...lowering.passes.concretize import shape_scalars
from ..keys.signature import is_aligned
from ..plan.execution_plan import ExecutionPlan
from ..plan.results import Layout
from .diagnosis import InputMismatch, explain_mismatch, input_names
from .entries import Checked, Into
from .memory_overlap import Near, is_apart, reach

_OTHERS = "fd.run(inputs) takes inputs of any size; fd.plan(inputs) makes a plan for these."
_ALLOCATE = "plan.allocate() makes tensors that fit; None leaves an output to the plan."


@dataclass(frozen=True)
class Wanted:
    """A tensor that a plan takes: an input it is bound to, or one for a result."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    aligned: bool

    @property
    def reach(self) -> int:
        return reach(self.shape, self.strides, self.dtype)

    def difference(self, given: torch.Tensor) -> tuple[str, str] | None:
        """What is wanted and what came, of the first thing that differs."""
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
        return None


class Bound:
    """A plan for inputs like those it is made with.

    Parameters
    ----------
    plan : ExecutionPlan
        The plan.
    fusion : Fusion
        The definition that it was made for.
    inputs : sequence
        Flat inputs that fit the plan. They are not kept.
    """

    def __init__(self, plan: ExecutionPlan, fusion: Fusion, inputs: Sequence[Any]) -> None:
        self.plan = plan
        self._fusion = fusion
        in_shapes = shape_scalars(fusion)
        names = zip(fusion.inputs, plan.body.inputs, inputs, strict=True)
        self._inputs: dict[int, Wanted] = {}
        self._numbers: dict[int, Any] = {}
        for place, (value, named, given) in enumerate(names):
            if value.is_tensor:
                self._inputs[place] = wanted(given, named in plan.body.counted_on)
            elif value in in_shapes:
                self._numbers[place] = given
        shown = [result for result in plan.body.results if not result.hidden]
        on_gpu = plan.device.type != "cpu"
        self.outs = [
            _for_result(r.layout, plan.device, on_gpu and r.buffer is not None) for r in shown
        ]
        self._targets = [None if r.target is None else r.target.name for r in shown]

    # -- ways in -------------------------------------------------------------

    def checked(self, inputs: Sequence[Any], before: Checked | None = None) -> Checked:
        """A way in for inputs like these, which fit."""
        return Checked(self.plan, self._fusion, inputs, before)

    def into(
        self,
        inputs: Sequence[Any],
        out: Sequence[torch.Tensor | None],
        before: Into | None = None,
    ) -> Into:
        """A way in for inputs and outputs like these, which fit."""
        return Into(self.plan, self._fusion, inputs, out, self._near(out), before)

    def put(self, inputs: Sequence[Any], out: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
        """Run on inputs and into outputs that are known to fit; no profiler sees it."""
        return self.into(inputs, out).plain(inputs, out, refuse_changed)

    @property
    def writes_inputs(self) -> bool:
        return any(result.target is not None for result in self.plan.body.results)

    @property
    def writes_to_cpu(self) -> bool:
        """Whether a run on a GPU writes into an input on the CPU."""
        targets = (result.target for result in self.plan.body.results)
        on_cpu = any(target is not None and target.tensor.is_cpu for target in targets)
        return on_cpu and self.plan.device.type != "cpu"

    def allocate(self) -> list[torch.Tensor | None]:
        """New tensors to put results into; None for one whose elements share memory."""
        return [
            torch.empty_strided(out.shape, out.strides, dtype=out.dtype, device=out.device)
            if is_apart(out.shape, out.strides)
            else None
            for out in self.outs
        ]

    # -- what does not fit ---------------------------------------------------

    def refusal(self, inputs: Sequence[Any]) -> InputError | None:
        """Why inputs do not fit; None where they do."""
        error = explain_mismatch(self._fusion, inputs)
        if error is not None:
            return error
        for place, want in self._inputs.items():
            found = want.difference(inputs[place])
            if found is not None:
                return self._mismatch(place, *found)
        for place, number in self._numbers.items():
            if inputs[place] != number:
                return self._mismatch(place, f"value {number}", f"{inputs[place]}")
        return None

    def _mismatch(self, place: int, expected: str, came: str) -> InputMismatch:
        name = input_names(self._fusion)[place]
        text = f"Expected input {place}, {name}, to have {expected}, as the plan is bound to"
        return InputMismatch(f"{text}, but got {came}", hint=_OTHERS, place=place)

    def refusal_of_out(self, inputs: Sequence[Any], out: Any) -> InputError | None:
        """Why tensors for the results do not fit, with inputs that do; None where they do."""
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

    def _near(self, out: Sequence[torch.Tensor | None]) -> Near:
        """Over the tensors among the inputs, then those in ``out``."""
        first = len(self._inputs)
        given = [place for place, tensor in enumerate(out) if tensor is not None]
        lengths = [want.reach for want in (*self._inputs.values(), *(self.outs[p] for p in given))]
        tensors = [value.name for value in self.plan.body.tensors]
        same = [
            (first + number, tensors.index(target))
            for number, place in enumerate(given)
            if (target := self._targets[place]) is not None
        ]
        return Near(lengths, range(first, len(lengths)), same)

    def _overlap(
        self, inputs: Sequence[Any], out: Sequence[torch.Tensor | None]
    ) -> InputError | None:
        given = [place for place, tensor in enumerate(out) if tensor is not None]
        tensors = [*(inputs[p] for p in self._inputs), *(o for o in out if o is not None)]
        found = self._near(out).overlap([tensor.data_ptr() for tensor in tensors])
        if found is None:
            return None
        names = [*(f"input {p}" for p in self._inputs), *(f"out[{p}]" for p in given)]
        own, other = (names[place] for place in found)
        return InputError(
            f"{own} shares memory with {other}",
            hint="What a run writes has to be apart from all else that it reads or writes.",
        )


def refuse_changed(inputs: Sequence[Any], out: Any) -> list[torch.Tensor]:
    raise InputError(
        "the inputs of a plan changed while they were looked at",
        hint="Do not change a list that another thread gives to a run.",
    )


def wanted(given: torch.Tensor, counted_on: bool) -> Wanted:
    """What an input has to be like to be taken in the place of ``given``."""
    shape, strides = tuple(given.shape), tuple(given.stride())
    return Wanted(shape, strides, given.dtype, given.device, counted_on)


def _for_result(layout: Layout, device: torch.device, aligned: bool) -> Wanted:
    where = torch.device("cpu") if layout.on_cpu else device
    return Wanted(layout.shape, layout.strides, layout.dtype, where, aligned)


def _out_problem(want: Wanted, given: Any) -> str | None:
    if not isinstance(given, torch.Tensor):
        return f"expected a tensor, got a value of type {type(given).__name__}"
    if given.layout is not torch.strided:
        return f"expected a strided tensor, got layout {given.layout}"
    found = want.difference(given)
    if found is not None:
        return f"expected {found[0]}, got {found[1]}"
    if given.is_neg() or given.is_conj():
        return "expected a tensor as it lies in memory, got one that is marked as negated"
    if given.requires_grad and torch.is_grad_enabled():
        return "expected a tensor that does not require grad: a run records nothing for autograd"
    if not is_apart(want.shape, want.strides):
        return "expected None: elements of this output share memory, as after expand"
    return None
