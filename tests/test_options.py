"""The table of environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonfuser import options
from tritonfuser.errors import OptionError, TritonFuserError


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
def test_flags(text, value):
    assert options.read({"NVF_CPU_AS_CUDA": text}).cpu_as_cuda is value


def test_flag_that_is_neither():
    with pytest.raises(OptionError, match="NVF_CPU_AS_CUDA: 'maybe' is neither 1 nor 0"):
        options.read({"NVF_CPU_AS_CUDA": "maybe"})


def test_cache_directory_is_expanded():
    assert options.read({"TRITONFUSER_CACHE_DIR": "~/x"}).cache_dir == Path.home() / "x"
    assert options.read({}).cache_dir == Path.home() / ".cache" / "tritonfuser"


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
    assert options.codegen_options() == (("check", frozenset()), ("fma", True))
    environ(TRITONFUSER_FMA="0", TRITONFUSER_CHECK="bounds")
    assert options.codegen_options() == (("check", frozenset({"bounds"})), ("fma", False))


def test_unknown_check_is_refused():
    assert options.read({"TRITONFUSER_CHECK": "bounds"}).check == {"bounds"}
    with pytest.raises(OptionError, match="TRITONFUSER_CHECK: 'bound' not among bounds"):
        options.read({"TRITONFUSER_CHECK": "bound"})
