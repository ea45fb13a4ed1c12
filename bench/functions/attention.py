"""Attention in torch: calls of torch's flash-attention kernels for the device."""

from __future__ import annotations

from tritonfuser.dtypes import REDUCED_FLOATS
from tritonfuser.ir import Value

from .line import Line, unwritable

_FLASH = "torch.ops.aten._scaled_dot_product_flash_attention"
_WIDTHS = 8
"""The GPU kernels need a head width that is a multiple of this."""


def forward(line: Line) -> str:
    """Output, logsumexp, seed and offset of the dropout."""
    if line.operands["bias"] is not None or line.operands["mask"] is not None:
        raise unwritable(line.node, "with a bias or a mask")
    _check(line)
    given = ", ".join(line[name] for name in ("query", "key", "value"))
    options = f"{_dropout(line)}, {_causal(line)}{_scale(line)}"
    if line.device == "cpu":
        # The CPU kernel returns no seed and offset.
        seed = ", ".join(f"torch.zeros({shape}, dtype=torch.uint64)" for shape in ("2", "()"))
        return f"(*{_FLASH}_for_cpu({given}, {options}), {seed})"
    return f"itemgetter(0, 1, 6, 7)({_FLASH}({given}, {options}))"


def backward(line: Line) -> str:
    """Gradients of query, key and value."""
    _check(line)
    names = ("grad_output", "query", "key", "value", "output", "logsumexp")
    given = ", ".join(line[name] for name in names)
    options = f"{_dropout(line)}, {_causal(line)}"
    if line.device == "cpu":
        return f"{_FLASH}_for_cpu_backward({given}, {options}{_scale(line)})"
    lengths = ", ".join(f"{line[name]}.size(-2)" for name in ("query", "key"))
    drawn = f"{line['philox_seed']}, {line['philox_offset']}"
    return f"{_FLASH}_backward({given}, None, None, {lengths}, {options}, {drawn}{_scale(line)})"


def _check(line: Line) -> None:
    """Raise for operands that the device's kernels reject without padding."""
    query = next(a for a in line.node.operands() if a.name == line["query"])
    assert isinstance(query, Value)
    if query.tensor.rank != 4:
        raise unwritable(line.node, f"of rank {query.tensor.rank}")
    if line.device != "cpu":
        if query.dtype not in REDUCED_FLOATS:
            raise unwritable(line.node, f"of {query.dtype} on {line.device}")
        if query.tensor.sizes[-1] % _WIDTHS:
            raise unwritable(line.node, f"with heads of {query.tensor.sizes[-1]}")


def _dropout(line: Line) -> str:
    return "0.0" if line.operands["dropout_p"] is None else line["dropout_p"]


def _causal(line: Line) -> str:
    return "False" if line.operands["is_causal"] is None else line["is_causal"]


def _scale(line: Line) -> str:
    return "" if line.operands["scale"] is None else f", scale={line['scale']}"
