"""Views, reductions, factories and products as torch expressions, one function per op."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tritonfuser.dtypes import DataType
from tritonfuser.ir import Const, Value
from tritonfuser.ops import registry
from tritonfuser.ops.forms import Pointwise

from . import attention
from .line import Line, literal, torch_name, tuple_text, unwritable
from .pointwise import pointwise

Form = Callable[[Line], str]


def right_side(line: Line) -> str:
    """The torch expression that computes the node's results.

    Raises
    ------
    DefinitionError
        The op has no equivalent in torch, or none for its dtypes or options.
    """
    if isinstance(registry.get(line.node.op).form, Pointwise):
        return pointwise(line)
    form = FORMS.get(line.node.op)
    if form is None:
        raise unwritable(line.node)
    return form(line)


# --- views ---------------------------------------------------------------------------------------


def _broadcast(line: Line) -> str:
    flags = ["None" if new else ":" for new in line.attr("is_broadcast_dim")]
    return f"{line['arg']}[{', '.join(flags) or '...'}]"


def _squeeze(line: Line) -> str:
    arg = line.node.args[0]
    assert isinstance(arg, Value)
    gone = {dim % arg.tensor.rank for dim in line.attr("dims")}
    kept = ["0" if dim in gone else ":" for dim in range(arg.tensor.rank)]
    return f"{line['arg']}[{', '.join(kept)}]"


def _slice(line: Line) -> str:
    bounds = zip(line.items("start_indices"), line.items("end_indices"), strict=True)
    return f"{line['arg']}[{', '.join(f'{start}:{end}' for start, end in bounds)}]"


def _permute(line: Line) -> str:
    return f"{line['arg']}.permute({tuple_text(line.attr('dims'))})"


def _stride_order(line: Line) -> str:
    """A copy in the given stride order; 0 is the fastest dim."""
    order = line.attr("stride_order")
    rank = len(order)
    outward = sorted(range(rank), key=lambda dim: -(order[dim] % rank))
    dense = "clone(memory_format=torch.contiguous_format)"
    if outward == list(range(rank)):
        return f"{line['arg']}.{dense if order else 'clone()'}"
    back = [outward.index(dim) for dim in range(rank)]
    turned = f"{line['arg']}.permute({tuple_text(outward)})"
    return f"{turned}.{dense}.permute({tuple_text(back)})"


def _pad(line: Line) -> str:
    filled = "" if line.operands["value"] is None else f", value={line['value']}"
    return f"torch.nn.functional.pad({line['arg']}, {line['pad_widths']}{filled})"


def _index_select(line: Line) -> str:
    return f"torch.index_select({line['arg']}, {line.attr('dim')}, {line['index']})"


def _gather(line: Line) -> str:
    return f"torch.gather({line['arg']}, {line.attr('dim')}, {line['index']}.long())"


def _scatter(line: Line) -> str:
    picked = f"{line.attr('dim')}, {line['index']}.long(), {line['src']}"
    return f"torch.scatter({line['arg']}, {picked})"


def _take_along_axis(line: Line) -> str:
    return f"torch.take_along_dim({line['arg']}, {line['index']}.long(), {line.attr('dim')})"


def _embedding(line: Line) -> str:
    if line.operands["max_norm"] is not None:
        raise unwritable(line.node, "with a max_norm")
    return f"torch.nn.functional.embedding({line['input']}, {line['weight']})"


# --- reductions and scans ------------------------------------------------------------------------


def _sum(line: Line) -> str:
    dims, dtype = tuple_text(line.attr("dims")), torch_name(line.node.out.dtype)
    return f"torch.sum({line['arg']}, {dims}, dtype={dtype})"


def _extremum(line: Line, name: str) -> str:
    arg = line.node.args[0]
    assert isinstance(arg, Value)
    if 0 in [arg.tensor.sizes[dim] for dim in line.attr("dims")]:
        raise unwritable(line.node, "of no elements")
    return f"torch.{name}({line['arg']}, {tuple_text(line.attr('dims'))})"


def _variance(line: Line, name: str) -> str:
    options = f"correction={line.attr('correction')}, keepdim={line.attr('keepdim')}"
    return f"torch.{name}({line['arg']}, {tuple_text(line.attr('dims'))}, {options})"


def _topk(line: Line) -> str:
    given = ", ".join(f"{name}={line.attr(name)}" for name in ("dim", "largest", "sorted"))
    return f"torch.topk({line['arg']}, {line['k']}, {given})"


def _argsort(line: Line) -> str:
    given = ", ".join(f"{name}={line.attr(name)}" for name in ("dim", "descending", "stable"))
    return f"torch.argsort({line['arg']}, {given})"


def _product(line: Line) -> str:
    dims, dtype = line.attr("dims"), torch_name(line.node.out.dtype)
    if len(dims) != 1:
        raise unwritable(line.node, f"over {len(dims)} dims")
    return f"torch.prod({line['arg']}, {dims[0]}, dtype={dtype})"


def _scan(line: Line, name: str) -> str:
    dtype = line.node.out.dtype
    if dtype is DataType.Bool:
        raise unwritable(line.node, "of Bool")
    return f"torch.{name}({line['arg']}, {line.attr('dim')}, dtype={torch_name(dtype)})"


def _index_put_accumulate(line: Line) -> str:
    given = f"({line['index']}.long(),), {line['value']}, accumulate=True"
    return f"torch.index_put({line['acc']}, {given})"


# --- new tensors ---------------------------------------------------------------------------------


def _iota(line: Line) -> str:
    made = f"dtype={torch_name(line.attr('dtype'))}, {line.place}"
    text = f"torch.arange({line['length']}, {made})"
    step, start = line.operands["step"], line.operands["start"]
    text = text if step in (None, "1") else f"{text} * {step}"
    return text if start in (None, "0") else f"{text} + {start}"


def _full(line: Line) -> str:
    made = f"dtype={torch_name(line.attr('dtype'))}, {line.place}"
    return f"torch.full({line['shape']}, {line['fill_value']}, {made})"


def _drawn(line: Line, draw: str, scale: str, shift: str) -> str:
    """Random numbers in at least float32, rounded to the dtype after scaling."""
    dtype = line.attr("dtype")
    wide = DataType.Double if dtype is DataType.Double else DataType.Float
    text = f"torch.{draw}({line['shape']}, dtype={torch_name(wide)}, {line.place})"
    text = text if scale == "1.0" else f"({text} * {scale})"
    text = text if shift == "0.0" else f"({text} + {shift})"
    return text if dtype is wide else f"{text}.to({torch_name(dtype)})"


def _uniform(line: Line) -> str:
    low, high = line.node.args[:2]
    span = f"({line['maxval']} - {line['minval']})"
    if isinstance(low, Const) and isinstance(high, Const):
        span = literal(high.value - low.value)
    return _drawn(line, "rand", span, line["minval"])


def _normal(line: Line) -> str:
    return _drawn(line, "randn", line["std"], line["mean"])


# --- products ------------------------------------------------------------------------------------


def _linear(line: Line) -> str:
    weight = line.node.args[1]
    assert isinstance(weight, Value)
    if weight.tensor.rank > 2:
        raise unwritable(line.node, f"with a weight of rank {weight.tensor.rank}")
    bias = "" if line.operands["bias"] is None else f", {line['bias']}"
    return f"torch.nn.functional.linear({line['arg1']}, {line['arg2']}{bias})"


FORMS: Mapping[str, Form] = {
    "argsort": _argsort,
    "broadcast": _broadcast,
    "cat": lambda line: f"torch.cat({line['tensors']}, {line.attr('dim')})",
    "cummax": lambda line: f"torch.cummax({line['arg']}, {line.attr('dim')})[0]",
    "cummin": lambda line: f"torch.cummin({line['arg']}, {line.attr('dim')})[0]",
    "cumprod": lambda line: _scan(line, "cumprod"),
    "cumsum": lambda line: _scan(line, "cumsum"),
    "embedding_fwd": _embedding,
    "expand": lambda line: f"{line['arg']}.expand({line['shape']})",
    "full": _full,
    "gather": _gather,
    "index_put_accumulate": _index_put_accumulate,
    "index_select": _index_select,
    "iota": _iota,
    "linear": _linear,
    "matmul": lambda line: f"torch.matmul({line['arg1']}, {line['arg2']})",
    "max": lambda line: _extremum(line, "amax"),
    "min": lambda line: _extremum(line, "amin"),
    "normal": _normal,
    "pad": _pad,
    "permute": _permute,
    "prod": _product,
    "reshape": lambda line: f"{line['arg']}.reshape({line['new_shape']})",
    "select": lambda line: f"torch.select({line['arg']}, {line.attr('dim')}, {line['index']})",
    "sdpfa_bwd": attention.backward,
    "sdpfa_fwd": attention.forward,
    "slice": _slice,
    "squeeze": _squeeze,
    "stride_order": _stride_order,
    "sum": _sum,
    "scatter": _scatter,
    "take_along_axis": _take_along_axis,
    "topk": _topk,
    "triu": lambda line: f"torch.triu({line['arg']}, {line['diagonal']})",
    "uniform": _uniform,
    "var": lambda line: _variance(line, "var"),
    "var_mean": lambda line: _variance(line, "var_mean"),
}
