"""Loops over rows whose length varies have no masks: what steps leave of a row is one more tile."""

from __future__ import annotations

import re

import pytest
import torch

from tests.e2e.opened import compile_open
from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import small
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.open_sizes import KeyReader
from tritonfuser.cache.keys.signature import key_maker
from tritonfuser.heuristics.search import choice

BODIES = {
    "softmax": softmax,
    "row sum": lambda fd, x: fd.ops.sum(fd.ops.exp(x), [1]),
    "row maximum": lambda fd, x: fd.ops.max(x, [1]),
    "moments": lambda fd, x: fd.ops.var(x, [1]),
}

WANTED = {
    "softmax": lambda x: torch.softmax(x, 1),
    "row sum": lambda x: x.exp().sum(1),
    "row maximum": lambda x: x.amax(1),
    "moments": lambda x: x.var(1),
}


def define(name):
    with FusionDefinition() as fd:
        fd.add_output(BODIES[name](fd, fd.define_tensor([-1, -1], contiguity=True)))
    return fd


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("name", ["softmax", "row sum", "row maximum"])
def test_steps_have_no_masks(name, multiple):
    def given(columns):
        return [torch.empty(4096, columns * multiple, device="meta")]

    count = 70_003 // multiple | 1
    (kernel,) = define(name).kernels(
        given(count), arch="sm_90", varying=[given(count - 4), given(count - 2)]
    )
    steps = re.findall(r"^    for .*\n((?:        .*\n)+)", kernel.text, re.M)
    assert steps and not any("mask" in step for step in steps)
    # Rows of other lengths than multiples of vectors have steps that begin at vectors.
    assert f"t_mask = t < {'stop' if multiple == 1 else 'size0'}" in kernel.text


@pytest.fixture
def params_of_rules(monkeypatch):
    monkeypatch.setattr(choice, "GAIN", 0.0)
    choice.chosen.cache_clear()
    yield
    choice.chosen.cache_clear()


@pytest.mark.parametrize("name", ["softmax", "moments"])
@pytest.mark.usefixtures("params_of_rules")
def test_rows_of_whole_steps_and_beside_them(name):
    """The same kernel for all lengths that its guards allow."""
    lengths = (65_537, 73_728)
    given = [[noise(2, n)] for n in lengths]
    fd = define(name)
    made = compile_open(fd, given[0], given[1:], small(1))
    assert made is not None and any("t_mask" in text for text in texts(made))
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    ran = 0
    for inputs in given:
        plan = made.at(reader.split(key(inputs)))
        if plan is not None:
            (found,), (x,) = plan.run(inputs), inputs
            torch.testing.assert_close(found, WANTED[name](x), rtol=1e-4, atol=1e-5)
            ran += 1
    assert ran == 2


def texts(made):
    return [step.source.text for step in made.plan.steps if step.source is not None]
