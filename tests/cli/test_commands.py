"""``python -m tritonfuser``: its subcommands, and what they load."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import tritonfuser
from tritonfuser import FusionDefinition, options
from tritonfuser.cli.main import COMMANDS, main
from tritonfuser.cli.op_examples import _WRITTEN, example_of
from tritonfuser.dtypes import DataType
from tritonfuser.ops.registry import OPS

doctor_module = import_module("tritonfuser.cli.doctor")
ROOT = Path(tritonfuser.__file__).parents[1]


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def output_of(*arguments):
    """What a new interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout


def test_help_lists_the_commands_without_loading_them():
    code = "from tritonfuser.cli.main import main\nmain(['--help'], standalone_mode=False)\n"
    code += "import sys; print('torch' in sys.modules, 'triton' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    out = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    assert out.endswith("False False\n")
    assert all(f"  {name} " in out for name in COMMANDS)


def test_the_module_is_the_program():
    command = [sys.executable, "-m", "tritonfuser", "--version"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    assert out == f"tritonfuser, version {tritonfuser.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_that_of_its_help(name):
    command = main.get_command(None, name)
    assert command.name == name
    assert command.short_help == COMMANDS[name]
    assert command.help.startswith(COMMANDS[name].rstrip("."))


def test_an_unknown_command():
    result = run("docter")
    assert result.exit_code == 2 and "No such command 'docter'" in result.output


# --- ops -----------------------------------------------------------------------------------------


def test_ops_lists_all():
    lines = run("ops").output.splitlines()
    for op in OPS.values():
        assert any(line.split()[:1] == [op.name] and line.endswith(op.doc) for line in lines)


def test_ops_shows_one():
    text = run("ops", "sum").output
    assert text.startswith(
        "fd.ops.sum(arg: TensorView, dims: int | list[int] | tuple | None = None"
    )
    for part in (OPS["sum"].doc, "keepdim : bool", "Whether reduced dims stay", "fd.ops.sum(x, d"):
        assert part in text


def test_ops_of_a_wrong_name():
    result = run("ops", "lgama")
    assert result.exit_code == 2
    assert "there is no op 'lgama'; did you mean lgamma" in result.output


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_examples_record_the_op(op):
    scope = {"FusionDefinition": FusionDefinition, "DataType": DataType}
    exec(example_of(op), scope)
    assert f"fd.ops.{op.name}(" in example_of(op)


def test_there_is_no_example_of_nothing():
    assert set(_WRITTEN) <= set(OPS)


# --- explain -------------------------------------------------------------------------------------

FILE = """
import torch
from neighbour import SIZE
from tritonfuser import FusionDefinition

if __name__ == "__main__":
    raise SystemExit("run as a script")

def softmax(rows=8, columns=SIZE):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        e = fd.ops.exp(x)
        fd.add_output(fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True)))
    return fd, [torch.randn(rows, columns)]

def unfit():
    return softmax()[0], [torch.randn(8)]

def raises():
    return 1 / 0

def leaves():
    raise SystemExit(0)

def takes(x):
    return x

def alone():
    return softmax()[0]

def swapped():
    return softmax()[::-1]

def tensor():
    return softmax()[0], torch.randn(2)

NUMBER = 3
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("neighbour", "tritonfuser_user_file"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "neighbour.py").write_text("SIZE = 32")
    path = tmp_path / "my definitions.py"
    path.write_text(FILE)
    yield path
    sys.modules.pop("neighbour", None)
    sys.modules.pop("tritonfuser_user_file", None)


def test_explain_shows_what_explain_says(file):
    result = run("explain", f"{file}:softmax")
    assert result.exit_code == 0, result.output
    assert "inner_persistent" in result.output


def test_explain_at_given_sizes(file):
    result = run("explain", f"{file}:softmax", "--sizes", "4x300")
    assert result.exit_code == 0, result.output
    assert " ops over 4 x 300, " in result.output
    assert result.output == run("explain", f"{file}:softmax", "--sizes", "4x300").output
    result = run("explain", f"{file}:softmax", "--sizes", "4x300", "--sizes", "5")
    parts = result.output.split("softmax(5)\n")
    assert parts[0].startswith("softmax(4, 300)\n") and " ops over 5 x 32, " in parts[1]
    result = run("explain", f"{file}:softmax", "--sizes", "1x2x3")
    assert result.exit_code == 1 and "softmax(1, 2, 3) cannot be called" in result.output


def test_explain_for_another_gpu(file):
    result = run("explain", f"{file}:softmax", "--arch", "sm_90")
    assert result.exit_code == 0 and "H200" in result.output
    result = run("explain", f"{file}:softmax", "--arch", "sm_1")
    assert result.exit_code == 1 and "UnsupportedDeviceError: " in result.output


WRONG = {
    "softmax": (2, "is not of the form FILE.py:function"),
    "{file}": (2, "is not of the form FILE.py:function"),
    "{file}:1 + 1": (2, "is not of the form FILE.py:function"),
    "{file}:__import__('os')": (2, "is not of the form FILE.py:function"),
    "{file}.py:softmax": (2, "there is no file"),
    "{file}:sofmax": (2, "has no function 'sofmax'; it has softmax, unfit, raises"),
    "{file}:NUMBER": (2, "has no function 'NUMBER'"),
    "{file}:raises": (1, "ZeroDivisionError"),
    "{file}:leaves": (1, "leaves failed: SystemExit"),
    "{file}:takes": (
        1,
        "its parameters are (x), and it is given no arguments: --sizes",
    ),
    "{file}:alone": (1, "it must return (fd, inputs)"),
    "{file}:swapped": (1, "returned a list first: it must return"),
    "{file}:tensor": (1, "returned a Tensor second: it must return"),
    "{file}:unfit": (1, "fd.explain(inputs) failed: InputMismatch: Expected input 0, tv0,"),
}


@pytest.mark.parametrize("given", WRONG)
def test_explain_of_what_is_wrong(file, given):
    code, text = WRONG[given]
    result = run("explain", given.format(file=file))
    assert result.exit_code == code
    assert text in " ".join(result.output.split())
    assert isinstance(result.exception, SystemExit)  # an error of click's, none from inside


def test_explain_shows_the_users_traceback(file):
    shown = run("explain", f"{file}:raises").output
    assert "return 1 / 0" in shown and 'definitions.py", line' in shown


@pytest.mark.parametrize("text", ["import nothing_of_that_name", "def f(:", "raise ValueError(3)"])
def test_explain_of_a_file_that_cannot_be_imported(file, text):
    file.write_text(text)
    result = run("explain", f"{file}:f")
    assert result.exit_code == 1 and "cannot be imported: " in result.output


def test_explain_of_what_is_no_python_file(file):
    other = file.with_suffix(".txt")
    other.write_text(FILE)
    result = run("explain", f"{other}:softmax")
    assert result.exit_code == 2 and "its name must end in .py" in " ".join(result.output.split())


# --- doctor --------------------------------------------------------------------------------------


@pytest.fixture
def settings(monkeypatch):
    yield monkeypatch.setenv
    monkeypatch.undo()
    options.refresh()


def test_doctor_finds_nothing_wrong_here(settings, tmp_path):
    settings("TRITON_CACHE_DIR", os.fspath(tmp_path))
    settings("TRITONFUSER_FMA", "0")
    result = run("doctor")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    for part in (torch.__version__, "GPUs", "C compiler", f"{tmp_path} can be written to"):
        assert part in words
    assert "TRITONFUSER_FMA=0 0: a product and a sum are never contracted" in words
    assert "sum(2 x + 1) of [8, 32] first run" in words and words.endswith("All is well.")


def test_doctor_finds_what_is_wrong(settings, monkeypatch):
    settings("TRITON_CACHE_DIR", os.fspath(Path(__file__) / "cache"))
    settings("TRITONFUSER_LOG", "cash")
    monkeypatch.setattr(
        doctor_module, "tiny_run", lambda: doctor_module.Section("A definition", [])
    )
    result = run("doctor")
    assert result.exit_code == 1
    words = " ".join(result.output.split())
    assert "PROBLEM: set TRITON_CACHE_DIR to a directory that can be written to: Not a" in words
    assert "PROBLEM: TRITONFUSER_LOG: 'cash' not among cache, segment, compile" in words
    assert words.endswith("Problems: 2, marked above.")


def test_doctor_tells_of_a_run_that_fails(monkeypatch):
    def fails(self, inputs):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(FusionDefinition, "run", fails)
    assert doctor_module.tiny_run().problems == ("RuntimeError: no such luck",)
    monkeypatch.setattr(FusionDefinition, "run", lambda self, inputs: [inputs[0].sum(1)])
    assert doctor_module.tiny_run().problems == ("its result is wrong",)


def test_doctor_tells_of_gpus_and_compilers(monkeypatch, settings):
    facts = doctor_module.facts_text(doctor_module.devices.known("sm_90"))
    assert facts.startswith("NVIDIA H200") and "132 multiprocessors" in facts and "TB/s" in facts
    settings("CC", "/no/compiler")
    assert "'/no/compiler', which is no program" in str(doctor_module.compiler())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert doctor_module.compiler().problems


NO_TOPIC = {"TRITONFUSER_LOG": "cash"}


def failed(*arguments, **environment):
    """What a new interpreter prints on stderr, where the command ends with 1."""
    ran = subprocess.run(
        [sys.executable, "-m", "tritonfuser", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert ran.returncode == 1 and "Traceback" not in ran.stderr, ran.stderr
    return ran.stderr


def test_a_wrong_option_is_said_without_a_traceback():
    assert "Error: TRITONFUSER_LOG: 'cash' not among" in failed("params", "list", **NO_TOPIC)


def test_what_cannot_be_written_is_said_without_a_traceback(tmp_path):
    away = tmp_path / "none" / "file.json"
    assert f"No such file or directory: '{away}" in failed("params", "export", "-o", away)
    said = failed("params", "export", "-o", "/dev/full")
    assert "Error: [Errno 28] No space left on device: '/dev/full'" in said


def test_doctor_tells_of_a_wrong_option():
    ran = subprocess.run(
        [sys.executable, "-m", "tritonfuser", "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **NO_TOPIC},
    )
    assert ran.returncode == 1 and not ran.stderr
    assert "PROBLEM: TRITONFUSER_LOG: 'cash' not among" in ran.stdout


def test_doctor_tells_of_a_folder_for_schedules(settings, tmp_path, monkeypatch):
    settings("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path / "here"))
    options.refresh()
    words = " ".join(str(doctor_module.directories()).split())
    assert f"{tmp_path / 'here'} can be written to" in words
    settings("TRITONFUSER_CACHE_DIR", "/dev/null/here")
    options.refresh()
    (problem,) = doctor_module.directories().problems
    assert problem.startswith("set TRITONFUSER_CACHE_DIR to a directory that can be written to")
