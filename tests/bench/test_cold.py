"""First runs: what is recorded, how a process times one, and what is told when time is short."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import pytest

from bench.cold import __main__ as command
from bench.cold import trials as runner
from bench.cold.cases import CASES, DEFAULT
from bench.cold.trials import TORCH, Limits, Trial, rows, trials
from bench.processes.child_process import ChildError
from bench.tables.records import OURS
from tests.lowering.harness import H200, lowered

KERNELS = {"layernorm_bwd": (2, 3), "block": (4, 8)}


@pytest.mark.parametrize("name", DEFAULT)
def test_cases_have_the_kernels_they_are_for(name):
    case = CASES[name]
    found = lowered(case.record(), case.inputs(), H200)
    least, most = KERNELS.get(name, (1, 1))
    assert least <= len([source for source in found.sources if source is not None]) <= most


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_every_case_can_be_told_to_a_peer(case):
    described = json.loads(json.dumps(case.as_json("cuda")))
    assert described["text"].count("def f(") == 1
    assert max(described["places"]) < len(described["inputs"])


# --- real processes ------------------------------------------------------------------------------


@pytest.mark.slow
def test_ours_cold_and_with_the_caches_it_left():
    first, second = trials([CASES["bias_gelu"]], [OURS], "meta", 1, Limits(300), warm=True)
    assert first.error is second.error is None
    assert (first.seconds["compiled"], second.seconds["compiled"]) == (1, 0)
    assert first.seconds["ptxas"] > 0 == second.seconds["ptxas"]
    spent = [first.seconds[part] for part in ("record", "passes", "kernels")]
    assert min(spent) > 0
    assert sum(spent) <= first.seconds["total"] + first.seconds["imports"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler")
def test_torch_compile_on_a_cpu():
    (found,) = trials([CASES["layernorm"]], [TORCH], "cpu", 1, Limits(300))
    assert found.error is None
    assert set(found.seconds) == {"total", "imports"}
    assert found.seconds["total"] > 0


# --- what a run makes of processes ---------------------------------------------------------------


@pytest.fixture
def ran(monkeypatch):
    """Processes that print at once; whose they were."""
    seen = []

    def output_of(command, environment, seconds):
        peer, path, device = command[3:]
        case = json.loads(Path(path).read_text())["case"]
        seen.append((peer, case, device, environment["TRITON_CACHE_DIR"], seconds))
        if (peer, case) == (TORCH, "layernorm"):
            raise ChildError("not done in 7 s")
        total = {OURS: 0.5, TORCH: 2.0}[peer]
        return f"warning\n{json.dumps({'total': total, 'imports': 0.1, 'compiled': 1.0})}\n"

    monkeypatch.setattr(runner, "output_of", output_of)
    return seen


def test_all_cases_have_a_round_before_one_has_two(ran):
    cases = [CASES["bias_gelu"], CASES["layernorm"]]
    found = list(trials(cases, [OURS, TORCH], "cuda", 2, Limits(7.0)))
    once = [(peer, case.name) for case in cases for peer in (OURS, TORCH)]
    assert [(peer, case) for peer, case, *_ in ran] == once * 2
    assert [trial.round for trial in found] == [1] * 4 + [2] * 4
    assert {device for _, _, device, _, _ in ran} == {"cuda"}
    assert {seconds for *_, seconds in ran} == {7.0}
    assert found[0].line == "round 1, bias_gelu, ours: 500 ms"
    assert found[3].line == "round 1, layernorm, torch: not done in 7 s"


def test_caches_are_empty_or_those_of_the_run_before(ran):
    list(trials([CASES["bias_gelu"]], [OURS, TORCH], "cuda", 1, Limits(), warm=True))
    folders = [folder for _, _, _, folder, _ in ran]
    assert folders[0] == folders[1] != folders[2] == folders[3]


def test_no_process_is_started_after_the_deadline(ran):
    late = Limits(1.0, time.monotonic() - 1)
    assert list(trials([CASES["bias_gelu"]], [OURS], "cuda", 1, late)) == []
    assert ran == []


def trial(peer, total, number=1, warm=False, error=None):
    seconds = {} if error else {"total": total, "imports": 0.0, "compiled": 2.0, "passes": 0.004}
    return Trial("x", peer, number, warm, seconds, error)


def test_the_table_has_medians_and_the_bar():
    ours = [trial(OURS, t, n) for n, t in enumerate((0.3, 0.5, 9.0))]
    (line,) = rows(ours)
    assert (line["ours ms"], line["kernels"], line["passes"]) == ("500", "2", "4")
    assert "compile ms" not in line
    (line,) = rows([*ours, trial(TORCH, 2.0), trial(TORCH, 0, 2, error="no")])
    assert (line["compile ms"], line["ours/compile"], line["<= 0.5x"]) == ("2000", "0.25x", "met")
    (line,) = rows([*ours, trial(TORCH, 0.9), trial(OURS, 0.1, warm=True)])
    assert (line["<= 0.5x"], line["ours warm ms"]) == ("MISSED", "100")
    assert rows([trial(OURS, 0, error="no"), trial(TORCH, 1.0)]) == []


def test_the_command_without_a_gpu(ran, tmp_path, monkeypatch, capsys):
    path = tmp_path / "cold.json"
    words = ["--cases", "bias_gelu", "softmax", "--rounds", "2", "--json", str(path)]
    monkeypatch.setattr(command.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["cold", *words, "--commit", "abc"])
    command.main()
    text = capsys.readouterr().out
    assert "no GPU here" in text
    assert text.index("round 1, softmax") < text.index("round 2, bias_gelu")
    found = json.loads(path.read_text())
    assert found["run"]["commit"] == "abc"
    assert [t["case"] for t in found["trials"]] == ["bias_gelu", "softmax"] * 2
    monkeypatch.setattr(sys, "argv", ["cold", *words, "--deadline", "-1"])
    command.main()
    assert "4 runs left out, out of time" in capsys.readouterr().out
