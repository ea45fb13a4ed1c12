"""The table of environment variables."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import tritonfuser
from tritonfuser import FusionDefinition, options
from tritonfuser.errors import CacheDirectoryError, OptionError, TritonFuserError
from tritonfuser.lowering.backend.triton_cache import directory_error, write_problem


@pytest.fixture
def environ(monkeypatch):
    """Sets variables and reads them; afterwards the settings of the process are back."""

    def set_and_read(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return options.refresh()

    for name in (
        "TRITONFUSER_DUMP",
        "PYTORCH_NVFUSER_DUMP",
        "TRITONFUSER_LOG",
        "TRITONFUSER_CHECK",
    ):
        monkeypatch.delenv(name, raising=False)
    yield set_and_read
    monkeypatch.undo()
    options.refresh()


def test_nothing_is_on_by_default():
    settings = options.read({})
    assert settings == options.Settings()
    assert settings.dump == frozenset() and not settings.cpu_as_cuda and settings.fma


def test_empty_variable_is_unset():
    assert options.read({"TRITONFUSER_DUMP": "", "NVF_CPU_AS_CUDA": " "}) == options.Settings()


def test_dump_takes_a_list_of_stages():
    settings = options.read({"TRITONFUSER_DUMP": "kernel, segment,,ptx"})
    assert settings.dump == {"kernel", "segment", "ptx"}


def test_unknown_stage_is_refused_with_the_list():
    with pytest.raises(OptionError, match="TRITONFUSER_DUMP: 'kernle' not among") as caught:
        options.read({"TRITONFUSER_DUMP": "segment,kernle"})
    assert all(stage in str(caught.value) for stage in options.STAGES)
    assert isinstance(caught.value, TritonFuserError) and isinstance(caught.value, ValueError)


def test_unknown_topic_is_refused():
    with pytest.raises(OptionError, match="TRITONFUSER_LOG"):
        options.read({"TRITONFUSER_LOG": "cash"})


def test_nvfusers_variable_heeds_the_definition_alone():
    settings = options.read({"PYTORCH_NVFUSER_DUMP": "cuda_kernel,python_definition,whatever"})
    assert settings.nvfuser_dump == {"python_definition"}


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("0", False), ("True", True), ("off", False)]
)
def test_a_flag_is_read_from_its_text(text, value):
    assert options.read({"NVF_CPU_AS_CUDA": text}).cpu_as_cuda is value


def test_flag_that_is_neither():
    with pytest.raises(OptionError, match="NVF_CPU_AS_CUDA: 'maybe' is neither 1 nor 0"):
        options.read({"NVF_CPU_AS_CUDA": "maybe"})


def test_factors():
    assert options.read({}).hot_sizes == 1
    assert options.read({"TRITONFUSER_HOT_SIZES": "0.5"}).hot_sizes == 0.5
    for text in ("often", "-1", "nan", "inf"):
        with pytest.raises(OptionError, match=f"HOT_SIZES: '{text}' is no number of 0 or more"):
            options.read({"TRITONFUSER_HOT_SIZES": text})


def test_environment_is_read_once_until_refreshed(environ, monkeypatch):
    environ()
    monkeypatch.setenv("TRITONFUSER_DUMP", "kernel")
    assert options.dump_stages() == frozenset()
    options.refresh()
    assert options.dump_stages() == {"kernel"}


def test_stages_of_both_variables(environ):
    environ(TRITONFUSER_DUMP="segment", PYTORCH_NVFUSER_DUMP="python_definition")
    assert options.dump_stages() == {"segment", "python_definition"}


def test_dump_prints_stages_that_are_on(environ, capsys):
    environ(TRITONFUSER_DUMP="segment,python_definition")
    options.dump("kernel", "no")
    assert capsys.readouterr().out == ""
    options.dump("segment", "two kernels")
    assert capsys.readouterr().out == "# ---- segment ----\ntwo kernels\n"
    options.dump("python_definition", "def nvfuser_fusion")
    assert capsys.readouterr().out == "def nvfuser_fusion\n"


def test_dump_refuses_a_stage_that_is_none(environ):
    environ()
    with pytest.raises(OptionError, match="'kernels' is no stage"):
        options.dump("kernels", "")


def test_log_goes_to_stderr(environ, capsys):
    environ(TRITONFUSER_LOG="cache")
    options.log("cache", "miss: dtype")
    options.log("compile", "no")
    assert capsys.readouterr().err == "tritonfuser cache: miss: dtype\n"


def test_options_that_change_code_are_told(environ):
    environ(TRITONFUSER_FMA="1", TRITONFUSER_DUMP="kernel")
    assert options.codegen_options() == (
        ("check", frozenset()),
        ("fma", True),
        ("calibrated", False),
    )
    environ(TRITONFUSER_FMA="0", TRITONFUSER_CHECK="bounds")
    assert options.codegen_options() == (
        ("check", frozenset({"bounds"})),
        ("fma", False),
        ("calibrated", False),
    )


def test_unknown_check_is_refused():
    assert options.read({"TRITONFUSER_CHECK": "bounds"}).check == {"bounds"}
    with pytest.raises(OptionError, match="TRITONFUSER_CHECK: 'bound' not among bounds"):
        options.read({"TRITONFUSER_CHECK": "bound"})


def test_log_refuses_a_topic_that_is_none(environ):
    environ()
    with pytest.raises(OptionError, match="'autotune' is no topic"):
        options.log("autotune", "")


def softmax_of_sums():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        total = fd.ops.sum(fd.ops.sum(x, [0]), [0])
        fd.add_output(total)
    return fd


def test_every_topic_is_told_about(environ, capsys):
    environ(TRITONFUSER_LOG=",".join(options.TOPICS))
    fd = softmax_of_sums()
    x = torch.randn(4, 8)
    fd.run([x])
    fd.compile_for("sm_90", [x])
    told = capsys.readouterr().err
    assert re.search(r"^tritonfuser segment: \d segments?: s0 ", told, re.MULTILINE)
    assert re.search(
        r"^tritonfuser cache: static, \d kernels? in .*: first call$", told, re.MULTILINE
    )
    assert re.search(r"^tritonfuser compile: s0_\w+ for cuda 90 in ", told, re.MULTILINE)
    assert {line.split()[1].rstrip(":") for line in told.splitlines() if line[0] == "t"} == set(
        options.TOPICS
    )


# --- every option is read, and documented --------------------------------------------------------

ROOT = Path(tritonfuser.__file__).parent
DOCS = ROOT.parent / "docs"


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """The package's modules, without the table itself."""
    for path in ROOT.rglob("*.py"):
        if path != ROOT / "options.py":
            yield path, ast.parse(path.read_text())


def first_words(function: str) -> set[str]:
    """The constants that calls of ``dump`` or ``log`` are given first."""
    return {
        node.args[0].value
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == function
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_every_stage_is_printed_and_every_topic_told():
    assert first_words("dump") >= set(options.STAGES)
    assert first_words("log") == set(options.TOPICS)


@pytest.mark.parametrize("row", options.table(), ids=lambda row: row.env)
def test_every_option_is_read(row):
    if row.env in ("TRITONFUSER_DUMP", "TRITONFUSER_LOG"):
        return  # by dump() and log(); see the test above
    readers = [
        path
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == row.name
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "attr", getattr(node.value.func, "id", "")) == "current"
    ]
    assert readers or row.env == "PYTORCH_NVFUSER_DUMP"  # read by dump_stages()


def test_variables_in_the_code_are_in_the_table():
    ours = re.compile(r"\b(?:TRITONFUSER|NVF|PYTORCH_NVFUSER)_[A-Z_]+\b")
    found = {name for path in ROOT.rglob("*.py") for name in ours.findall(path.read_text())}
    assert found == {row.env for row in options.table()}


def test_variables_in_the_documentation_are_in_the_table():
    ours = re.compile(r"\bTRITONFUSER_[A-Z_]+\b")
    pages = [*DOCS.glob("*.md"), ROOT.parent / "README.md"]
    found = {name for path in pages for name in ours.findall(path.read_text())}
    assert found <= {row.env for row in options.table()}


def test_the_page_has_the_table():
    spec = importlib.util.spec_from_file_location("docs_options", DOCS / "options.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text()
    assert script.page(text) == text, "run: python docs/options.py"
    for row in options.table():
        assert f"| `{row.env}` |" in text
        assert all(f"| `{word}` |" in text for word in row.words)


def test_the_readme_names_every_stage():
    readme = " ".join((ROOT.parent / "README.md").read_text().split())
    assert ", ".join(options.STAGES) in readme


# --- where compiled kernels go -------------------------------------------------------------------


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", os.fspath(folder))
    with pytest.raises(CacheDirectoryError) as error:
        softmax_of_sums().compile_for("sm_90", [torch.randn(5, 7)])
    assert f"compiled kernels cannot be written to {folder}: Not a directory" in str(error.value)
    assert "Set TRITON_CACHE_DIR to a directory that can be written to" in str(error.value)
    assert "fault of tritonfuser" not in str(error.value)
    assert isinstance(error.value, OSError)
    # Threads compile, in which no line is the user's.
    assert error.value.loc is not None and error.value.loc.file == __file__
    assert isinstance(error.value.__cause__, OSError)


_COMPILES = """
import torch
from tritonfuser import FusionDefinition, errors
with FusionDefinition() as fd:
    fd.add_output(fd.ops.neg(fd.from_pytorch(torch.ones(4))))
try:
    fd.compile_for("sm_90", [torch.ones(4)])
except errors.CacheDirectoryError as error:
    print(error)
"""


def test_a_name_that_the_locale_has_no_characters_for_is_explained(tmp_path):
    """The compiler said that of an encoding, and that it is a fault of this package."""
    told = {"TRITON_CACHE_DIR": os.fspath(tmp_path / "\xfcber"), "PYTHONPATH": str(ROOT.parent)}
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = subprocess.run(
        [sys.executable, "-c", _COMPILES],
        env={**os.environ, **told, **plain},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
    assert "compiled kernels cannot be written to" in found
    assert r"names of files are written in ascii here, which has no '\xfc'" in found
    assert "Set TRITON_CACHE_DIR to a directory with a name of ASCII characters" in found


def test_other_errors_are_not_the_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", os.fspath(tmp_path))
    assert directory_error(ValueError("x")) is None
    assert directory_error(FileNotFoundError(2, "No such file", "/usr/bin/ptxas")) is None
    assert directory_error(OSError(28, "No space left on device")) is not None
    wrapped = RuntimeError("x")
    wrapped.__cause__ = PermissionError(13, "Permission denied", os.fspath(tmp_path / "a" / "b"))
    assert f"to {tmp_path}: Permission denied" in str(directory_error(wrapped))
    assert write_problem(tmp_path / "new") == ""
    assert write_problem(Path(__file__) / "new") == "Not a directory"


def test_a_misspelled_name_is_warned_of(environ):
    with pytest.warns(UserWarning, match="did you mean TRITONFUSER_DYNAMIC_SIZES") as caught:
        environ(TRITONFUSER_DYNAMC_SIZES="0", TRITONFUSER_OF_ANOTHER_PROGRAM="0")
    assert len(caught) == 1


def test_a_process_without_streams_is_told_nothing(monkeypatch):
    """As one that was started with its stderr closed."""
    settings = options.read({"TRITONFUSER_LOG": "cache", "TRITONFUSER_DUMP": "plan"})
    monkeypatch.setattr(options, "current", lambda: settings)
    monkeypatch.setattr(options.sys, "stderr", None)
    monkeypatch.setattr(options.sys, "stdout", None)
    options.log("cache", "a line")
    options.dump("plan", "a page")


def test_an_empty_name_of_the_cache_directory_is_told():
    """Triton's own words do not say which variable."""
    found = directory_error(RuntimeError("Could not create or locate cache dir"))
    assert isinstance(found, CacheDirectoryError) and "TRITON_CACHE_DIR" in str(found)
    assert directory_error(RuntimeError("something else")) is None
