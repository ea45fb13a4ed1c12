"""The machine code of compiled kernels, by NVIDIA's disassembler, which Triton brings."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

from triton import knobs

_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_LABEL = re.compile(r"\s*(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")


def disassembled(cubin: bytes, folder: Path) -> str:
    """The instructions of a kernel, as text."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    command = [knobs.nvidia.nvdisasm.path, "-c", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def instructions(text: str) -> Counter[str]:
    """How many of each there are, without those that only fill."""
    found = Counter(match[1] for match in map(_INSTRUCTION.search, text.splitlines()) if match)
    del found["NOP"]
    return found


def loops(text: str) -> tuple[Counter[str], list[Counter[str]]]:
    """The instructions beside all loops, and those of each loop, one inside of another too."""
    lines, labels = _lines(text)
    spans = [(labels.get(target, len(lines)), end) for end, (_, target) in enumerate(lines)]
    spans = [(start, end) for start, end in spans if start < end]
    inside = {place for start, end in spans for place in range(start, end + 1)}
    names = [name for name, _ in lines]
    beside = Counter(name for place, name in enumerate(names) if place not in inside)
    found = [beside, *(Counter(names[start : end + 1]) for start, end in spans)]
    for counts in found:
        del counts["NOP"]
    return found[0], found[1:]


def _lines(text: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Each instruction with its target, if it is a branch, and the places of labels."""
    lines: list[tuple[str, str]] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(lines)
        elif found := _INSTRUCTION.search(line):
            target = _TARGET.search(line)
            lines.append((found[1], target[1] if target else ""))
    return lines, labels


def run_instructions(text: str) -> int:
    """How many a thread runs whose numbers need no slow path: each branch forward is taken."""
    lines, labels = _lines(text)
    place = count = 0
    while place < len(lines):
        name, target = lines[place]
        count += name != "NOP"
        if name == "EXIT":
            break
        skips = name == "BRA" and labels.get(target, 0) > place
        place = labels[target] if skips else place + 1
    return count


_REGISTER = re.compile(r"\bR\d+\b")


def begun_together(text: str) -> list[int]:
    """How many loads from memory are on their way when the first of them is needed, each time."""
    counts: list[int] = []
    waited: set[str] = set()
    for line in text.splitlines():
        found = _INSTRUCTION.search(line)
        if not found:
            continue
        registers = _REGISTER.findall(line[found.end() :])
        loads = found[1].startswith("LDG.")
        if waited.intersection(registers[loads:]):
            counts.append(len(waited))
            waited.clear()
        if loads:
            waited.add(registers[0])
    return counts
