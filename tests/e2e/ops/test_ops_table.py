"""That no row of the op table is left out: a new op without samples fails here."""

from __future__ import annotations

from tests.e2e.ops import test_ops_pointwise, test_ops_reductions
from tests.e2e.ops.samples import CALLS, DRAWN, SCALARS
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.parameters import Kind
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import Library


def test_every_row_is_run() -> None:
    pointwise = {name for name, _ in test_ops_pointwise.CASES}
    # One row is run by its dtype, those without an expression in test_complex.
    pointwise |= {n for n, op in OPS.items() if any(p.kind is Kind.DTYPE for p in op.params)} & {
        n for n, op in OPS.items() if isinstance(op.form, Pointwise)
    }
    pointwise |= {n for n, op in OPS.items() if getattr(op.form, "variants", None) == ()}
    reduced = {n for n, _ in (*test_ops_reductions.REDUCED, *test_ops_reductions.SCANNED)}
    library = {n for n, op in OPS.items() if isinstance(op.form, Library)}  # test_library
    covered = pointwise | reduced | library | set(CALLS) | SCALARS | DRAWN
    assert set(OPS) - covered == set()
    assert covered - set(OPS) == set()
