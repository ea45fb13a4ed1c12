"""The Python signature and docstring of ``fd.ops.NAME``, from its row of the op table."""

from __future__ import annotations

import inspect

from ...ops.param_docs import doc_of
from ...ops.parameters import REQUIRED, Param
from ...ops.table import Op


def _parameter(param: Param) -> inspect.Parameter:
    optional = " | None" if param.default is None else ""
    return inspect.Parameter(
        param.name,
        inspect.Parameter.KEYWORD_ONLY
        if param.keyword_only
        else inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if param.default is REQUIRED else param.default,
        annotation=param.kind.value + optional,
    )


def signature_of(op: Op) -> inspect.Signature:
    """The signature of ``fd.ops.NAME``, without ``self``."""
    return inspect.Signature([_parameter(param) for param in op.params])


def docstring_of(op: Op) -> str:
    """The sentence of the row; type and meaning of each parameter."""
    lines = [op.doc, "", "Parameters", "----------"]
    for param in op.params:
        default = "" if param.default is REQUIRED else f", default {param.default}"
        lines.append(f"{param.name} : {param.kind.value}{default}")
        lines.append(f"    {doc_of(param)}")
    return "\n".join(lines)
