"""Which inputs share memory: windows of the same elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...cache.keys.signature import ALIGNMENT
from ...cache.keys.storage import is_abstract
from ...cache.keys.storage_problems import storage_problem
from ...cache.plan.memory_overlap import extent_bytes


@dataclass(frozen=True)
class Window:
    """Where an input lies in memory that it shares with others.

    Attributes
    ----------
    name : str
        Of this memory.
    elements : int
        How many it has, from the first of any input to the last, and those before the first that
        ``elements_before`` tells.
    offset : int
        The first one of this input.
    is_first : bool
        Whether no earlier input lies there.
    """

    name: str
    elements: int
    offset: int
    is_first: bool


@dataclass
class _Block:
    """Inputs whose ranges of addresses overlap."""

    start: int
    end: int
    places: list[int]


def shared_windows(inputs: Sequence[Any]) -> dict[int, Window]:
    """By the places of inputs: windows of those that share memory with another one.

    They have one dtype. Inputs of several dtypes in the same memory are left out, and what has no
    memory.
    """
    blocks = [block for block in _blocks(inputs) if len(block.places) > 1]
    found: dict[int, Window] = {}
    for number, block in enumerate(sorted(blocks, key=lambda block: min(block.places))):
        size = inputs[block.places[0]].itemsize
        before = block.start % ALIGNMENT // size
        elements = (block.end - block.start) // size + before
        for place in block.places:
            offset = (inputs[place].data_ptr() - block.start) // size + before
            is_first = place == min(block.places)
            found[place] = Window(f"memory{number}", elements, offset, is_first)
    return found


def elements_before(given: torch.Tensor) -> int:
    """How many elements are between the last multiple of 16 bytes and the first of a tensor.

    So far behind the start of memory that torch allocates a tensor is aligned as the given one.
    """
    if not given.numel():
        return 0
    abstract = is_abstract(given)
    start = int(given.storage_offset()) * given.itemsize if abstract else given.data_ptr()
    return start % ALIGNMENT // given.itemsize


def _blocks(inputs: Sequence[Any]) -> Iterator[_Block]:
    """The inputs that have memory, joined where they overlap, in the order of addresses."""
    ranges = [(_kind(x), x.data_ptr(), n) for n, x in enumerate(inputs) if _has_memory(x)]
    last, block = None, None
    for kind, start, place in sorted(ranges):
        end = start + extent_bytes(inputs[place].shape, inputs[place].stride(), inputs[place].dtype)
        if block is None or kind != last or start >= block.end:
            if block is not None:
                yield block
            last, block = kind, _Block(start, end, [])
        block.places.append(place)
        block.end = max(block.end, end)
    if block is not None:
        yield block


def _kind(given: torch.Tensor) -> tuple[str, str, int]:
    """What elements of one tensor have in common: the bytes between two are whole elements."""
    return str(given.device), str(given.dtype), given.data_ptr() % given.itemsize


def _has_memory(given: Any) -> bool:
    if not isinstance(given, torch.Tensor) or is_abstract(given):
        return False
    return storage_problem(given) is None and given.numel() > 0
