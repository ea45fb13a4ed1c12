"""``tune`` and ``params``: what is stored is shown, compared, sent elsewhere and cleared."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import tritonfuser
from tests.frontend.tune.fakes import softmax
from tritonfuser import FusionDefinition, TuneReport, options
from tritonfuser.cache.tuned import store
from tritonfuser.cache.tuned.store import Stored
from tritonfuser.cli import params as params_module
from tritonfuser.cli.main import main
from tritonfuser.devices import CPU, known
from tritonfuser.frontend.run import tunable
from tritonfuser.frontend.serialization.signatures import signature_data
from tritonfuser.frontend.tune import stored_tuning
from tritonfuser.frontend.tune.compiling import Compiler
from tritonfuser.frontend.tune.report import Trial

ROOT = Path(tritonfuser.__file__).parents[1]


def run(*arguments, **given):
    return CliRunner().invoke(main, [*map(str, arguments)], **given)


@pytest.fixture
def settings(monkeypatch):
    yield monkeypatch
    monkeypatch.undo()
    options.refresh()


@pytest.fixture(autouse=True)
def folder(tmp_path, settings):
    """An empty store, on a machine whose only device is the CPU's."""
    settings.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path / "cache"))
    settings.setenv("TRITONFUSER_TUNED", "1")
    options.refresh()
    settings.setattr(params_module, "_devices", lambda: [CPU])
    return tmp_path / "cache" / "schedules"


def stored(block_x=1, rows=64):
    """A schedule stored for a softmax; its ID, and the definition with its inputs."""
    fd, _ = softmax()
    inputs = [torch.randn(rows, 300)]
    (segment,) = fd.schedule(inputs).segments
    changed = replace(segment, params=replace(segment.params, block_x=block_x))
    schedule = replace(fd.schedule(inputs), segments=(changed,))
    core = fd._core()
    problem = {"definition": fd.to_dict(), "inputs": signature_data(core.signature(inputs))}
    path = store.save(core.store_key(inputs), Stored(schedule, 1e-5, 2e-5, "cpu", problem))
    return path.stem, fd, inputs


# --- tune ----------------------------------------------------------------------------------------

FILE = """
import torch
from tritonfuser import FusionDefinition

def rows(count=8, length=32):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [1]))
    return fd, [torch.randn(count, length)]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def asked(settings):
    """What ``fd.autotune`` is asked for, in the place of a GPU."""
    found = []

    def autotune(fd, inputs, budget_s, level, *, arch, seed, store):
        assert arch is None
        found.append((tuple(inputs[0].shape), budget_s, level, seed, store))
        schedule = fd.schedule(inputs)
        told = "/somewhere/0123456789abcdef.json" if store else ""
        interrupted = inputs[0].shape[0] == 99
        return TuneReport(
            schedule, 2e-5, 2e-5, (Trial(schedule, "", 2e-5),), "a GPU", 1.0, interrupted, told
        )

    settings.setattr(FusionDefinition, "autotune", autotune)
    return found


def test_tune_of_a_function_without_sizes(file, asked):
    result = run("tune", f"{file}:rows")
    assert result.exit_code == 0, result.output
    assert asked == [((8, 32), 5.0, "params", 0, True)]
    assert result.output.startswith("rows(): nothing beats the heuristics' schedule, 20 us")
    assert "stored as 0123456789ab\n" in result.output


def test_tune_at_several_sizes(file, asked, tmp_path):
    out = tmp_path / "reports.json"
    more = ("--budget", "0.5", "--level", "schedule", "--seed", "3", "--no-store", "--json", out)
    result = run("tune", f"{file}:rows", "--sizes", "4x16", "--sizes", "128", *more)
    assert result.exit_code == 0, result.output
    assert asked == [((n, m), 0.5, "schedule", 3, False) for n, m in ((4, 16), (128, 32))]
    assert "rows(4, 16): " in result.output and "stored" not in result.output
    reports = json.loads(out.read_text())
    assert [report["function"] for report in reports] == ["rows(4, 16)", "rows(128)"]
    assert reports[0]["trials"][0]["seconds"] == 2e-5


def test_reports_that_cannot_be_written_are_refused_before_the_search(file, asked, tmp_path):
    result = run("tune", f"{file}:rows", "--json", tmp_path / "nowhere" / "reports.json")
    assert result.exit_code == 2 and not asked
    assert "no file can be made in" in " ".join(result.output.split())


def test_an_export_that_cannot_be_written_names_the_file(tmp_path):
    out = tmp_path / "nowhere" / "tuned.json"
    result = run("params", "export", "-o", out)
    assert result.output == f"Error: [Errno 2] No such file or directory: '{out}'\n"


def test_tune_ends_where_it_is_interrupted(file, asked):
    result = run("tune", f"{file}:rows", "--sizes", "99", "--sizes", "4")
    assert result.exit_code == 130 and len(asked) == 1


@pytest.mark.parametrize("sizes", ["", "x", "4x", "-4", "4,5", "1" * 5000, "__import__('os')"])
def test_tune_of_wrong_sizes(file, asked, sizes):
    result = run("tune", f"{file}:rows", f"--sizes={sizes}")
    assert result.exit_code == 2 and not asked
    assert "is not of the form 8192x4096" in " ".join(result.output.split())


def test_tune_of_more_sizes_than_the_function_takes(file, asked):
    result = run("tune", f"{file}:rows", "--sizes", "4x4x4")
    assert result.exit_code == 1
    assert "rows(4, 4, 4) cannot be called: its parameters are (" in result.output


def test_tune_without_a_gpu_says_so(file):
    result = run("tune", f"{file}:rows")
    assert result.exit_code == 1
    assert "autotune needs a CUDA device, and the inputs are on cpu" in result.output
    assert "core.py" not in result.output and "On a CPU kernels run in" in result.output


def test_tune_for_a_gpu_that_is_not_here(file):
    result = run("tune", f"{file}:rows", "--arch", "sm_90")
    assert result.exit_code == 0, result.output
    assert "by the cost model for sm_90: nothing was run" in result.output


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf"])
def test_tune_with_a_budget_that_is_none(file, budget):
    result = run("tune", f"{file}:rows", "--budget", budget)
    assert result.exit_code == 1 and "a positive number of seconds" in result.output


# --- params --------------------------------------------------------------------------------------


def test_list_has_a_row_for_each_schedule():
    assert run("params", "list").output == "nothing is stored\n"
    name, *_ = stored()
    header, _, row = run("params", "list").output.splitlines()
    assert header.split() == ["id", "device", "inputs", "time", "heuristics", "speedup", "used"]
    cells = [name[:12], "cpu", "Float[64, 300]", "10 us", "20 us", "2.00x", "yes"]
    assert re.split(" {2,}", row) == cells


def test_list_of_what_is_not_used(folder, settings):
    name, *_ = stored()
    settings.setattr("tritonfuser.cache.tuned.keys._generator_digest", lambda: "another")
    assert "no: generator changed" in run("params", "list").output
    path = folder / f"{name}.json"
    path.write_text("{")
    assert "no: it cannot be read" in run("params", "list").output


def test_show_prints_the_definition_and_the_schedule():
    name, fd, _ = stored()
    text = run("params", "show", name[:6]).output
    assert "fd.ops.exp(" in text and repr(fd).splitlines()[0] in text
    assert "inputs: Float[64, 300]" in text and "speedup: 2.00x" in text
    assert json.loads(text[text.index("\n{") :])["segments"][0]["params"]["block_x"] == 1


def test_diff():
    name, *_ = stored(block_x=2)
    (line,) = run("params", "diff", name).output.splitlines()
    assert re.fullmatch(r"s0\.block_x \d+ -> 2", line)
    other, *_ = stored(block_x=4, rows=63)
    assert run("params", "diff", name, other).output == "s0.block_x 4 -> 2\n"
    assert run("params", "diff", name, name).output == "they are the same\n"


@pytest.mark.parametrize("given", ["", "zz", "../../etc/passwd", "*"])
def test_what_is_named_wrongly(given):
    stored()
    for command in ("show", "diff", "export", "clear"):
        result = run("params", command, given)
        assert result.exit_code == 2
        assert f"nothing that begins with {given!r}" in " ".join(result.output.split())


def test_a_beginning_of_several_names():
    names = [stored(rows=rows)[0] for rows in range(40, 57)]  # of 17 names two begin alike
    first = next(n[0] for n in names if sum(o[0] == n[0] for o in names) > 1)
    result = run("params", "show", first)
    assert result.exit_code == 2 and f"that begin with {first!r}" in result.output


def test_clear(folder):
    names = [stored(rows=rows)[0] for rows in (60, 61, 62)]
    (folder / "broken.json").write_text("{")
    assert run("params", "clear", names[0], input="n\n").exit_code == 1
    assert len(list(folder.glob("*.json"))) == 4
    assert run("params", "clear", names[0], "--yes").output == "1 removed\n"
    assert run("params", "clear", "--unused", "--yes").output == "1 removed\n"
    assert {path.stem for path in folder.glob("*.json")} == set(names[1:])
    assert run("params", "clear", input="y\n").output.endswith("2 removed\n")
    assert run("params", "clear").output == "nothing to remove\n"


# --- export and import ---------------------------------------------------------------------------


@pytest.fixture
def document(tmp_path):
    """What ``export`` wrote of one schedule, as data; ``import`` of it again, changed or not."""
    name, *_ = stored()
    path = tmp_path / "sent.json"
    assert run("params", "export", "-o", path).output == f"1 written to {path}\n"

    def again(data):
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return run("params", "import", path)

    return json.loads(path.read_text()), again, name


def test_it_is_used_where_it_arrives(document, folder):
    data, again, name = document
    _, fd, inputs = stored()
    wanted = fd.schedule(inputs)
    assert run("params", "clear", "--yes").exit_code == 0
    assert fd.schedule(inputs) != wanted
    assert again(data).output == "1 stored, 0 of them in the place of others\n"
    assert [path.stem for path in folder.glob("*.json")] == [name]
    assert fd.schedule(inputs) == wanted
    (out,) = fd.run(inputs)
    torch.testing.assert_close(out, torch.softmax(inputs[0], 1))
    assert again(data).output == "1 stored, 1 of them in the place of others\n"
    assert run("params", "export", name).output == json.dumps(data, indent=1) + "\n"


def test_lines_of_programs_are_not_sent(document):
    data, _, _ = document
    assert "fakes.py" not in json.dumps(data)


def change(data, path, value):
    """A copy with another value at ``a.b[0].c``."""
    made = json.loads(json.dumps(data))
    *before, last = re.findall(r"[a-z_]+|\d+", path)
    at = made
    for part in before:
        at = at[int(part) if part.isdigit() else part]
    if value is KeyError:
        del at[last]
    else:
        at[int(last) if last.isdigit() else last] = value
    return made


WRONG = {
    "format": "something",
    "version": 99,
    "entries": {},
    "entries[0]": 3,
    "entries[0].schedule": KeyError,
    "entries[0].seconds": -1.0,
    "entries[0].heuristic_seconds": "1",
    "entries[0].key.triton": "2.0",
    "entries[0].key.package": "9.9",
    "entries[0].key.generator": "",
    "entries[0].key.device": "NVIDIA A100",
    "entries[0].key.arch": 3,
    "entries[0].key.definition": "0" * 64,
    "entries[0].key.signature": "()",
    "entries[0].definition.ops[0].op": "no_op_of_ours",
    "entries[0].definition.version": 99,
    "entries[0].inputs": [],
    "entries[0].inputs[0].sizes": [64, -300],
    "entries[0].inputs[0].dtype": "Half",
    "entries[0].inputs[0].strides": [-1, 1],
    "entries[0].schedule.version": 99,
    "entries[0].schedule.segments[0].scheduler": "magic",
    "entries[0].schedule.segments[0].params.block_x": 3,
    "entries[0].schedule.segments[0].params.block_r": 128,
    "entries[0].schedule.segments[0].params.num_warps": 1 << 20,
    "entries[0].schedule.segments[0].computes": ["tv99"],
}


@pytest.mark.parametrize("path", WRONG)
def test_what_is_wrong_is_named_by_its_path(document, folder, path):
    data, again, _ = document
    run("params", "clear", "--yes")
    result = again(change(data, path, WRONG[path]))
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    told = " ".join(result.output.split())
    shown = re.search(r"sent\.json: ((?:[a-z_]+(?:\[\d+\])?\.?)+)", told)
    assert shown is not None, told
    named = shown[1].rstrip(".")
    assert path.startswith(named) or named.startswith(path), told
    assert not list(folder.glob("*.json"))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "\x00"])
def test_a_file_that_is_no_document(document, text):
    _, again, _ = document
    result = again(text)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)


def test_all_or_none(document, folder):
    data, again, _ = document
    run("params", "clear", "--yes")
    both = {**data, "entries": [data["entries"][0], {**data["entries"][0], "seconds": -1.0}]}
    result = again(both)
    assert result.exit_code == 1 and "entries[1].seconds" in result.output
    assert not list(folder.glob("*.json"))


def test_gpus_that_are_not_here(document, settings, tmp_path, folder):
    data, again, _ = document
    settings.setattr(params_module, "_devices", lambda: [known("sm_90")])
    told = " ".join(again(data).output.split())
    assert "entries[0].key.device: expected what is here, NVIDIA H200 (sm_90), got 'cpu'" in told
    result = run("params", "import", tmp_path / "sent.json", "--any-device")
    assert result.exit_code == 0, result.output
    settings.setattr(params_module, "_devices", list)
    assert "no GPU" in again(data).output


def test_a_schedule_without_its_definition_is_not_sent():
    fd, inputs = softmax()
    key = fd._core().store_key(inputs)
    store.save(key, Stored(fd.schedule(inputs), 1e-5, 2e-5, "cpu"))
    for command in ("export", "diff"):
        result = run("params", command, key.name)
        assert result.exit_code == 1 and "stored without its definition" in result.output
    assert run("params", "show", key.name).exit_code == 0


# --- the page ------------------------------------------------------------------------------------


def test_the_commands_of_the_page(tmp_path, settings):
    """They are run as they stand there, with a search that finds something at once."""
    page = (ROOT / "docs" / "tuning.md").read_text().split("## On the command line\n")[1]
    (tmp_path / "rows.py").write_text(page.split("```python\n")[1].split("```")[0])
    commands = re.findall(r"^    python -m tritonfuser (.+?)(?: +#.*)?$", page, re.MULTILINE)
    settings.setattr(tunable, "_check_device", lambda where: None)
    settings.setattr(stored_tuning, "autotune", found_at_once)
    settings.chdir(tmp_path)
    said = []
    for command in commands:
        result = run(*command.split(), input="y\n")
        assert result.exit_code == 0, result.output
        said.append(result.output)
    assert [command.split()[0] for command in commands] == ["tune", *["params"] * 4]
    assert said[0].count("stored as ") == 2
    assert said[1].count("Float[") == 2
    assert "2 written to tuned.json" in said[2]
    assert said[3:] == ["2 stored, 2 of them in the place of others\n", "nothing to remove\n"]


def found_at_once(task):
    """The report of a search whose second trial is the best."""
    schedule = Compiler(task.fusion, task.inputs).heuristics()
    (segment,) = schedule.segments
    params = replace(segment.params, num_warps=2 * segment.params.num_warps)
    better = replace(schedule, segments=(replace(segment, params=params),))
    trials = (Trial(schedule, "", 2e-5), Trial(better, "", 1e-5))
    return TuneReport(better, 2e-5, 1e-5, trials, "cpu", 1.0)
