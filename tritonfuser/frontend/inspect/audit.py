"""Compares the outputs of a run with the reference: one row for each output."""

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
from .expectation import Expected
from .tolerances import ValidationError


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
    source : str
        Where the limits of its elements come from.
    found : Deviation
        How far it is off, and how far it may be.
    eager : float, optional
        The largest error of torch, op by op in the definition's own dtypes; None where that was
        not asked for.
    is_random : bool
        Whether it depends on random numbers that are not known: then only its shape is compared.
    """

    output: str
    name: str
    loc: SourceLoc | None
    dtype: DataType
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    source: str
    found: Deviation
    eager: float | None = None
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
    fusion: Fusion, expected: Expected, outputs: Sequence[torch.Tensor], inputs: Inputs
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
        hint=f"Allowed there is an error of {found.limit:.3g}: {row.source}.",
    )


def _row(
    fusion: Fusion, expected: Expected, place: int, what: str, actual: torch.Tensor
) -> AuditRow:
    out, wanted = fusion.outputs[place], expected.wide.outputs[place]
    limit = expected.limits[place]
    is_random = not expected.wide.determined[place]
    comparable = actual.shape == wanted.shape and not is_random
    eager = None
    if expected.narrow is not None and comparable:
        rounded = expected.narrow.outputs[place].to(actual.dtype)
        eager = deviation(rounded, wanted, limit.values).max_abs
    return AuditRow(
        output=what,
        name=out.value.name,
        loc=_line(fusion, out),
        dtype=out.value.dtype,
        shape=tuple(actual.shape),
        expected_shape=tuple(wanted.shape),
        source=limit.source,
        found=deviation(actual, wanted, limit.values) if comparable else NONE,
        eager=eager,
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
        "bound": f"{found.limit:.3g}",
        "undecided": str(found.undecided),
        "eager err": "" if row.eager is None else f"{row.eager:.3g}",
        "ok": "random" if row.is_random and row.ok else "yes" if row.ok else "NO",
    }
