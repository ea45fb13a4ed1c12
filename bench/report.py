"""What the tools have in common: errors, bytes, and how figures are printed and kept."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from tritonfuser.ir import Fusion, Node, Value
from tritonfuser.lowering.backend.kernel_report import KernelReport

Flat = list[torch.Tensor]


def flat(result: Any) -> Flat:
    """A torch result (a tensor, or a tuple of them) as a list."""
    return [result] if isinstance(result, torch.Tensor) else [t for t in result if t is not None]


def max_error(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """The largest error of any output.

    For floats the largest difference, relative to the largest magnitude of that output; for
    integers and bools the share of elements that differ.
    """
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs, {len(expected)} expected")
    return max((_error(a, e) for a, e in zip(actual, expected, strict=True)), default=0.0)


def _error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    if actual.shape != expected.shape:
        raise ValueError(f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    if actual.numel() == 0:
        return 0.0
    if not actual.dtype.is_floating_point:
        return (actual != expected).double().mean().item()
    # Integers are exact in float64; nan and inf have to stand in the same places.
    a, e = actual.double(), expected.double()
    same = (a == e) | (a.isnan() & e.isnan())
    difference = torch.where(same, 0.0, (a - e).abs())
    scale = torch.where(e.isfinite(), e.abs(), 0.0).max().clamp(min=torch.finfo(a.dtype).tiny)
    worst = (difference.max() / scale).item()
    return float("inf") if math.isnan(worst) else worst


def tensor_bytes(value: Value) -> int:
    """Bytes of memory behind a value: a dim stretched by expand counts once."""
    if not value.is_tensor:
        return 0
    elements = 1
    for dim in value.tensor.dims:
        if not isinstance(dim.size, int):
            raise TypeError(f"{value.name} has an extent that is not known yet")
        elements *= 1 if dim.expanded else dim.size
    return elements * value.dtype.info.bytes


def minimum_bytes(fusion: Fusion) -> int:
    """Every input read once and every output written once."""
    return moved_bytes(fusion.nodes, fusion.inputs, {out.value for out in fusion.outputs})


def moved_bytes(nodes: Sequence[Node], reads: Iterable[Value], writes: Iterable[Value]) -> int:
    """Bytes that one kernel of ``nodes`` moves: each tensor once, of a table what is picked."""
    return sum(_read_bytes(v, nodes) for v in reads) + sum(map(tensor_bytes, writes))


def _read_bytes(value: Value, nodes: Sequence[Node]) -> int:
    readers = [node for node in nodes if value in node.operands()]
    if readers and all(n.op == "index_select" and n.args[0] == value for n in readers):
        return min(tensor_bytes(value), sum(tensor_bytes(n.out) for n in readers))
    return tensor_bytes(value)


def human_bytes(count: float) -> str:
    """``12.3 MB``."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def human_seconds(seconds: float) -> str:
    """``12.3 us``."""
    for unit in ("s", "ms", "us"):
        if seconds >= 1 or unit == "us":
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    raise AssertionError("unreachable")


def geomean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of positive numbers, of those that are known."""
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def human_ratio(ratio: float | None) -> str:
    """``1.52x``; nothing where there is none."""
    return "" if ratio is None else f"{ratio:.2f}x"


def machine_code(report: KernelReport) -> dict[str, int]:
    """What a kernel is like as compiled: columns of every table without a GPU."""
    return {
        "registers": report.registers,
        "spilled": report.spill_bytes,
        "shared": report.shared_bytes,
        "load": report.max_load_bytes,
        "store": report.max_store_bytes,
    }


def table(rows: Iterable[dict[str, Any]], style: str = "simple") -> str:
    """Rows as a table; ``style`` is one of tabulate's, ``"github"`` for Markdown."""
    text: str = tabulate(list(rows), headers="keys", disable_numparse=True, tablefmt=style)
    return text


def save_json(path: Path, content: Any) -> None:
    """Write a file anew: whoever reads it, or ends this process, finds all of it or the old one."""
    write_whole(path, json.dumps(content, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Put a text in the place of a file in one step."""
    if path.exists() and not path.is_file():
        path.write_text(text)  # a terminal, say
        return
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
