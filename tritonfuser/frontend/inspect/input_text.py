"""Inputs as text: a line of Python for each, which draws a tensor like the given one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import ArgumentError
from ...ir import Fusion
from ..vocabulary.literals import number_text
from .index_inputs import IndexValues, index_values
from .shared_inputs import Window, elements_before, shared_windows

BYTES = {torch.float8_e8m0fnu: (120, 136), torch.float4_e2m1fn_x2: (0, 256)}
"""Dtypes that torch draws no numbers of -> the range of the bytes in their place."""


def describe_inputs(fusion: Fusion, inputs: Sequence[Any]) -> list[str]:
    """A line of Python for each input: random tensors of its shape, strides, dtype and device.

    They lie at addresses as far from a multiple of 16 bytes, and have the same conjugate and
    negative bits, since kernels depend on both. Those that indices are computed from are drawn in
    the range of what is given. Others that share memory are views of one tensor.

    Parameters
    ----------
    fusion : Fusion
        What they are the inputs of.
    inputs : sequence
        Flat: tensors and numbers.

    Raises
    ------
    ArgumentError
        An input is neither a dense tensor nor a number.
    """
    for number, given in enumerate(inputs):
        _check(number, given)
    known = index_values(fusion, inputs)
    windows = shared_windows([None if n in known else x for n, x in enumerate(inputs)])
    return [
        _with_bits(
            given,
            _window(given, windows[number])
            if number in windows
            else _describe(given, known.get(number)),
        )
        for number, given in enumerate(inputs)
    ]


def _check(number: int, given: Any) -> None:
    tensor = isinstance(given, torch.Tensor) and not given.is_nested
    if isinstance(given, bool | int | float | complex):
        return
    if not tensor or given.layout is not torch.strided:
        raise ArgumentError(
            f"repro script: expected a dense tensor or a number as input {number}, "
            f"got {type(given).__name__}"
        )


def _describe(given: Any, known: IndexValues | None) -> str:
    if not isinstance(given, torch.Tensor):
        return number_text(given)
    sizes, place = tuple(given.shape), f"dtype={given.dtype}, device='{given.device}'"
    before = elements_before(given)
    if given.is_contiguous() and not before:
        dense = _dense(sizes, place, given, known)
        # To torch dims of size 1 are contiguous with any strides; those of views show in results.
        usual = given.stride() == torch.empty(sizes, device="meta").stride()
        return dense if usual else f"{dense}.as_strided({sizes}, {given.stride()})"
    reach = 1 + sum((n - 1) * s for n, s in zip(sizes, given.stride(), strict=True)) + before
    view = f"as_strided({sizes}, {given.stride()}{f', {before}' if before else ''})"
    if given.is_contiguous() and known is not None and known.all is not None:
        # The numbers themselves, behind what keeps them from being aligned.
        return f"torch.empty({reach}, {place}).{view}.copy_({_dense(sizes, place, given, known)})"
    return f"{_storage(reach, given, known)}.{view}"


def _with_bits(given: Any, text: str) -> str:
    """An input with the conjugate and the negative bit that a given one has."""
    if not isinstance(given, torch.Tensor):
        return text
    if given.is_conj():
        text = f"{text}.conj()"
    return f"torch._neg_view({text})" if given.is_neg() else text


def _dense(
    sizes: tuple[int, ...], place: str, given: torch.Tensor, known: IndexValues | None
) -> str:
    """A dense tensor, with the numbers themselves where they are written out."""
    if known is not None and known.all is not None:
        return f"torch.tensor({known.all}, {place})"
    return _drawn(sizes, place, given, known)


def _window(given: torch.Tensor, window: Window) -> str:
    """The view of memory that inputs share. The first of them draws it."""
    memory = window.name
    if window.is_first:
        memory = f"({memory} := {_storage(window.elements, given, None)})"
    return f"{memory}.as_strided({tuple(given.shape)}, {given.stride()}, {window.offset})"


def _storage(elements: int, given: torch.Tensor, known: IndexValues | None) -> str:
    """So many elements in a row, of the dtype and the device of a tensor."""
    place = f"dtype={given.dtype}, device='{given.device}'"
    if known is not None or given.dtype in BYTES:
        return _drawn((elements,), place, given, known)
    if given.dtype.itemsize == 1 and given.dtype.is_floating_point:
        return f"torch.randn({elements}, device='{given.device}').to({given.dtype})"
    if given.dtype.is_floating_point or given.dtype.is_complex:
        return f"torch.randn({elements}, {place})"
    bound = 2 if given.dtype is torch.bool else 10
    return f"torch.randint(0, {bound}, ({elements},), {place})"


def _drawn(
    sizes: tuple[int, ...], place: str, given: torch.Tensor, known: IndexValues | None
) -> str:
    """A dense tensor of these sizes, with elements of the range that is known."""
    if given.dtype in BYTES:
        drawn = f"torch.randint{(*BYTES[given.dtype], sizes)}"[:-1]
        return f"{drawn}, dtype=torch.uint8, device='{given.device}').view({given.dtype})"
    if known is None:
        return f"torch.testing.make_tensor({sizes}, {place})"
    least, most = known.least, known.most
    if least == most:
        return f"torch.full({sizes}, {least}, {place})"
    high = most if given.is_floating_point() else int(most) + 1
    return f"torch.testing.make_tensor({sizes}, {place}, low={least}, high={high})"
