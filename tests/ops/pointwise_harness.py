"""Flat kernels of single pointwise rows, made from their expressions: to interpret, to compile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import torch

from tritonfuser.dtypes import DataType
from tritonfuser.errors import DefinitionError
from tritonfuser.ir import Dim, TensorType, Value
from tritonfuser.lowering.interpreter import language
from tritonfuser.lowering.interpreter.interpret import interpret_kernel
from tritonfuser.lowering.kernel_source import KernelArg, KernelSource
from tritonfuser.ops.forms import OperandType, Pointwise, Typing
from tritonfuser.ops.pointwise import binary, ternary, unary
from tritonfuser.ops.table import Op

D = DataType
DTYPES = (D.Double, D.Float, D.Half, D.BFloat16, D.Int, D.Int32, D.Bool)
EIGHTS = (D.Float8_e4m3fn, D.Float8_e5m2)
ALL_DTYPES = (*DTYPES, *EIGHTS)
FLOATS = frozenset({D.Double, D.Float, D.Half, D.BFloat16, *EIGHTS})
INTEGERS = frozenset({D.Int, D.Int32})
ROWS = (*unary.ROWS, *binary.ROWS, *ternary.ROWS)
BY_NAME = {op.name: op for op in ROWS}
IMPORTS = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
from tritonfuser.lowering.device_lib.functions import *
"""


def operand_dtypes(op: Op, dtype: DataType) -> tuple[DataType, ...]:
    """``dtype`` for each operand, but Bool for a condition."""
    names = [p.name for p in op.params if p.kind.is_operand]
    return tuple(D.Bool if name == "condition" else dtype for name in names)


def typing_of(op: Op, dtype: DataType) -> Typing | None:
    """What the row's rule says of tensors of ``dtype``; None where it refuses them."""
    assert isinstance(op.form, Pointwise)
    operands = (OperandType(d, False, True) for d in operand_dtypes(op, dtype))
    try:
        return op.form.typing(tuple(operands))
    except DefinitionError:
        return None


def cases() -> list[tuple[str, DataType]]:
    """Every row with every dtype it takes, but rows that are for complex numbers."""
    return [
        (op.name, dtype)
        for op, dtype in product(ROWS, DTYPES)
        if op.form.variants and typing_of(op, dtype) is not None
    ]


def triton(dtype: DataType) -> str:
    return f"tl.{dtype.info.triton}"


def converted(text: str, target: DataType) -> str:
    return f"({text}) != 0" if target is D.Bool else f"({text}).to({triton(target)})"


def row_text(op: Op, typing: Typing, names: Sequence[str]) -> str:
    """The row's expression over ``names``, which hold its operands as ``typing`` wants them."""
    params = [p.name for p in op.params if p.kind.is_operand]
    operands = dict(zip(params, names, strict=True))
    text = op.form.expression(typing.operands[0]).format(**operands, dtype=triton(typing.computed))
    return text if typing.computed is typing.result else converted(text, typing.result)


def kernel(
    lines: Sequence[str], inputs: Sequence[DataType], outputs: Sequence[DataType], count: int
) -> KernelSource:
    """A kernel over ``count`` elements: ``lines`` make ``r0, r1, ...`` of ``x0, x1, ...``."""
    args = [
        KernelArg(f"{name}{i}_ptr", Value(i + offset, TensorType((Dim(count),), dtype)), True)
        for name, dtypes, offset in (("x", inputs, 0), ("r", outputs, len(inputs)))
        for i, dtype in enumerate(dtypes)
    ]
    body = [
        "i = tl.arange(0, N)",
        *(f"x{i} = tl.load(x{i}_ptr + i)" for i in range(len(inputs))),
        *lines,
        *(f"tl.store(r{i}_ptr + i, r{i})" for i in range(len(outputs))),
    ]
    head = f"def flat({', '.join(a.name for a in args)}, N: tl.constexpr):"
    text = "\n".join([IMPORTS, "", "@triton.jit", head, *("    " + line for line in body), ""])
    return KernelSource("flat", text, tuple(args), (("N", count),), (1, 1, 1), 4, 1)


def row_kernel(op: Op, dtype: DataType, count: int) -> KernelSource:
    typing = typing_of(op, dtype)
    assert typing is not None
    stored = operand_dtypes(op, dtype)
    lines = [
        f"v{i} = " + (f"x{i}" if have is want else converted(f"x{i}", want))
        for i, (have, want) in enumerate(zip(stored, typing.operands, strict=True))
    ]
    names = [f"v{i}" for i in range(len(stored))]
    return kernel([*lines, f"r0 = {row_text(op, typing, names)}"], stored, [typing.result], count)


def interpret(source: KernelSource, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The kernel's outputs on CPU tensors."""
    made = [
        torch.empty(dict(source.constants)["N"], dtype=arg.dtype.info.torch)
        for arg in source.args[len(inputs) :]
    ]
    with language.session():
        interpret_kernel(source)(*inputs, *made)
    return made


# --- numbers to try ----------------------------------------------------------------------------

INF, NAN = float("inf"), float("nan")
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, INF, -INF, NAN, 1e-3, 1e30,
                  3.25, -7.25)  # fmt: skip
SPECIAL_INTS = (0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 63, 64, -(2**31), 2**31 - 1, 100, -100)


def specials(dtype: DataType) -> torch.Tensor:
    target = dtype.info.torch
    if dtype in FLOATS:
        return torch.tensor(SPECIAL_FLOATS, dtype=torch.float64).to(target)
    if dtype is D.Bool:
        return torch.tensor([False, True] * 8)
    found = list(SPECIAL_INTS)
    if dtype is D.Int:
        found[12:14] = [-(2**63), 2**63 - 1]
    return torch.tensor(found, dtype=target)


def samples(op: Op, dtype: DataType, count: int) -> list[torch.Tensor]:
    """Random operands in the row's range."""
    ranges = {name: (low, high) for name, low, high in op.samples.ranges}
    names = [p.name for p in op.params if p.kind.is_operand]
    generator = torch.Generator().manual_seed(7)
    found = []
    for name, want in zip(names, operand_dtypes(op, dtype), strict=True):
        low, high = ranges.get(name, (op.samples.low, op.samples.high))
        drawn = torch.rand(count, generator=generator, dtype=torch.float64) * (high - low) + low
        found.append(drawn > 0 if want is D.Bool else drawn.to(want.info.torch))
    return found


def operands(op: Op, dtype: DataType) -> list[torch.Tensor]:
    """Each special value beside each other one, then as many random ones."""
    kinds = operand_dtypes(op, dtype)
    if len(kinds) > 2:  # 16 cubed is too many: the third runs along with the first two
        pairs = list(product(range(16), range(16), range(1)))
        places = [(a, b, (5 * a + 3 * b) % 16, (a + b) % 16)[: len(kinds)] for a, b, _ in pairs]
    else:
        places = list(product(range(16), repeat=len(kinds)))
    index = torch.tensor(places)
    edge = [specials(kind)[index[:, i]] for i, kind in enumerate(kinds)]
    drawn = samples(op, dtype, len(places))
    return [torch.cat(pair) for pair in zip(edge, drawn, strict=True)]
