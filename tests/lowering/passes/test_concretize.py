"""Definitions at given sizes: extents, scalars that shapes depend on, broadcasts, errors."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, lowered, planned
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.errors import DefinitionError
from tritonfuser.ir import Const
from tritonfuser.ir_graph import check
from tritonfuser.lowering.passes.concretize import concretize, shape_scalars


def concrete(fd, inputs):
    ir = fd.fusion.ir
    return check(concretize(ir, signature(ir, inputs, torch.device("cpu"))))


def run(fd, inputs):
    return planned(lowered(fd, inputs, CPU), inputs, CPU).run(list(inputs))


def dynamic(rank, body, *scalars):
    """A definition over one tensor of unknown sizes and scalars of these dtypes."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1] * rank, contiguity=False)
        results = body(fd, x, *[fd.define_scalar(dtype=dtype) for dtype in scalars])
        for result in results if isinstance(results, tuple) else (results,):
            fd.add_output(result)
    return fd


def test_scalars_of_sizes_stay_beside_these():
    """For who asks how they are rounded."""

    def body(fd, x, c):
        twice = fd.ops.mul(c, 2)
        return fd.ops.add(fd.ops.expand(x, [twice, fd.ops.size(x, 1)]), fd.ops.sqrt(twice))

    fd = dynamic(2, body, DataType.Int)
    ir, inputs = fd.fusion.ir, [noise(1, 3), 4]
    given = signature(ir, inputs, torch.device("cpu"))
    for folds in (True, False):
        fusion = check(concretize(ir, given, folds))
        assert fusion.outputs[0].value.tensor.sizes == (8, 3)
        ops = {node.op for node in fusion.nodes}
        assert ops == ({"expand", "add"} if folds else {"expand", "add", "mul", "sqrt"})


# --- extents -----------------------------------------------------------------------------


def test_sizes_become_numbers():
    fd = dynamic(2, lambda fd, x: fd.ops.reshape(x, [fd.ops.size(x, 1), -1]))
    for rows, columns in ((4, 6), (5, 3), (1, 7)):
        fusion = concrete(fd, [noise(rows, columns)])
        assert fusion.outputs[0].value.tensor.sizes == (columns, rows)
        assert all(node.op != "size" for node in fusion.nodes)


def test_sizes_of_one_become_broadcasts():
    fd = dynamic(2, lambda fd, x: fd.ops.add(x, fd.ops.sum(x, [1], keepdim=True)))
    for shape in ((4, 6), (4, 1), (1, 6), (1, 1), (0, 6), (4, 0)):
        (out,) = run(fd, [noise(*shape)])
        x = noise(*shape)
        torch.testing.assert_close(out, x + x.sum(1, keepdim=True))


def test_stretched_inputs_are_known_as_such():
    fd = dynamic(2, lambda fd, x: fd.ops.exp(x))
    fusion = concrete(fd, [noise(1, 6).expand(4, 6)])
    assert [dim.expanded for dim in fusion.inputs[0].tensor.dims] == [True, False]
    fusion = concrete(fd, [noise(4, 6)])
    assert [dim.expanded for dim in fusion.inputs[0].tensor.dims] == [False, False]


def test_values_keep_their_numbers():
    fd = dynamic(1, lambda fd, x: fd.ops.exp(fd.ops.sin(x)))
    before, after = fd.fusion.ir, concrete(fd, [noise(3)])
    assert [n.out.name for n in after.nodes] == [n.out.name for n in before.nodes]
    assert after.nodes[0].loc == before.nodes[0].loc


# --- scalars -----------------------------------------------------------------------------


def test_a_scalar_as_a_size():
    fd = dynamic(1, lambda fd, x, n: fd.ops.reshape(x, [n, -1]), DataType.Int)
    for size in (1, 2, 3, 12, True):
        assert run(fd, [noise(12), size])[0].shape == (int(size), 12 // int(size))


@pytest.mark.parametrize("given", [3.0, 3.7, 3])
def test_a_float_as_a_size_is_truncated(given):
    fd = dynamic(1, lambda fd, x, n: fd.ops.reshape(x, [n, -1]), DataType.Double)
    assert run(fd, [noise(12), given])[0].shape == (3, 4)


def test_arithmetic_on_sizes():
    def body(fd, x, n):
        half = fd.ops.cast(fd.ops.mul(fd.ops.reciprocal(n), 12), DataType.Int)
        return fd.ops.reshape(x, [half, n])

    fd = dynamic(1, body, DataType.Int)
    assert run(fd, [noise(12), 4])[0].shape == (3, 4)
    assert run(fd, [noise(12), 2])[0].shape == (6, 2)


def test_only_scalars_that_shapes_depend_on_are_named():
    def body(fd, x, size, factor, width):
        doubled = fd.ops.mul(width, 2)
        padded = fd.ops.pad(fd.ops.reshape(x, [size, -1]), [0, doubled])
        return fd.ops.mul(padded, factor)

    fd = dynamic(1, body, DataType.Int, DataType.Double, DataType.Int)
    _, size, _, width = fd.fusion.ir.inputs
    assert shape_scalars(fd.fusion.ir) == {size, width}
    (out,) = run(fd, [torch.ones(4), 2, 3.0, 1])
    assert out.tolist() == [[3, 3, 0, 0]] * 2


def test_scalars_in_shapes_become_constants():
    fd = dynamic(1, lambda fd, x, n: fd.ops.mul(fd.ops.reshape(x, [n, -1]), n), DataType.Int)
    product = concrete(fd, [noise(12), 3]).nodes[-1]
    assert product.args[1] == Const(3, DataType.Int)


@pytest.mark.parametrize("size", [float("nan"), float("inf"), 1e30, -(2**63)])
def test_sizes_that_are_none(size):
    kind = DataType.Double if isinstance(size, float) else DataType.Int
    fd = dynamic(1, lambda fd, x, n: fd.ops.reshape(x, [n, -1]), kind)
    with pytest.raises(DefinitionError, match="a size must be"):
        concrete(fd, [noise(12), size])


# --- errors ------------------------------------------------------------------------------


def test_errors_name_the_line_of_the_op():
    fd = dynamic(2, lambda fd, x: fd.ops.reshape(x, [5, -1]))
    with pytest.raises(DefinitionError, match="reshape") as caught:
        concrete(fd, [noise(4, 6)])
    assert "fd.ops.reshape(x, [5, -1])" in str(caught.value)


def test_operands_that_do_not_broadcast():
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor(shape=[-1], contiguity=False) for _ in range(2))
        fd.add_output(fd.ops.add(x, y))
    assert run(fd, [noise(4), noise(1)])[0].shape == (4,)
    with pytest.raises(DefinitionError, match="broadcast together"):
        concrete(fd, [noise(4), noise(3)])


def test_a_dim_that_cannot_be_squeezed():
    fd = dynamic(2, lambda fd, x: fd.ops.squeeze(x, [1]))
    assert run(fd, [noise(4, 1)])[0].shape == (4,)
    with pytest.raises(DefinitionError, match="squeeze"):
        concrete(fd, [noise(4, 2)])
