"""Writes ``docs/ops.md``: a page of all ops, from the op table.

``python docs/ops.py`` writes the page; a test compares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tritonfuser.dtypes import DataType
from tritonfuser.ops.forms import Pointwise, Random, Reduction, Scan
from tritonfuser.ops.parameters import REQUIRED
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import Form, Op

PAGE = Path(__file__).with_name("ops.md")

HEAD = """\
# The ops

Written by docs/ops.py from the op table: every op of `fd.ops`, and of `tritonfuser.ops` for use
under a `FusionGuard`. Operands are tensors and scalars of the definition, and Python numbers;
all arguments may be given by name. What each may be is in
`tritonfuser/frontend/record/operators.pyi` and in `help(FusionDefinition.Operators)`.
"""

SHOWN = (DataType.Float, DataType.Double, DataType.Int, DataType.Bool)
"""The dtypes that a pointwise expression is shown for: the first that it exists for."""


def sentence(thing: Callable[..., Any] | type) -> str:
    """The first sentence of a docstring, on one line."""
    text = " ".join((inspect.getdoc(thing) or "").split())
    text = text.split(". ")[0].rstrip(".") + "."
    return re.sub(r"``(\w+?)_op``", r"\1", text).replace("``", "`")


def cell(text: str) -> str:
    """Text in a table: a bar would end it."""
    return text.replace("|", "\\|")


def code(text: str) -> str:
    return f"`{cell(text)}`"


def short(rule: Any) -> str:
    """``default`` for the typing rule ``default_op``."""
    return str(rule.__name__).removesuffix("_op").replace("_", " ")


def signature(op: Op) -> str:
    """``sum(arg, dims=None, keepdim=False, dtype=DataType.Null)``."""
    names: list[str] = []
    for param in op.params:
        if param.keyword_only and "*" not in names:
            names.append("*")
        default = "" if param.default is REQUIRED else f"={param.default}"
        names.append(f"{param.name}{default}")
    return f"{op.name}({', '.join(names)})"


def lowered(op: Op) -> str:
    """How an op becomes code."""
    form = op.form
    kind = type(form).__name__
    if isinstance(form, Pointwise):
        return f"{kind}: {code(expression(form))}" if form.variants else "pairs of reals"
    if isinstance(form, Reduction | Scan):
        return f"{kind}: {code(form.combine)} from {form.identity}"
    if isinstance(form, Random):
        return f"{kind}: {form.distribution}"
    return kind


def expression(form: Pointwise) -> str:
    """The Triton expression for the first dtype that has one."""
    for dtype in SHOWN:
        try:
            return form.expression(dtype)
        except KeyError:
            continue
    return form.variants[0][1]


def remark(op: Op) -> str:
    """The typing rule of a pointwise op, and which dtypes are refused or special."""
    return short(op.form.typing) if isinstance(op.form, Pointwise) else ""


def rows(category: str) -> Iterator[str]:
    """The table of one category."""
    mine = [op for op in OPS.values() if op.category == category]
    typed = any(remark(op) for op in mine)
    titles = ["op", "what it does", *(["dtypes"] if typed else []), "lowering"]
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join('---' for _ in titles)} |"
    for op in mine:
        cells = [code(signature(op)), cell(op.doc)]
        cells += [remark(op)] if typed else []
        yield f"| {' | '.join([*cells, lowered(op)])} |"


def legend() -> Iterator[str]:
    """What the words of the last two columns mean."""
    yield "## Lowering\n"
    yield "| form | meaning |\n| --- | --- |"
    used = dict.fromkeys(type(op.form) for op in OPS.values())
    for form in Form.__args__:  # type: ignore[attr-defined]
        if form in used:
            yield f"| {form.__name__} | {cell(sentence(form))} |"
    yield "\nIn a pointwise expression `{x}` is an operand; shown is that for Float where there are"
    yield "several.\n"
    yield "## Dtypes of pointwise ops\n"
    yield "| rule | meaning |\n| --- | --- |"
    rules = {short(op.form.typing): op.form.typing for op in OPS.values() if remark(op)}  # type: ignore[union-attr]
    for name, rule in rules.items():
        yield f"| {name} | {cell(sentence(rule))} |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for category in dict.fromkeys(op.category for op in OPS.values()):
        parts += [f"\n## {category.capitalize()}\n\n", "\n".join(rows(category)), "\n"]
    return "".join([*parts, "\n", "\n".join(legend()), "\n"])


if __name__ == "__main__":
    PAGE.write_text(page())
