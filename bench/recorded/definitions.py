"""Fusion definitions recorded from real models: load them, record them, make their inputs.

The texts are programs of nvFuser's frontend, as Lightning Thunder handed them over in one training
step of each model; see ``tests/definitions/data/README.md``.
"""

from __future__ import annotations

import json
import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Union

import torch

import tritonfuser
from tritonfuser import FusionDefinition
from tritonfuser.ir import Const, Fusion, Node, Value

DATA = Path(__file__).parents[2] / "tests" / "definitions" / "data"
SMALL_INT = 8
"""Upper bound of random integers that are not used as indices."""


@dataclass(frozen=True, slots=True)
class TensorInput:
    """Shape, strides in elements and dtype of a recorded tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class ScalarInput:
    """A recorded number."""

    value: int | float


Input = Union[TensorInput, ScalarInput]


@dataclass(frozen=True, slots=True)
class RecordedDefinition:
    """One definition.

    Attributes
    ----------
    model : str
        The model that it was recorded from.
    index : int
        Its number among the model's definitions.
    text : str
        The program.
    inputs : tuple of Input
        Its inputs, in order.
    calls : int
        Number of runs in one training step.
    size : str
        Which of the model's sizes it was recorded at; empty where there is one.
    held_out : bool
        Whether the model is one that nothing is made after.
    reduced : RecordedDefinition, optional
        The same program, recorded at sizes that take seconds without a GPU.
    """

    model: str
    index: int
    text: str
    inputs: tuple[Input, ...]
    calls: int
    size: str = ""
    held_out: bool = False
    reduced: RecordedDefinition | None = None

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.model, self.size, str(self.index))))

    @property
    def elements(self) -> int:
        """Elements of the largest tensor of the program, inputs or not."""
        return max(_numel(s) for s in _shapes(self.text))


@cache
def load() -> tuple[RecordedDefinition, ...]:
    """All recorded definitions, model by model, in the order they first ran."""
    found: list[RecordedDefinition] = []
    for path in sorted(DATA.glob("*.json")):
        for index, entry in enumerate(json.loads(path.read_text())):
            inputs = tuple(parse_input(item) for item in entry["inputs"])
            found.append(
                RecordedDefinition(
                    entry["model"], index, entry["definition"], inputs, entry["calls"]
                )
            )
    return tuple(found)


def of_model(model: str) -> tuple[RecordedDefinition, ...]:
    """The definitions of one model."""
    return tuple(entry for entry in load() if entry.model == model)


def parse_input(item: dict[str, Any]) -> Input:
    """An input as it is written in the files."""
    if "scalar" in item:
        return ScalarInput(json.loads(item["scalar"]))
    return TensorInput(tuple(item["shape"]), tuple(item["stride"]), getattr(torch, item["dtype"]))


def record(entry: RecordedDefinition, namespace: ModuleType = tritonfuser) -> FusionDefinition:
    """Run the recorded program against ``namespace``'s frontend."""
    filename = f"<{entry.name}>"
    linecache.cache[filename] = (len(entry.text), None, entry.text.splitlines(True), filename)
    scope: dict[str, Any] = {
        "FusionDefinition": namespace.FusionDefinition,
        "DataType": namespace.DataType,
    }
    exec(compile(entry.text, filename, "exec"), scope)
    fd: FusionDefinition
    with namespace.FusionDefinition() as fd:
        scope["nvfuser_fusion"](fd)
    return fd


# --- inputs ----------------------------------------------------------------------------------


def make_inputs(
    entry: RecordedDefinition,
    fusion: Fusion,
    device: str | torch.device = "cpu",
    seed: int = 0,
) -> list[torch.Tensor | int | float]:
    """Random inputs with the recorded shapes, strides and dtypes.

    Floats are standard normal, or their magnitudes where the root or the logarithm is taken.
    Integers that are used as indices lie within their bounds; other integers are small. ``device``
    may be ``"meta"``.
    """
    drawn_on = "cpu" if torch.device(device).type == "meta" else device
    generator = torch.Generator(drawn_on).manual_seed(seed)
    bounds, positive = index_bounds(fusion), under_roots(fusion)
    made: list[torch.Tensor | int | float] = []
    for item, value in zip(entry.inputs, fusion.inputs, strict=True):
        if isinstance(item, ScalarInput):
            made.append(item.value)
        else:
            bound = bounds.get(value, SMALL_INT)
            made.append(_random(item, bound, device, generator, positive=value in positive))
    return made


def _random(
    item: TensorInput,
    bound: int,
    device: str | torch.device,
    generator: torch.Generator,
    *,
    positive: bool,
) -> torch.Tensor:
    reach = 1 + sum((n - 1) * s for n, s in zip(item.shape, item.stride, strict=True))
    options: Any = {"generator": generator, "device": generator.device}
    if torch.device(device).type == "meta":
        storage = torch.empty(reach, dtype=item.dtype, device="meta")
    elif item.dtype.is_floating_point:
        drawn = torch.randn(reach, **options)
        storage = (drawn.abs() if positive else drawn).to(item.dtype)
    else:
        high = 2 if item.dtype is torch.bool else bound
        storage = torch.randint(high, (reach,), **options).to(item.dtype)
    return storage.as_strided(item.shape, item.stride)


_PASSED_ON = frozenset(
    {
        "add",
        "broadcast",
        "cast",
        "expand",
        "mul",
        "permute",
        "reshape",
        "set",
        "slice",
        "squeeze",
        "where",
    }
)
_INDEXED = {
    "embedding_fwd": (1, 0),
    "gather": (0, 1),
    "index_put_accumulate": (0, 1),
    "index_select": (0, 1),
    "scatter": (0, 1),
    "take_along_axis": (0, 1),
}
"""For each op that is given indices, the places of what they index and of themselves."""
_ROWS_INDEXED = ("embedding_fwd", "index_put_accumulate")
"""Those that index rows."""
_ROOTS = frozenset({"log", "log2", "rsqrt", "sqrt"})
_ARITHMETIC = frozenset({"div", "pow", "reciprocal", "sub"})


def index_bounds(fusion: Fusion) -> dict[Value, int]:
    """Upper bounds of the inputs that are used as indices.

    Walks back through views, sums and products with constants: where ``1024 * a + b`` indexes
    1024 rows, ``a`` stays below 1 and ``b`` below 1024.
    """
    bounds: dict[Value, int] = {}
    for node in fusion.nodes:
        if node.op in _INDEXED:
            table, index = (node.args[place] for place in _INDEXED[node.op])
            dim = 0 if node.op in _ROWS_INDEXED else node.attr("dim")
            assert isinstance(table, Value)
            assert isinstance(index, Value)
            assert isinstance(dim, int)
            _bound(fusion, index, table.tensor.sizes[dim], bounds)
    return bounds


def under_roots(fusion: Fusion) -> set[Value]:
    """The inputs, such as saved variances, whose root or logarithm is taken.

    Walks back through views and arithmetic, and not into squares.
    """
    waiting = [value for node in fusion.nodes if node.op in _ROOTS for value in node.operands()]
    found: set[Value] = set()
    while waiting:
        value = waiting.pop()
        node = fusion.producers.get(value)
        if node is None:
            found.add(value)
        elif node.op in _PASSED_ON | _ARITHMETIC:
            operands = list(node.operands())
            waiting += operands if len(operands) == len(set(operands)) else []
    return found


def _bound(fusion: Fusion, value: Value, limit: int, bounds: dict[Value, int]) -> None:
    node = fusion.producers.get(value)
    if node is None:
        bounds[value] = min(limit, bounds.get(value, limit))
    elif node.op in _PASSED_ON:
        for operand in node.operands():
            _bound(fusion, operand, max(1, limit // _factor(node)), bounds)


def _factor(node: Node) -> int:
    """The constant that a product multiplies by; 1 for any other op."""
    constants = [arg.value for arg in node.args if isinstance(arg, Const)]
    return int(abs(constants[0])) if node.op == "mul" and constants else 1


def _shapes(text: str) -> list[Sequence[int]]:
    """Every ``shape=[...]`` and ``new_shape=[...]`` of a program."""
    pieces = text.split("shape=[")[1:]
    return [[int(n) for n in piece[: piece.index("]")].split(",") if n] for piece in pieces]


def _numel(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
