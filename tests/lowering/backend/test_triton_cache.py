"""Entries of Triton's directory that something has damaged: kernels are compiled anew."""

from __future__ import annotations

import shutil

import pytest
from triton.runtime.cache import FileCacheManager

from tests.lowering.kernels import vector_add
from tritonfuser.errors import CacheDirectoryError, LoweringError
from tritonfuser.lowering.backend import compile as compiling
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
