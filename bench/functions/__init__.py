"""Write a definition as a plain torch function for eager torch and ``torch.compile``.

    def f(tv0, tv1):
        tv2 = tv0 + tv1
        tv3 = torch.sum(tv2, (1,), dtype=torch.float32)
        return [tv3]

One line per node, in recording order. Sizes are constants, dtypes are those of the definition, and
casts are explicit. Random numbers come from torch's generator, so seeds are not arguments.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tritonfuser.errors import DefinitionError
from tritonfuser.ir import Arg, Const, Fusion, Node, Operand, Value
from tritonfuser.ir_graph import live_nodes
from tritonfuser.lowering.passes.constant_folding import fold
from tritonfuser.ops import registry
from tritonfuser.ops.builder import as_call
from tritonfuser.ops.forms import Random
from tritonfuser.ops.parameters import Kind

from .forms import right_side
from .line import Line, Text, literal

NAME = "f"
_WHOLE = (Kind.EXTENT, Kind.EXTENTS)


@dataclass(frozen=True)
class TorchFunction:
    """The source of a module with one function."""

    text: str
    places: tuple[int, ...]

    def load(self, name: str = "function") -> Callable[..., list[torch.Tensor]]:
        """Compile the function; tracebacks show its lines under ``<name>``."""
        filename = f"<{name}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(True), filename)
        scope: dict[str, Any] = {}
        exec(compile(self.text, filename, "exec"), scope)
        found: Callable[..., list[torch.Tensor]] = scope[NAME]
        return found

    def arguments(self, inputs: Sequence[Any]) -> list[Any]:
        """Select the function's arguments from the definition's inputs."""
        return [inputs[place] for place in self.places]


def unseeded(fusion: Fusion) -> Fusion:
    """Remove seeds and offsets, so that random numbers come from torch's generator."""
    nodes = tuple(_unseeded(node) for node in fusion.nodes)
    return replace(fusion, nodes=nodes)


def _unseeded(node: Node) -> Node:
    op = registry.get(node.op)
    if not isinstance(op.form, Random):
        return node
    names = [param.name for param in op.params if param.kind.is_operand]
    args = tuple(
        None if name in ("rng_seed", "rng_offset") else arg
        for name, arg in zip(names, node.args, strict=True)
    )
    return replace(node, args=args)


def write(fusion: Fusion, device: str = "cuda") -> TorchFunction:
    """Write the definition as a torch function; new tensors are created on ``device``.

    Raises
    ------
    DefinitionError
        An op has no equivalent in torch, or a size is known only at run time.
    """
    fusion = unseeded(fusion)
    writer = _Writer(device)
    nodes = live_nodes(fusion.nodes, [out.value for out in fusion.outputs])
    lines = [line for node in nodes for line in writer.lines(node)]
    lines += [
        f"{out.alias_of.name}.copy_({out.value.name})"
        for out in fusion.outputs
        if out.alias_of is not None
    ]
    shown = [out.value.name for out in fusion.outputs if not out.hidden]
    lines.append(f"return [{', '.join(shown)}]")
    read = _read(fusion, nodes)
    places = tuple(i for i, value in enumerate(fusion.inputs) if value in read)
    names = ", ".join(fusion.inputs[i].name for i in places)
    body = "\n".join(f"    {line}" for line in lines)
    imports = [
        text
        for text, used in (("from operator import itemgetter", "itemgetter("), ("import torch", ""))
        if used in body
    ]
    return TorchFunction("\n".join([*imports, "", "", f"def {NAME}({names}):", body, ""]), places)


def _read(fusion: Fusion, nodes: Sequence[Node]) -> set[Value]:
    """The values that a node reads or that are outputs."""
    read = {value for node in nodes for value in node.operands()}
    for out in fusion.outputs:
        read.update((out.value,) if out.alias_of is None else (out.value, out.alias_of))
    return read


class _Writer:
    """Writes node by node; scalars computed from constants are folded to numbers."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._known: dict[Value, Const] = {}

    def lines(self, node: Node) -> list[str]:
        node = replace(node, args=tuple(self._resolved(arg) for arg in node.args))
        if not node.out.is_tensor:
            self._known[node.out] = _folded(node)
            return []
        params = [p for p in registry.get(node.op).params if p.kind.is_operand]
        operands = {
            param.name: _text(arg, whole=param.kind in _WHOLE)
            for param, arg in zip(params, node.args, strict=True)
        }
        left = ", ".join(out.name for out in node.outs)
        return [f"{left} = {right_side(Line(node, operands, self._device))}"]

    def _resolved(self, arg: Arg) -> Arg:
        if isinstance(arg, tuple):
            return tuple(self._constant(item) for item in arg)
        return None if arg is None else self._constant(arg)

    def _constant(self, operand: Operand) -> Operand:
        return self._known.get(operand, operand) if isinstance(operand, Value) else operand


def _folded(node: Node) -> Const:
    found = fold(as_call(node), node.out.dtype)
    if found is None:
        raise DefinitionError(
            f"{node.op}: expected scalars that are constants, got one known at run time alone",
            loc=node.loc,
            hint="Record the definition with the numbers written out.",
        )
    return found


def _text(arg: Arg, *, whole: bool) -> Text:
    """Operands as text; sizes computed in floating point become ints."""
    if isinstance(arg, tuple):
        return tuple(_single(item, whole=whole) for item in arg)
    return None if arg is None else _single(arg, whole=whole)


def _single(arg: Operand, *, whole: bool) -> str:
    if isinstance(arg, Value):
        return arg.name
    if not whole:
        return literal(arg.value)
    assert not isinstance(arg.value, complex)
    return str(int(arg.value))
