"""The corpus: definitions of the steps of many families of models, one compressed file a family.

``python -m bench.record`` writes the files. Each holds the family's sizes; each size its
definitions in the order they first ran, as recorded and at reduced sizes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..held_out import is_held_out
from .definitions import Input, RecordedDefinition, ScalarInput, parse_input

FILES = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Pair:
    """A definition as recorded, and its text and inputs at reduced sizes."""

    text: str
    inputs: tuple[Input, ...]
    calls: int
    reduced_text: str
    reduced_inputs: tuple[Input, ...]


def save(family: str, sizes: Mapping[str, Sequence[Pair]]) -> Path:
    """Write the file of a family."""
    found = {size: [_as_json(pair) for pair in pairs] for size, pairs in sizes.items()}
    path = FILES / f"{family}.json.xz"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps({"family": family, "sizes": found}, separators=(",", ":"))
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path


def _as_json(pair: Pair) -> dict[str, Any]:
    return {
        "definition": pair.text,
        "inputs": [_input_as_json(x) for x in pair.inputs],
        "calls": pair.calls,
        "reduced": {
            "definition": pair.reduced_text,
            "inputs": [_input_as_json(x) for x in pair.reduced_inputs],
        },
    }


def _input_as_json(item: Input) -> dict[str, Any]:
    if isinstance(item, ScalarInput):
        return {"scalar": json.dumps(item.value)}
    dtype = str(item.dtype).removeprefix("torch.")
    return {"shape": item.shape, "stride": item.stride, "dtype": dtype}


@cache
def corpus() -> tuple[RecordedDefinition, ...]:
    """All definitions of the corpus: family by family, size by size."""
    return tuple(entry for path in sorted(FILES.glob("*.json.xz")) for entry in _entries(path))


def _entries(path: Path) -> Iterator[RecordedDefinition]:
    found = json.loads(lzma.decompress(path.read_bytes()))
    family = found["family"]
    for size, items in found["sizes"].items():
        for index, item in enumerate(items):
            entry = RecordedDefinition(
                family,
                index,
                item["definition"],
                _inputs(item["inputs"]),
                item["calls"],
                size,
                is_held_out(family),
            )
            text, inputs = item["reduced"]["definition"], _inputs(item["reduced"]["inputs"])
            yield replace(entry, reduced=replace(entry, text=text, inputs=inputs))


def _inputs(items: Iterable[dict[str, Any]]) -> tuple[Input, ...]:
    return tuple(parse_input(item) for item in items)
