"""The body of a plan as the text of functions: plain, timed, and guarded.

A guarded function is made by ``make(guard)``. ``guard`` says whether tensors are like those of the
plan; a call whose inputs it refuses is passed to ``miss``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ...ir import Value
from ...symbolic.queries import is_known_less
from ..keys.signature import ALIGNMENT, MISFIT_ERRORS
from .results import Result, return_into_lines, return_lines

_MISFIT = f"({', '.join(error.__name__ for error in MISFIT_ERRORS)})"
_NO_MODE = "not dispatch._is_in_torch_dispatch_mode"
"""That no ops of torch are intercepted, as inside a trace or a FakeTensorMode."""

_COUNT = ("heat.left = left = heat.left - 1", "if left < 0:", "    return miss(inputs)")


@dataclass(frozen=True)
class Body:
    """The lines of a plan, and what its functions need to know of them.

    Attributes
    ----------
    inputs : tuple of Value
        The inputs, in the order of the definition.
    addressed : tuple of Value
        Inputs whose address kernels take, as the variable ``tv0_at``.
    aligned : tuple of Value
        Inputs that kernels were compiled to take as aligned to 16 bytes.
    resolved : tuple of Value
        Inputs that must not have torch's negative or conjugate bit: kernels read their memory and
        do not look at these bits.
    lines : tuple of str
        The statements before the results.
    step_lines : tuple of int
        Indices of the lines that launch a kernel or call torch.
    buffers : mapping of Value to int
        Index of the line that allocates each value.
    results : tuple of Result
        The outputs, in the order of the definition.
    device : torch.device or None
        The GPU that has to be torch's current device; None where that does not matter.
    """

    inputs: tuple[Value, ...]
    addressed: tuple[Value, ...]
    aligned: tuple[Value, ...]
    resolved: tuple[Value, ...]
    lines: tuple[str, ...]
    step_lines: tuple[int, ...]
    buffers: Mapping[Value, int]
    results: tuple[Result, ...]
    device: torch.device | None

    @property
    def tensors(self) -> tuple[Value, ...]:
        """The inputs that are tensors."""
        return tuple(value for value in self.inputs if value.is_tensor)


def plain_text(body: Body) -> str:
    """``run(inputs)``, for inputs that are known to fit."""
    return _plain(body, "inputs", body.lines, return_lines(body.results))


def timed_text(body: Body) -> str:
    """``run(inputs, clock)``: the same with a clock around each step."""
    lines = list(body.lines)
    for step, place in reversed(list(enumerate(body.step_lines))):
        lines[place : place + 1] = [f"clock.start({step})", lines[place], f"clock.stop({step})"]
    *results, last = return_lines(body.results)
    return _plain(body, "inputs, clock", lines, [*results, "clock.finish()", last])


def guarded_text(body: Body, numbers: Sequence[str], *, counted: bool = False) -> str:
    """``make(guard, heat)``, which returns ``run(inputs, miss)`` and ``fits(inputs)``.

    Parameters
    ----------
    numbers : sequence of str
        Conditions on the inputs that are numbers.
    counted : bool
        Whether runs use up the calls that are left of ``heat``.
    """
    names = [value.name for value in body.tensors]
    guard = _guard(_unpack(body), [_NO_MODE, *_guard_calls(body, names), *numbers])
    places = _addresses(_address_inputs(body))
    unfit = _unfit([value.name for value in body.aligned], _address_inputs(body))
    run = [
        *_dispatch(guard, unfit, places, "miss(inputs)"),
        *_on_device(body, "run(inputs, miss)"),
        *(_COUNT if counted else ()),
        *body.lines,
        *return_lines(body.results),
    ]
    fits = [*_dispatch(guard, unfit, places, "False"), "return True"]
    return _make_text("guard, heat", {"run(inputs, miss)": run, "fits(inputs)": fits})


def guarded_into_text(body: Body, numbers: Sequence[str], given: Sequence[bool]) -> str:
    """``make(guard, overlaps)``, which returns ``run(inputs, out, miss)``, ``fits(inputs, out)``.

    ``overlaps`` is an ``OverlapCheck`` over the tensors among the inputs and those in ``out``.

    Parameters
    ----------
    given : sequence of bool
        For each returned output whether ``out`` has a tensor; else it has None.
    """
    shown = [result for result in body.results if not result.hidden]
    outs = [f"o{place}" for place in range(len(shown))]
    real = [out for out, is_given in zip(outs, given, strict=True) if is_given]
    written = [o for o, r in zip(outs, shown, strict=True) if r.buffer and body.device]
    names = [value.name for value in body.tensors]
    guard = _guard(
        [*_unpack(body), f"[{', '.join(outs)}] = out"],
        [
            _NO_MODE,
            *_guard_calls(body, [*names, *real]),
            *(f"{o} is None" for o in outs if o not in real),
            *numbers,
        ],
    )
    places = [*_addresses(body.tensors), *(f"{out}_at = {out}.data_ptr()" for out in real)]
    aligned = [value.name for value in body.aligned]
    unfit = _unfit([*aligned, *(out for out in written if out in real)], body.tensors)
    starts = ", ".join(f"{name}_at" for name in (*names, *real))
    overlap = f"overlaps.disjoint != ({starts},) and overlaps(({starts},))" if real else "False"
    lines, results = return_into_lines(body.results, body.lines, body.buffers, given)
    run = [
        *_dispatch(guard, unfit, places, "miss(inputs, out)"),
        *([f"if {overlap}:", "    return miss(inputs, out)"] if real else []),
        *_on_device(body, "run(inputs, out, miss)"),
        *lines,
        *results,
    ]
    fits = [*_dispatch(guard, unfit, places, "False"), f"return not ({overlap})"]
    return _make_text("guard, overlaps", {"run(inputs, out, miss)": run, "fits(inputs, out)": fits})


# --- parts -----------------------------------------------------------------------------------


def _plain(body: Body, given: str, lines: Sequence[str], results: Sequence[str]) -> str:
    names = [value.name for value in body.inputs]
    unpacked = [f"{', '.join(names)}, = inputs"] if names else []
    everything = [
        *_on_device(body, f"run({given})"),
        *unpacked,
        *_addresses(body.addressed),
        *lines,
        *results,
    ]
    return "\n".join([f"def run({given}):", *_indented(everything)]) + "\n"


def _on_device(body: Body, again: str) -> list[str]:
    """Switch to the device of the plan where another one is current, and read its stream."""
    if body.device is None:
        return []
    index = body.device.index
    return [
        f"if get_device() != {index}:",
        "    with torch.cuda.device(device):",
        f"        return {again}",
        f"stream = get_stream({index})",
    ]


def _unpack(body: Body) -> list[str]:
    names = ", ".join(value.name for value in body.inputs)
    return [f"[{names}] = inputs"]  # an empty list takes no inputs, and says so


def _guard_calls(body: Body, names: Sequence[str]) -> list[str]:
    """The call of the guard, after a check for inputs that the guard cannot take.

    torch's guards end the process for a nested tensor. To ask takes 0.09 us a tensor. The guard of
    a plan on the CPU asks by itself.
    """
    if not names:
        return []
    nested = " or ".join(f"{name}.is_nested" for name in names)
    asked = [f"not ({nested})"] if body.device is not None else []
    return [*asked, f"guard({', '.join(names)})"]


def _guard(unpacked: Sequence[str], conditions: Sequence[str]) -> list[str]:
    return [
        "try:",
        *_indented([*unpacked, f"fits = {' and '.join(conditions)}"]),
        f"except {_MISFIT}:",
        "    fits = False",
    ]


def _dispatch(guard: Sequence[str], unfit: str, places: Sequence[str], way: str) -> list[str]:
    """The guard; returns ``way`` where it refuses or a pointer is unfit."""
    pointers = [f"if {unfit}:", f"    return {way}"] if unfit else []
    return [*guard, "if not fits:", f"    return {way}", *places, *pointers]


def _address_inputs(body: Body) -> list[Value]:
    return [v for v in body.inputs if v in body.addressed or v in body.aligned]


def _addresses(values: Sequence[Value]) -> list[str]:
    return [f"{value.name}_at = {value.name}.data_ptr()" for value in values]


def _unfit(aligned: Sequence[str], addressed: Sequence[Value]) -> str:
    """Whether a pointer that has to be aligned is not, or one to elements is null.

    torch's guards take a tensor whose storage was freed. A tensor that may have no elements has a
    null pointer by right.
    """
    full = [v.name for v in addressed if v.is_tensor and is_known_less(0, v.tensor.numel)]
    conditions = []
    if aligned:
        places = " | ".join(f"{name}_at" for name in aligned)
        conditions.append(f"({places}) & {ALIGNMENT - 1}")
    if full:
        conditions.append(f"not ({' and '.join(f'{name}_at' for name in full)})")
    return " or ".join(conditions)


def _make_text(given: str, functions: Mapping[str, Sequence[str]]) -> str:
    lines = [f"def make({given}):"]
    for head, body in functions.items():
        lines += _indented([f"def {head}:", *_indented(body)])
    names = ", ".join(head.partition("(")[0] for head in functions)
    return "\n".join([*lines, f"    return {names}"]) + "\n"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
