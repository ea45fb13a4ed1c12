"""The corpus of families: torch's values at reduced sizes, its files, and what is held out."""

from __future__ import annotations

import lzma

import pytest

from bench.held_out import is_held_out
from bench.recorded import corpus as files
from bench.recorded.corpus import Pair, corpus, save
from bench.recorded.definitions import ScalarInput, TensorInput, record
from bench.recorded.shrink import shrink
from tests.definitions.test_definitions import check

OFTEN = 5
"""One in so many definitions runs in the fast tests."""


def programs():
    """One entry for each reduced program: sizes that reduce to the same one have it once."""
    found = {}
    for entry in corpus():
        small = shrink(entry)
        found.setdefault((small.text, small.inputs), small)
    return list(found.values())


def sampled():
    for place, entry in enumerate(programs()):
        marks = [pytest.mark.slow] if place % OFTEN else []
        yield pytest.param(entry, id=entry.name, marks=marks)


@pytest.mark.parametrize("entry", [*sampled()])
def test_values_at_reduced_size(entry):
    check(entry, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("entry", [*sampled()])
def test_values_on_the_gpu_at_reduced_size(entry):
    check(entry, "cuda")


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("entry", corpus()[::10], ids=lambda e: e.name)
def test_values_on_the_gpu(entry):
    """A tenth of them; ``python -m bench.definitions_run`` compares all."""
    check(entry, "cuda")


def test_both_sizes_are_the_same_program():
    for entry in (e for e in corpus() if e.index == 0):
        full, small = record(entry).fusion.ir, record(shrink(entry)).fusion.ir
        assert [n.op for n in full.nodes] == [n.op for n in small.nodes]
        assert len(entry.inputs) == len(full.inputs) == len(small.inputs)


def test_names_are_unique_and_say_family_and_size():
    names = [entry.name for entry in corpus()]
    assert len(set(names)) == len(names)
    assert {"llama-filling-0", "llama-small-0", "llama-decode-0"} <= set(names)


def test_a_third_is_held_out_by_name():
    families = {entry.model: entry.held_out for entry in corpus()}
    assert all(held_out == is_held_out(name) for name, held_out in families.items())
    assert 0.2 < sum(families.values()) / len(families) < 0.45
    assert is_held_out("qwen2")
    assert not is_held_out("llama")


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FILES", tmp_path / "corpus")
    entry = corpus()[0]
    inputs = (*entry.inputs, ScalarInput(3), ScalarInput(0.5))
    pair = Pair(entry.text, inputs, 5, entry.reduced.text, entry.reduced.inputs)
    path = save("toy", {"filling": [pair], "small": [pair, pair]})
    assert len(path.read_bytes()) < len(lzma.decompress(path.read_bytes())) / 3
    found = files.corpus.__wrapped__()
    assert [e.name for e in found] == ["toy-filling-0", "toy-small-0", "toy-small-1"]
    assert (found[0].text, found[0].inputs, found[0].calls) == (entry.text, inputs, 5)
    assert shrink(found[0]).inputs == entry.reduced.inputs
    assert any(isinstance(item, TensorInput) for item in found[0].inputs)
