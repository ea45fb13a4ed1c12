"""The pages on errors and on Lightning Thunder say what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tritonfuser
from tritonfuser import options
from tritonfuser.compat import nvfuser_direct

ROOT = Path(tritonfuser.__file__).parents[1]
ERRORS = (ROOT / "docs" / "errors.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
LISTED = {name: re.findall(r"`(\w+)`", bases) for name, bases, *_ in ROW.findall(ERRORS)}


def error_classes():
    for name in tritonfuser.__all__:
        found = getattr(tritonfuser, name)
        if isinstance(found, type) and issubclass(found, tritonfuser.TritonFuserError):
            yield name, found


def test_every_error_is_on_the_page():
    assert set(LISTED) == {name for name, _ in error_classes()} - {"TritonFuserError"}


@pytest.mark.parametrize("name", LISTED)
def test_it_is_what_the_page_says(name):
    found = getattr(tritonfuser, name)
    known = {**vars(__import__("builtins")), **dict(error_classes())}
    bases = {known[base] for base in LISTED[name]}
    assert bases == set(found.__bases__) - {tritonfuser.TritonFuserError}


def test_the_page_has_all_stages_and_topics():
    words = set(re.findall(r"`([\w,=]+)`", ERRORS.replace("TRITONFUSER_LOG=", "")))
    assert set(options.STAGES) <= words
    assert any(set(options.TOPICS) == set(word.split(",")) for word in words)


def test_the_modules_that_thunder_imports_are_found():
    program = (
        "import tritonfuser.compat\n"
        "tritonfuser.compat.install()\n"
        "import nvfuser_direct, nvfuser\n"
        "from nvfuser_direct import FusionDefinition, DataType, multidevice\n"
        "print(nvfuser_direct.version())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == nvfuser_direct.version()
    assert f"`{ran.stdout.strip()}`" in (ROOT / "docs" / "thunder.md").read_text()


def test_pages_that_are_named_exist():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    for page in pages:
        for name in re.findall(r"`(docs/[\w.]+|tests/[\w/.]+|bench/[\w/.]+)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"
