"""First runs: the functions are recorded as they should be, and a process of its own times one."""

from __future__ import annotations

import pytest

from bench import cold
from bench.cold_cases import CASES
from tests.lowering.harness import H200, lowered


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_cases_have_the_kernels_they_are_for(case):
    found = lowered(case.record(), case.inputs("meta"), H200)
    count = len([source for source in found.sources if source is not None])
    wanted = {"layernorm_backward": (2, 3), "several_kernels": (4, 8)}.get(case.name, (1, 1))
    assert wanted[0] <= count <= wanted[1]


@pytest.mark.slow
def test_a_cold_run_and_a_warm_one():
    row = cold.measure(CASES["gelu_bias"], 1, ("ours",))
    first, second = row["ours cold"], row["ours warm"]
    assert first["compiled"] == 1 and second["compiled"] == 0
    assert first["ptxas"] > 0 and second["ptxas"] == 0
    assert first["total"] >= first["import"] + first["record"] + first["kernels"]
    line = cold.cells(row)
    assert line["case"] == "gelu_bias" and float(line["ours ms"]) > 0


def test_the_table_has_the_ratio_where_both_ran():
    ours = {"total": 0.5, "compiled": 1.0}
    row = {"case": "x", "ours cold": ours, "ours warm": ours}
    assert "ours/compile" not in cold.cells(row)
    both = {**row, "torch cold": {"total": 2.0}, "torch warm": {"total": 1.0}}
    assert cold.cells(both)["ours/compile"] == "0.25"
    assert cold.cells(both)["compile ms"] == "2000"
