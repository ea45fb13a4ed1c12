"""fd.ops: a method for each row, with signature and docstring."""

from __future__ import annotations

import inspect
import pydoc

import pytest

from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops.parameters import REQUIRED
from tritonfuser.ops.registry import OPS


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_signature_and_docstring_are_those_of_the_row(op):
    method = getattr(FusionDefinition().ops, op.name)
    signature = inspect.signature(method)
    assert list(signature.parameters) == [p.name for p in op.params]
    for param in op.params:
        shown = signature.parameters[param.name]
        assert (shown.default is inspect.Parameter.empty) is (param.default is REQUIRED)
        assert (shown.kind is inspect.Parameter.KEYWORD_ONLY) is param.keyword_only
    assert inspect.getdoc(method).startswith(op.doc)
    assert method.__name__ == op.name


def test_the_signature_of_sum():
    assert str(inspect.signature(FusionDefinition().ops.sum)) == (
        "(arg: 'TensorView', dims: 'int | list[int] | tuple | None' = None, "
        "keepdim: 'bool' = False, dtype: 'DataType | torch.dtype' = DataType.Null)"
    )


def test_help_lists_every_op_with_its_docstring():
    text = pydoc.render_doc(FusionDefinition.Operators, renderer=pydoc.plaintext)
    for op in OPS.values():
        assert f" {op.name}(" in text
        assert op.doc in text.replace("\n |      ", " ") or op.doc.split("\n")[0] in text


def test_reductions_take_dims_in_every_form():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3, 4])
        for made in (
            fd.ops.sum(x, 1),
            fd.ops.sum(x, (1,), dtype=DataType.Float),
            fd.ops.sum(x, axes=[1]),
            fd.ops.sum(x, dim=-2),
            fd.ops.sum(x, [1], False, DataType.Float),
        ):
            fd.add_output(made)
        fd.add_output(fd.ops.sum(x, DataType.Double))
    nodes = [node for node in fd.fusion.ir.nodes if node.op == "sum"]
    assert len(nodes) == 6
    assert {node.attrs for node in nodes[:-1]} == {nodes[0].attrs}
    assert nodes[-1].attr("dims") == (0, 1, 2)
    assert nodes[-1].out.dtype is DataType.Double
