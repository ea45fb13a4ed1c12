"""The families whose steps are recorded: enough of them, and all that the corpus has."""

from __future__ import annotations

import sys

import pytest
import torch

from bench.families.index import FAMILIES
from bench.held_out import is_held_out
from bench.record import __main__ as command
from bench.record.thunder_without_gpu import _ChannelsLast, _sliced
from bench.recorded.corpus import corpus

by_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.name)


@by_family
def test_a_step_runs_at_reduced_sizes(family):
    for size in family.sizes:
        with torch.device("meta"):
            step = family.build(**family.reduced[size])
            found = step.run(*step.inputs)
        results = found if isinstance(found, (tuple, list)) else [found]
        floats = [x for x in results if isinstance(x, torch.Tensor) and x.is_floating_point()]
        assert floats
        if step.training:
            floats[0].sum().backward()
            asked = [x for x in step.inputs if isinstance(x, torch.Tensor) and x.requires_grad]
            weights = step.run.parameters() if isinstance(step.run, torch.nn.Module) else []
            assert any(x.grad is not None for x in (*asked, *weights))


def test_families_and_corpus_have_the_same_names():
    assert len(FAMILIES) >= 24
    assert 0.25 < sum(map(is_held_out, FAMILIES)) / len(FAMILIES) < 0.4
    recorded = {(entry.model, entry.size) for entry in corpus()}
    assert recorded == {(f.name, size) for f in FAMILIES.values() for size in f.sizes}


def test_the_list_of_families(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["record", "--list"])
    command.main()
    assert capsys.readouterr().out.split() == list(FAMILIES)


def test_a_failure_does_not_end_the_others(monkeypatch, capsys):
    tried = []

    def pairs(build, table, reduced):
        tried.append(build)
        raise ValueError("no gradient")

    monkeypatch.setattr(command, "pairs", pairs)
    monkeypatch.setattr(sys, "argv", ["record", "llama", "dit"])
    with pytest.raises(SystemExit, match="not recorded: llama, dit"):
        command.main()
    assert tried == [FAMILIES["llama"].build, FAMILIES["dit"].build]
    assert "llama: ValueError: no gradient" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["record", "nobody"])
    with pytest.raises(SystemExit):
        command.main()
    assert "expected some of llama" in capsys.readouterr().err


def test_families_of_other_modules(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(command, "_recorded", lambda family: seen.append(family) or True)
    monkeypatch.setattr(sys, "argv", ["record", "bench.families.layer_norm_decoders:PHI", "dit"])
    command.main()
    assert seen == [FAMILIES["phi"], FAMILIES["dit"]]
    for name, text in [
        ("bench.families.decoders:NOBODY", "expected a Family of a module"),
        ("bench.nowhere:PHI", "expected a Family of a module"),
        ("bench.families.decoder_sizes:Sizes", "expected a Family, got type"),
    ]:
        monkeypatch.setattr(sys, "argv", ["record", name])
        with pytest.raises(SystemExit):
            command.main()
        assert text in capsys.readouterr().err


def test_slices_of_fake_tensors():
    x = torch.arange(60).reshape(3, 4, 5)
    assert torch.equal(_sliced(x, (slice(None), slice(1, 3))), x[:, 1:3])
    assert torch.equal(_sliced(x, (..., slice(None, 2, None))), x[..., :2])
    with pytest.raises(NotImplementedError, match="expected an index of slices"):
        _sliced(x, (slice(None), 1))


def test_convolutions_of_channels_last_weights_give_such_results():
    image = torch.empty(2, 4, 6, 6, device="meta")
    weight = torch.empty(8, 4, 3, 3, device="meta")
    with _ChannelsLast():
        plain = torch.conv2d(image, weight)
        turned = torch.conv2d(image, weight.contiguous(memory_format=torch.channels_last))
    assert plain.stride() == (128, 16, 4, 1)
    assert turned.stride() == (128, 1, 32, 8)
