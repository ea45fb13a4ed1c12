"""Instructions as they are compiled, and how long those of each pipe take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.lowering.harness import H200, record
from tests.lowering.sass import disassembled, instructions, run_instructions
from tritonfuser.heuristics.bounds import Instructions
from tritonfuser.heuristics.cost.work import KernelWork, NodeWork, element_work
from tritonfuser.heuristics.problem import Problem
from tritonfuser.lowering.access.instructions import (
    _BESIDE,
    _FUNCTIONS,
    compiled_instructions,
    instructions_of,
)
from tritonfuser.ops.builder import op_of
from tritonfuser.ops.forms import Pointwise

EACH = 8
STRAIGHT = ["exp", "tanh", "sigmoid", "rsqrt", "log", "erf", "reciprocal", "acos", "expm1", "erfc"]
"""Functions without a branch that few numbers take."""

BRANCHED = ["sin", "cos", "tan", "atan", "atanh", "lgamma", "erfinv"]
"""Functions with one, which counts are without."""


def of(name: str) -> tuple[Any, list[torch.Tensor]]:
    given = [torch.empty(1 << 20, device="meta")]
    return record(lambda fd, x: getattr(fd.ops, name)(x), given), given


def compiled(name: str, folder: Path, branches: bool) -> float:
    """Instructions of an element as compiled; of all, or of those behind no branch."""
    fd, given = of(name)
    data = fd.schedule(given, arch="sm_90").to_dict()
    data["segments"][0]["params"].update(block_x=128 * EACH, num_warps=4)
    (report,) = fd.compile_for("sm_90", given, schedule=data)
    text = disassembled(report.asm["cubin"], folder)
    return (run_instructions(text) if branches else instructions(text).total()) / EACH


@pytest.mark.parametrize("name", STRAIGHT + BRANCHED)
def test_they_are_as_many_as_the_machine_code_has(name: str, tmp_path: Path) -> None:
    fd, given = of(name)
    ((node,),) = (piece.nodes for piece in fd.segments(given, arch="sm_90").segments)
    branches = name in BRANCHED
    found = compiled(name, tmp_path, branches) - compiled("neg", tmp_path, branches)
    assert compiled_instructions(node).issued == pytest.approx(found, rel=0.15, abs=1.0)
    assert instructions_of(node).issued <= compiled_instructions(node).issued


def test_the_functions_are_those_that_ops_have() -> None:
    assert set(_BESIDE) <= set(_FUNCTIONS)


def test_float32_takes_half_the_time_of_integers_where_its_pipe_is_twice_as_wide() -> None:
    work = KernelWork(
        nodes=(NodeWork(elements=64).add(Instructions(multiplies=3, adds=2, integer=4), late=True),)
    )
    rates = H200.rates
    assert rates.issue == 2 * rates.integer
    assert element_work(work, Problem(parallel=64, device=H200)).after == 4 + 3 / 2
    even = replace(H200, rates=replace(rates, integer=rates.issue))
    assert element_work(work, Problem(parallel=64, device=even)).after == 4 + 3


def test_pointwise_ops_alone_have_more_than_the_least() -> None:
    given = [torch.empty(64, 64, device="meta")]
    fd = record(lambda fd, x: fd.ops.sum(fd.ops.exp(x), [1]), given)
    nodes = [n for piece in fd.segments(given, arch="sm_90").segments for n in piece.nodes]
    others = [n for n in nodes if not isinstance(op_of(n).form, Pointwise)]
    assert others and all(compiled_instructions(n) == instructions_of(n) for n in others)
