"""docs/migration.md: every name in its table exists in the module of its column."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import tritonfuser
from tritonfuser.compat import nvfuser, nvfuser_direct

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
COLUMNS = (nvfuser, nvfuser_direct, tritonfuser)
STRING = re.compile(r'"[^"]*"')
ARGUMENT = re.compile(r"\b\w+=(?!=)")
CHAIN = re.compile(r"(?<![\w.)\]])(\.?[A-Za-z_]\w*(?:\.\w+)*)(\(?)")
NAME = re.compile(r"[A-Z]\w+$")


def rows() -> list[list[str]]:
    """The cells of the table under "Names"."""
    table = PAGE.read_text().split("## Names")[1].split("## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def named() -> list[tuple[ModuleType, str, str]]:
    """``(module, code, chain)`` of each dotted name in the table."""
    found: list[tuple[ModuleType, str, str]] = []
    for first, direct, ours in rows():
        cells = [(nvfuser, first), (nvfuser_direct, direct), (tritonfuser, ours)]
        if ours.startswith("the same") or "taken" in ours:
            cells += [(tritonfuser, first), (tritonfuser, direct)]
        for module, cell in cells:
            found += [(module, code, chain) for code, chain in chains(cell)]
    return found


def chains(cell: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    owner = ""
    for code in re.findall(r"`([^`]+)`", cell):
        if code.isupper() or "DUMP" in code:
            continue
        for chain, call in CHAIN.findall(ARGUMENT.sub("", STRING.sub("", code))):
            if chain.startswith("."):
                chain = owner + chain
            elif "." not in chain and not call and (not NAME.match(chain) or chain == "None"):
                continue  # an argument or a keyword
            owner = chain.split(".")[0]
            found.append((code, chain))
    return found


class Roots:
    """What the table calls ``fd``, ``fs`` and ``prof``, made and run by one module."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.made = {"fd": self._definition(), "prof": module.PythonProfiler()}
        self.by_hand = self._definition()
        self.made["fs"] = self.made["fd"].fusion
        x = torch.ones(2)
        with self.made["prof"]:
            self.made["fd"].run([x])
        self.by_hand.run_kernel([x])

    def _definition(self) -> Any:
        with self.module.FusionDefinition() as fd:
            fd.add_output(fd.ops.neg(fd.define_tensor(1)))
        return fd

    def has(self, chain: str) -> bool:
        root, *names = chain.split(".")
        found = self._root(root, names)
        if found is None:  # a form of a method: `max_length`, `definition(self)`
            return hasattr(self.made["fd"], root)
        for name in names:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True

    def _root(self, root: str, names: list[str]) -> Any:
        if names[:1] == ["ke"]:
            return self.by_hand
        modules = {"tritonfuser": tritonfuser, "nvfuser": nvfuser, "compat": tritonfuser.compat}
        known = {**modules, "nvfuser_direct": nvfuser_direct, **self.made}
        return known.get(root) or getattr(self.module, root, getattr(builtins, root, None))


@pytest.mark.parametrize("module", COLUMNS, ids=lambda module: module.__name__)
def test_every_name_exists(module: ModuleType) -> None:
    roots = Roots(module)
    asked = [(code, chain) for where, code, chain in named() if where is module]
    assert len(asked) > 20
    missing = [(code, chain) for code, chain in asked if not roots.has(chain)]
    assert missing == []
