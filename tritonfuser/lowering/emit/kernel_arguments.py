"""What a kernel is given, in the form that its body needs; and what it is called by."""

from __future__ import annotations

from ...ir import Value
from ...ops.builder import as_call
from ...ops.table import View
from ..kernel_source import passed_dtype
from ..passes.random_seeds import Seeds
from ..segments import Segment
from .expressions import triton_name
from .lines import Line


def argument_name(value: Value) -> str:
    """A value as an argument of a kernel: ``tv0_ptr``, or the name of a number."""
    return f"{value.name}_ptr" if value.is_tensor else value.name


def numbers(segment: Segment, seeds: Seeds) -> list[Line]:
    """The numbers that the kernel is given, in their types; what a run draws with is fetched."""
    drawn = [f"{s.name}, {o.name}" for s, o in seeds if s in segment.inputs]
    fetched = {value for pair in seeds for value in pair}
    given = [v for v in segment.inputs if not v.is_tensor and v not in fetched]
    typed = ((v.name, triton_name(passed_dtype(v))) for v in given)
    return [
        *(Line(f"{pair} = drawn({pair})") for pair in drawn),
        *(Line(f"{name} = scalar({name}, {dtype})") for name, dtype in typed),
    ]


def telling_ops(segment: Segment) -> list[str]:
    """The first few ops that say what a segment computes."""
    ops = [n.op for n in segment.nodes if not isinstance(as_call(n).op.form, View)]
    return list(dict.fromkeys(op for op in ops if op != "cast"))[:4]
