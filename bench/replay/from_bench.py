"""Entries from the benchmarks: recorded definitions, the suite's cases, matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from bench import products as matrix_products
from bench.cases import CASES, size_name
from bench.recorded import definitions as recorded
from bench.recorded.definitions import RecordedDefinition, ScalarInput, TensorInput
from bench.recorded.resizable import Table, resizable
from bench.recorded.shrink import OTHER_SIZES, SIZES, shrink
from bench.suite.selection import DTYPES, Row

from .entry import CPU, FUSED, GIVEN, OPEN, Entry, Spec, recorded_specs, specs_of


def definitions() -> Iterator[Entry]:
    """The recorded definitions at their recorded sizes."""
    for entry in recorded.load():
        yield Entry("definitions", entry.name, entry.text, recorded_specs(entry.inputs))


def suite() -> Iterator[Entry]:
    """Every row of the suite."""
    for case in CASES:
        for dtype in DTYPES:
            for size in case.sizes.of(dtype):
                yield _row(Row(case.name, size, dtype))


def _row(row: Row) -> Entry:
    fd = row.of.record(row.size, row.torch_dtype)
    inputs = row.of.inputs(row.size, row.torch_dtype, "meta")
    return Entry("suite", row.name, repr(fd), specs_of(inputs))


# --- sizes that vary -----------------------------------------------------------------------------


def open_sizes() -> Iterator[Entry]:
    """Programs with symbolic sizes, lowered at the third of three sizes."""
    for entry in recorded.load():
        yield _resized(entry, (SIZES[entry.model], OTHER_SIZES[entry.model]))
    for case in CASES:
        for size in case.sizes.bfloat16[1:3]:
            tables = tuple({n: n // part for n in size if n % part == 0} for part in (4, 2))
            yield _resized(_as_recorded(Row(case.name, size, "bfloat16")), tables)


def _as_recorded(row: Row) -> RecordedDefinition:
    """A row of the suite as a recorded definition; ``index`` identifies its size."""
    inputs = row.of.inputs(row.size, row.torch_dtype, "meta")
    given = tuple(
        TensorInput(tuple(x.shape), tuple(x.stride()), x.dtype)
        if isinstance(x, torch.Tensor)
        else ScalarInput(x)
        for x in inputs
    )
    place = row.of.sizes.of(row.dtype).index(row.size)
    text = repr(row.of.record(row.size, row.torch_dtype))
    return RecordedDefinition(row.case, place, text, given, calls=1)


def _resized(entry: RecordedDefinition, tables: tuple[Table, ...]) -> Entry:
    made = resizable(entry, tables)
    *varying, now = (_specs_at(entry, table, made.at(table)) for table in (*tables, {}))
    return Entry("open sizes", entry.name, made.entry.text, now, mode=OPEN, varying=tuple(varying))


def _specs_at(entry: RecordedDefinition, table: Table, extents: list[int]) -> tuple[Spec, ...]:
    scalars = (ScalarInput(extent) for extent in extents)
    return recorded_specs((*shrink(entry, table).inputs, *scalars))


# --- params and matrix products ------------------------------------------------------------------


def given_params() -> Iterator[Entry]:
    """All recorded definitions, and each case at its first and last size in both dtypes."""
    for entry in definitions():
        yield replace(entry, part="given params", archs=(CPU,), mode=GIVEN)
    for case in CASES:
        for dtype in DTYPES:
            sizes = case.sizes.of(dtype)
            for size in dict.fromkeys((*sizes[:1], *sizes[-1:])):
                entry = _row(Row(case.name, size, dtype))
                yield replace(entry, part="given params", archs=(CPU,), mode=GIVEN)


def products() -> Iterator[Entry]:
    """The cases of ``bench.products``."""
    for case in matrix_products.CASES:
        for size in matrix_products.SIZES:
            inputs = case.inputs(size, torch.device("meta"))
            fd = matrix_products.record(case, inputs)
            name = f"{case.name} {size_name(size)}"
            yield Entry("products", name, repr(fd), specs_of(inputs))


def fused() -> Iterator[Entry]:
    """Entries with a matrix product, lowered with ``fuse_matmul``."""
    for entry in (*definitions(), *products()):
        if "ops.matmul(" in entry.text or "ops.linear(" in entry.text:
            yield replace(entry, part="fuse_matmul", archs=(CPU,), mode=FUSED)
