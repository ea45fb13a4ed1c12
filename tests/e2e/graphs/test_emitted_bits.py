"""Masks and roundings that kernels leave out change no bit of what random definitions give."""

from __future__ import annotations

import random

import pytest
import torch

from tests.e2e.checking import Schedule, assert_same, copied, gpu
from tests.e2e.graphs.test_random_graphs import KINDS
from tritonfuser.lowering.emit import writer
from tritonfuser.lowering.emit.memory.masked_loads import MaskedLoads

FEW = ("reductions", "dynamic reductions", "long rows", "eights")


def check_bits(kind: str, numbers: range) -> int:
    """Run definitions with all masks and roundings written, and without; how many texts differ."""
    differ = 0
    for number in numbers:
        seed = f"{kind} {number}"
        grown = KINDS[kind].grow(random.Random(seed))
        texts, outputs = [], []
        for everything in (True, False):
            schedule = Schedule(gpu(2), random.Random(seed))
            with pytest.MonkeyPatch.context() as patch:
                if everything:
                    patch.setattr(MaskedLoads, "gives", lambda *_: False)
                    patch.setattr(writer, "is_widening", lambda *_: False)
                torch.manual_seed(3)
                found = schedule.run(grown.fd, copied(grown.inputs))
                sources = schedule.lowered(grown.fd, grown.inputs).sources
            if found is None:
                break
            outputs.append(found)
            texts.append([source.text for source in sources if source is not None])
        else:
            assert_same(outputs[1], outputs[0])
            differ += texts[0] != texts[1]
    return differ


def test_bits_of_graphs() -> None:
    """Some of their texts differ, or nothing would be compared."""
    assert sum(check_bits(kind, range(4)) for kind in FEW) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_many_graphs(kind: str) -> None:
    check_bits(kind, range(100, 140))
