"""What the interpreter replaces in Triton is put back, also where a run is interrupted."""

from __future__ import annotations

import itertools
import random

import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

from tests.interrupting import interrupted
from tests.lowering.graphs import noise
from tritonfuser import FusionDefinition

PATCHED = (tl, tl.core, tl.tensor, interpreter, interpreter.InterpretedFunction, JITFunction)
NUMBERS = 40
"""Interrupted places that are tried: at the beginning each, then some of the others."""


def contents():
    return [dict(vars(owner)) for owner in PATCHED]


def changed(before):
    return [
        name
        for old, new in zip(before, contents(), strict=True)
        for name in old.keys() | new.keys()
        if old.get(name) is not new.get(name)
    ]


def test_an_interrupted_run_leaves_triton_as_it_was():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.exp(fd.define_tensor([-1])))
    x = noise(5)
    fd.run([x])
    before = contents()
    file = "interpreter/language_patch.py"
    total = next(n for n in itertools.count(0, 50) if not interrupted(lambda: fd.run([x]), file, n))
    rng = random.Random(0)
    for number in (*range(NUMBERS), *sorted(rng.sample(range(total), NUMBERS))):
        interrupted(lambda: fd.run([x]), file, number)
        assert not changed(before), number
    torch.testing.assert_close(fd.run([x])[0], x.exp())
