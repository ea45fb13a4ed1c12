"""Every block of code on the pages is a program that runs, or a command that exists."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import io
import json
import pickle
import re
import runpy
import shlex
import sys
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from click.testing import CliRunner

import tritonfuser
from tritonfuser import FusionDefinition, compat, options
from tritonfuser.cli.main import main

ROOT = Path(tritonfuser.__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"(python -m|make) ")
TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
ELSEWHERE = {
    "architecture.md": "tests/test_architecture.py runs its stages; its pictures are no programs",
    "kernels.md": "its pictures are no programs",
}
"""Pages whose blocks are no programs, or are held by another test."""


@dataclass(frozen=True)
class Block:
    """A block of code; ``language`` is that of its fence, or ``indented``."""

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_commands(self) -> bool:
        return all(COMMAND.match(line) for line in self.text.splitlines() if line)


def blocks_of(page: Path) -> list[Block]:
    """Fenced blocks, and those that are indented by four and follow an empty line."""
    found: list[Block] = []
    lines, at = ["", *page.read_text().splitlines(), ""], 1
    while at < len(lines):
        end = at + 1
        if lines[at].startswith("```"):
            end = lines.index("```", end)
            text = "\n".join(lines[at + 1 : end])
            found.append(Block(page.name, at, lines[at][3:], text))
            end += 1
        elif lines[at].startswith("    ") and not lines[at - 1]:
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end]):
                end += 1
            text = textwrap.dedent("\n".join(lines[at:end])).rstrip()
            found.append(Block(page.name, at, "indented", text))
        at = end
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page) if page.name not in ELSEWHERE]
COMMANDS = [block for block in BLOCKS if block.is_commands]
SHOWN = ("add: the shapes of the operands do not broadcast together", "1 kernel for NVIDIA H200")
"""How blocks begin that are what is printed."""

PROGRAMS = [b for b in BLOCKS if not b.is_commands and not b.text.startswith(SHOWN)]


def test_they_are_found():
    """All fences, the commands of the README, a block between two paragraphs."""
    fences = sum(page.read_text().count("\n```") // 2 for page in PAGES)
    whole = [block for page in PAGES for block in blocks_of(page)]
    assert fences == sum(block.language != "indented" for block in whole)
    assert any(block.text.startswith("make demo") for block in BLOCKS if block.is_commands)
    assert any(block.text.startswith("plan = fd.plan") for block in PROGRAMS)


# --- programs ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with an empty cache, where a newcomer begins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", str(tmp_path / "cache"))
    options.refresh()
    yield tmp_path
    compat.uninstall()
    if dist.is_initialized():
        dist.destroy_process_group()
    monkeypatch.undo()
    options.refresh()


def definition(device):
    """What pages call ``fd``, with its inputs."""
    a, b = torch.randn(2, 4, 8, device=device)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.add(fd.from_pytorch(a), fd.from_pytorch(b)))
    return {"fd": fd, "a": a, "b": b, "x": a.clone(), "y": b.clone()}


class Rows(torch.utils.data.Dataset):
    """A data set that holds a definition."""

    def __init__(self):
        self.fd = definition("cpu")["fd"]

    def __len__(self):
        return 3

    def __getitem__(self, place):
        return self.fd.run([torch.full((4, 8), float(place)), torch.zeros(4, 8)])[0]


class Module(torch.nn.Module):
    """A module that holds a definition."""

    def __init__(self):
        super().__init__()
        self.fd = definition("cpu")["fd"]


def sending(device):
    found = {"copy": copy, "pickle": pickle, "json": json, "path": "module.pt", "rows": Rows()}
    found |= {"module": Module(), "DataLoader": torch.utils.data.DataLoader}
    return {**definition(device), **found, "FusionDefinition": FusionDefinition, "torch": torch}


def mesh(device):
    """One process, of which the mesh is."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    x, part = torch.randn(4, 1024, device=device), torch.randn(4096, 1024, device=device)
    return {"x": x, "w_part": part}


def thunder(device):
    """As Thunder does, which the tests do not install: it imports nvFuser's module."""
    module = types.ModuleType("thunder")
    module.jit = lambda model: importlib.import_module("nvfuser_direct").FusionDefinition
    sys.modules["thunder"] = module
    return {"model": None}


SCOPES = {
    "calls.md": definition,
    "migration.md": mesh,
    "sending.md": sending,
    "thunder.md": thunder,
    "validation.md": definition,
}
"""What the programs of a page have at the beginning; each goes on where the one before ended."""

NEEDS_GPU = ("plan.graph(", "fd.autotune(")


def needs_gpu(block):
    return any(part in block.text for part in NEEDS_GPU)


def run_programs(page, device, wanted):
    """Those of a page that are wanted, in order."""
    scope = {"__name__": "a_page", **SCOPES.get(page, lambda device: {})(device)}
    for block in PROGRAMS:
        # As the page says in a comment.
        text = block.text.replace("torch.randn(64, 96)", f'torch.randn(64, 96, device="{device}")')
        if block.page == page and wanted(block):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, block.name, "exec"), scope)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("page", sorted({block.page for block in PROGRAMS}))
def test_programs_run(page, folder):
    run_programs(page, "cpu", lambda block: not needs_gpu(block))
    sys.modules.pop("thunder", None)


@pytest.mark.gpu
@pytest.mark.parametrize("page", sorted({block.page for block in PROGRAMS if needs_gpu(block)}))
def test_programs_run_on_a_gpu(page, folder):
    run_programs(page, "cuda", lambda block: True)


# --- commands ------------------------------------------------------------------------------------


def commands():
    """Each line of the blocks of commands, by its block."""
    for block in COMMANDS:
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield pytest.param(words, id=f"{block.name}-{' '.join(words)}")


@pytest.fixture
def file(folder):
    """The file that the page on tuning has."""
    (text,) = (b.text for b in PROGRAMS if b.page == "tuning.md" and "def softmax" in b.text)
    (folder / "rows.py").write_text(text)
    (folder / "tuned.json").write_text(CliRunner().invoke(main, ["params", "export"]).output)


@pytest.mark.parametrize("words", [*commands()])
def test_commands_exist(words, file, folder):
    """Ours run, those of the benchmarks know their options, make has its targets."""
    if words[0] == "make":
        variables = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        makefile = (ROOT / "Makefile").read_text()
        assert words[1] in TARGET.findall(makefile)
        named = re.findall(r"^(?:ifdef +)?([A-Z_]+)(?: *\?=.*)?$", makefile, re.MULTILINE)
        assert {*variables} <= {*named}
        words = ["python", "-m", "bench", *shlex.split(variables.get("ARGS", ""))]
    module, given = words[2], words[3:]
    if module == "tritonfuser":
        given = [word.replace("FILE.py:function", "rows.py:softmax") for word in given]
        given += ["--arch", "sm_90"] if given[0] in ("tune", "explain") else []
        ran = CliRunner().invoke(main, given, input="y\n")
        assert ran.exit_code == 0, ran.output
    elif module != "pip":
        told = help_of(module)
        assert [word for word in given if word.startswith("--") and word not in told] == []


@functools.cache
def help_of(module):
    """What ``python -m MODULE --help`` prints."""
    told, arguments = io.StringIO(), sys.argv
    sys.argv = [module, "--help"]
    try:
        with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sys.argv = arguments
    return told.getvalue()
