"""A plan's body as functions: plain, with a clock, and behind a look at what they are given.

Those that look are made by ``make(guard)``, which is called for each set of tensors they are to
take; ``guard`` says whether tensors are such ones. What does not fit goes to ``miss``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ...ir import Value
from ..keys.signature import ALIGNMENT
from .results import Result, handed_out, put_into

_ODD = "(AttributeError, TypeError, ValueError)"
"""What inputs of another number or kind raise."""


@dataclass(frozen=True)
class Body:
    """What a plan does, in pieces.

    Attributes
    ----------
    inputs : tuple of Value
        What it is given, in order.
    addressed : tuple of Value
        Those whose address kernels are given, as ``tv0_at``.
    counted_on : tuple of Value
        Those that kernels count on to be aligned.
    lines : tuple of str
        Everything up to the results.
    step_lines : tuple of int
        Which of them take time.
    buffers : mapping
        Which of them allocates a value.
    results : tuple of Result
        The outputs.
    device : torch.device or None
        The GPU that has to be the current one, if that matters.
    """

    inputs: tuple[Value, ...]
    addressed: tuple[Value, ...]
    counted_on: tuple[Value, ...]
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
    return _plain(body, "inputs", body.lines, handed_out(body.results))


def timed_text(body: Body) -> str:
    """``run(inputs, clock)``: the same with a clock around each step."""
    lines = list(body.lines)
    for step, place in reversed(list(enumerate(body.step_lines))):
        lines[place : place + 1] = [f"clock.start({step})", lines[place], f"clock.stop({step})"]
    *results, last = handed_out(body.results)
    return _plain(body, "inputs, clock", lines, [*results, "clock.finish()", last])


def checked_text(body: Body, numbers: Sequence[str]) -> str:
    """``make(guard)``, which gives ``run(inputs, miss)`` and ``fits(inputs)``.

    Parameters
    ----------
    numbers : sequence of str
        What has to hold of the inputs that are numbers.
    """
    names = [value.name for value in body.tensors]
    look = _look(_unpacked(body), [_guarded(names), *numbers])
    places = _addresses(_looked_at(body))
    odd = _misaligned([value.name for value in body.counted_on])
    run = [
        *_leave(look, odd, places, "miss(inputs)"),
        *_at_home(body, "run(inputs, miss)"),
        *body.lines,
        *handed_out(body.results),
    ]
    fits = [*_leave(look, odd, places, "False"), "return True"]
    return _maker("guard", {"run(inputs, miss)": run, "fits(inputs)": fits})


def into_text(body: Body, numbers: Sequence[str], given: Sequence[bool]) -> str:
    """``make(guard, near)``, which gives ``run(inputs, out, miss)`` and ``fits(inputs, out)``.

    ``near`` says whether memory that is written overlaps other memory, given where all of it
    starts, and remembers in ``near.apart`` what it last said no to.

    Parameters
    ----------
    given : sequence of bool
        For which results there are tensors in ``out``; the others are None.
    """
    shown = [result for result in body.results if not result.hidden]
    outs = [f"o{place}" for place in range(len(shown))]
    real = [out for out, is_given in zip(outs, given, strict=True) if is_given]
    written = [o for o, r in zip(outs, shown, strict=True) if r.buffer and body.device]
    names = [value.name for value in body.tensors]
    look = _look(
        [*_unpacked(body), f"[{', '.join(outs)}] = out"],
        [_guarded([*names, *real]), *(f"{o} is None" for o in outs if o not in real), *numbers],
    )
    places = [*_addresses(body.tensors), *(f"{out}_at = {out}.data_ptr()" for out in real)]
    counted_on = [value.name for value in body.counted_on]
    odd = _misaligned([*counted_on, *(out for out in written if out in real)])
    starts = ", ".join(f"{name}_at" for name in (*names, *real))
    close = f"near.apart != ({starts},) and near(({starts},))" if real else "False"
    lines, results = put_into(body.results, body.lines, body.buffers, given)
    run = [
        *_leave(look, odd, places, "miss(inputs, out)"),
        *([f"if {close}:", "    return miss(inputs, out)"] if real else []),
        *_at_home(body, "run(inputs, out, miss)"),
        *lines,
        *results,
    ]
    fits = [*_leave(look, odd, places, "False"), f"return not ({close})"]
    return _maker("guard, near", {"run(inputs, out, miss)": run, "fits(inputs, out)": fits})


# --- parts -----------------------------------------------------------------------------------


def _plain(body: Body, given: str, lines: Sequence[str], results: Sequence[str]) -> str:
    names = [value.name for value in body.inputs]
    unpacked = [f"{', '.join(names)}, = inputs"] if names else []
    everything = [
        *_at_home(body, f"run({given})"),
        *unpacked,
        *_addresses(body.addressed),
        *lines,
        *results,
    ]
    return "\n".join([f"def run({given}):", *_indented(everything)]) + "\n"


def _at_home(body: Body, again: str) -> list[str]:
    """Make the plan's device the current one where it is not."""
    if body.device is None:
        return []
    index = body.device.index
    return [
        f"if get_device() != {index}:",
        "    with torch.cuda.device(device):",
        f"        return {again}",
        f"stream = get_stream({index})",
    ]


def _unpacked(body: Body) -> list[str]:
    names = ", ".join(value.name for value in body.inputs)
    return [f"[{names}] = inputs"]  # an empty list takes no inputs, and says so


def _guarded(names: Sequence[str]) -> str:
    return f"guard({', '.join(names)})" if names else "True"


def _look(unpacked: Sequence[str], conditions: Sequence[str]) -> list[str]:
    return [
        "try:",
        *_indented([*unpacked, f"fits = {' and '.join(conditions)}"]),
        f"except {_ODD}:",
        "    fits = False",
    ]


def _leave(look: Sequence[str], odd: str, places: Sequence[str], way: str) -> list[str]:
    """Look, and leave by ``way`` where something does not fit."""
    aligned = [f"if {odd}:", f"    return {way}"] if odd else []
    return [*look, "if not fits:", f"    return {way}", *places, *aligned]


def _looked_at(body: Body) -> list[Value]:
    return [v for v in body.inputs if v in body.addressed or v in body.counted_on]


def _addresses(values: Sequence[Value]) -> list[str]:
    return [f"{value.name}_at = {value.name}.data_ptr()" for value in values]


def _misaligned(names: Sequence[str]) -> str:
    if not names:
        return ""
    places = " | ".join(f"{name}_at" for name in names)
    return f"({places}) & {ALIGNMENT - 1}"


def _maker(given: str, functions: Mapping[str, Sequence[str]]) -> str:
    lines = [f"def make({given}):"]
    for head, body in functions.items():
        lines += _indented([f"def {head}:", *_indented(body)])
    names = ", ".join(head.partition("(")[0] for head in functions)
    return "\n".join([*lines, f"    return {names}"]) + "\n"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
