"""The outputs of a run and the reference in, a row for each output out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from tabulate import tabulate

from ...dtypes import DataType
from ...errors import SourceLoc
from ...ir import Fusion, Output
from ..record.inputs import Inputs
from .deviation import NONE, Deviation, deviation
from .oracle import Evaluation
from .tolerances import Tolerance, ValidationError, tolerance


@dataclass(frozen=True)
class AuditRow:
    """One output, compared.

    Attributes
    ----------
    output : str
        ``"output 0"``, or ``"input 0, written by the run,"``.
    name : str
        Its value's name in ``repr(fd)``.
    loc : SourceLoc, optional
        The user's line that recorded it.
    dtype : DataType
        As the definition has it.
    shape, expected_shape : tuple of int
        What came, and what should have.
    allowed : Tolerance
        How far it may be off, and why.
    found : Deviation
        How far it is.
    is_random : bool
        Whether it depends on random numbers drawn without a seed: then only its shape is compared.
    """

    output: str
    name: str
    loc: SourceLoc | None
    dtype: DataType
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    allowed: Tolerance
    found: Deviation
    is_random: bool = False

    @property
    def ok(self) -> bool:
        """Whether the shape is right and every element near enough."""
        return self.shape == self.expected_shape and self.found.ok


@dataclass(frozen=True)
class Audit:
    """Every output of one run against the reference; ``print(audit)`` shows the table.

    Attributes
    ----------
    rows : tuple of AuditRow
        One for each returned output, then one for each input that the run wrote to.
    """

    rows: tuple[AuditRow, ...]

    @property
    def ok(self) -> bool:
        """Whether ``validate`` accepts all of them."""
        return all(row.ok for row in self.rows)

    def __str__(self) -> str:
        rows = [_cells(row) for row in self.rows]
        return str(tabulate(rows, headers="keys", disable_numparse=True))


def audit_outputs(
    fusion: Fusion, expected: Evaluation, outputs: Sequence[torch.Tensor], inputs: Inputs
) -> Iterator[AuditRow]:
    """Compare what a run returned, and what it wrote into inputs, with the reference.

    Raises
    ------
    ValidationError
        There are more outputs or fewer than there should be.
    """
    shown = [place for place, out in enumerate(fusion.outputs) if not out.hidden]
    if len(outputs) != len(shown):
        raise ValidationError(f"expected {len(shown)} outputs, got {len(outputs)}")
    for number, (place, actual) in enumerate(zip(shown, outputs, strict=True)):
        yield _row(fusion, expected, place, f"output {number}", actual)
    for place, out in enumerate(fusion.outputs):
        if out.hidden and out.alias_of is not None:
            number = fusion.inputs.index(out.alias_of)
            written = f"input {number}, written by the run,"
            yield _row(fusion, expected, place, written, inputs[number])


def check(row: AuditRow) -> None:
    """Raise unless an output is right.

    Raises
    ------
    ValidationError
        Says which output is wrong, where, by how much, and by how much it may be.
    """
    if row.shape != row.expected_shape:
        raise ValidationError(
            f"{row.output}: expected shape {list(row.expected_shape)}, got {list(row.shape)}",
            loc=row.loc,
        )
    found = row.found
    if found.ok:
        return
    assert found.index is not None
    units = "" if found.ulps is None else f" ({_number(found.ulps)} ULPs)"
    raise ValidationError(
        f"{row.output}: {found.wrong} of {found.count} elements differ from the reference; the "
        f"worst of {row.name} is at {list(found.index)}: expected "
        f"{_shown(found.expected, row.dtype)}, got {_shown(found.actual, row.dtype)}{units}\n"
        f"  The largest absolute error is {found.max_abs:.6g}, "
        f"the largest relative one {found.max_rel:.6g}.",
        loc=row.loc,
        hint=(
            f"Allowed are atol={row.allowed.atol:g}, rtol={row.allowed.rtol:g}: "
            f"{row.allowed.source}."
        ),
    )


def _row(
    fusion: Fusion, expected: Evaluation, place: int, what: str, actual: torch.Tensor
) -> AuditRow:
    out, wanted = fusion.outputs[place], expected.outputs[place]
    allowed = tolerance(out.value.dtype, expected.lengths[place])
    is_random = not expected.determined[place]
    comparable = actual.shape == wanted.shape and not is_random
    return AuditRow(
        output=what,
        name=out.value.name,
        loc=_line(fusion, out),
        dtype=out.value.dtype,
        shape=tuple(actual.shape),
        expected_shape=tuple(wanted.shape),
        allowed=allowed,
        found=deviation(actual, wanted, allowed) if comparable else NONE,
        is_random=is_random,
    )


def _line(fusion: Fusion, out: Output) -> SourceLoc | None:
    node = fusion.producers.get(out.value)
    return None if node is None else node.loc


def _shown(number: object, dtype: DataType) -> str:
    """A number with as many digits as its dtype has; empty for None."""
    if isinstance(number, float):
        return f"{number:.{_DIGITS.get(dtype, 5)}g}"
    return "" if number is None else str(number)


_DIGITS = {DataType.Double: 17, DataType.Float: 9}


def _number(ulps: float) -> str:
    return f"{ulps:.0f}" if 10 <= ulps < 1e6 else f"{ulps:.3g}"


def _cells(row: AuditRow) -> dict[str, str]:
    found = row.found
    shape = str(list(row.shape))
    if row.shape != row.expected_shape:
        shape = f"{shape}, not {list(row.expected_shape)}"
    return {
        "output": f"{row.output.rstrip(',')} ({row.name})",
        "dtype": row.dtype.name,
        "shape": shape,
        "max abs err": f"{found.max_abs:.3g}",
        "max rel err": f"{found.max_rel:.3g}",
        "ULPs": "" if found.ulps is None else _number(found.ulps),
        "worst at": "" if found.index is None else str(list(found.index)),
        "expected": _shown(found.expected, row.dtype),
        "got": _shown(found.actual, row.dtype),
        "atol": f"{row.allowed.atol:.3g}",
        "rtol": f"{row.allowed.rtol:.3g}",
        "ok": "random" if row.is_random and row.ok else "yes" if row.ok else "NO",
    }
