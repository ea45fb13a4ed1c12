"""Entries of Triton's directory that something has damaged: kernels are compiled anew."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from triton.runtime.cache import FileCacheManager

from tests.lowering.kernels import vector_add
from tritonfuser.errors import CacheDirectoryError, LoweringError
from tritonfuser.lowering.backend import compile as compiling
from tritonfuser.lowering.backend import launch
from tritonfuser.lowering.backend.triton_cache import retry_if_removed
from tritonfuser.lowering.build import compile_kernel


def compiled():
    return compile_kernel(vector_add(), "sm_90", (True,) * len(vector_add().args))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with one compiled kernel."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compiled()
    (made,) = tmp_path.iterdir()
    return made


def emptied(path):
    path.write_bytes(b"")


def half(path):
    path.write_bytes(path.read_bytes()[:20])


def no_number(path):
    path.write_text("null")


def removed(path):
    path.unlink()


@pytest.mark.covering
@pytest.mark.parametrize("files", ["__grp__*.json", "[!_]*.json", "*.json", "*.cubin", "*.ptx"])
@pytest.mark.parametrize("damage", [emptied, half, no_number, removed])
def test_a_damaged_entry(folder, damage, files):
    wanted = compiled().asm["ptx"]
    found = list(folder.glob(files))
    assert found
    for path in found:
        damage(path)
    if files in ("*.cubin", "*.ptx") and damage in (half, no_number):
        return  # files without a format that Triton would check
    again = compiled()
    assert again.asm["ptx"] == wanted
    assert again.asm["cubin"]
    # The next process finds it whole.
    assert all(path.stat().st_size > 20 for path in folder.iterdir() if path.is_file())


@pytest.mark.parametrize("times", [1, 3, 4])
def test_a_directory_that_is_removed_meanwhile(tmp_path, monkeypatch, times):
    """After the text of a kernel is written, before it is read again."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    put, left = FileCacheManager.put_group, [None] * times

    def removing(self, *given):
        if left:
            left.pop()
            shutil.rmtree(tmp_path / "cache")
        return put(self, *given)

    monkeypatch.setattr(FileCacheManager, "put_group", removing)
    if times == 4:  # again and again
        with pytest.raises(CacheDirectoryError, match="cannot be written to"):
            compiled()
        assert not left
    assert compiled().asm["ptx"] and not left
    assert (tmp_path / "cache").is_dir()


def test_what_triton_refuses_stays_an_error(folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise ValueError("no such thing")

    monkeypatch.setattr(compiling.triton, "compile", refuse)
    with pytest.raises(LoweringError, match="no such thing"):
        compiled()


def building(times, folder, when, monkeypatch):
    """What builds a launcher, as Triton's does; the directory is removed by others so often."""
    left, built, replace = [None] * times, [], os.replace

    def remove():
        if left:
            left.pop()
            shutil.rmtree(folder)

    def replacing(source, target):
        if when == "before it has its name":
            remove()
        replace(source, target)

    def build():
        path = FileCacheManager("launcher").put(b"not a module", "launcher.so", binary=True)
        if when == "before it is read":
            remove()
        if not os.path.exists(path):  # as an interpreter says it
            raise ImportError("cannot open shared object file", path=path)
        built.append(path)

    monkeypatch.setattr(os, "replace", replacing)
    return build, built, left


@pytest.mark.parametrize("when", ["before it has its name", "before it is read"])
def test_a_directory_that_is_removed_while_a_launcher_is_built(tmp_path, monkeypatch, when):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    for times in (1, 2):
        build, built, left = building(times, tmp_path / "cache", when, monkeypatch)
        retry_if_removed(build)
        assert built and not left
    build, built, left = building(3, tmp_path / "cache", when, monkeypatch)
    with pytest.raises((FileNotFoundError, ImportError)):
        retry_if_removed(build)
    assert not built and not left


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file", "gcc"),
        ImportError("undefined symbol", path=__file__),
        PermissionError(13, "Permission denied", "launcher.so"),
    ],
)
def test_other_errors_of_a_launcher_are_raised_at_once(folder, error):
    asked = []

    def build():
        asked.append(None)
        raise error

    with pytest.raises(type(error)):
        retry_if_removed(build)
    assert len(asked) == 1


def test_a_kernel_is_loaded_though_the_directory_is_removed_meanwhile(tmp_path, monkeypatch):
    """Without a GPU: what Triton builds when it loads a kernel is replaced."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    build, built, _ = building(1, tmp_path / "cache", "before it is read", monkeypatch)
    monkeypatch.setattr(torch.cuda, "device", lambda index: nullcontext())
    monkeypatch.setattr(launch, "prepare", lambda binary, constants: None)
    binary = SimpleNamespace(_init_handles=build, n_regs=32, n_spills=0)
    assert launch.load(vector_add(), binary, 0).registers == 32
    assert built
