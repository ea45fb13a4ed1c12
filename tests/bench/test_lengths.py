"""The bench of a hundred lengths: what it runs is what it says, and the bars are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bench import lengths


def test_the_definition_is_the_function() -> None:
    inputs = lengths.inputs_at(3, "cpu", width=64)
    (found,) = lengths.definition().run(inputs)
    torch.testing.assert_close(found, lengths.eager(*inputs), rtol=2e-2, atol=2e-2)


def test_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(lengths, "LENGTHS", range(128, 1281, 128))
    lengths.main(["--json", str(tmp_path / "found.json"), "--shuffled"])
    found = json.loads((tmp_path / "found.json").read_text())
    (ours,) = found["compiled"]
    assert ours["kernels"] == 3 and len(ours["new_ms"]) == 7
    text = capsys.readouterr().out
    assert "size0 = tv0.shape[1]" in text and "bar: 3 kernels (at most 4)" in text


def test_sizes_are_written_out_for_a_while() -> None:
    before = lengths.options.current()
    with lengths.static_sizes():
        assert not lengths.options.current().dynamic_sizes
    assert lengths.options.current() == before
