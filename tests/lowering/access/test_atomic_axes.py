"""Which dims run together: atoms of values, cut and joined by reshapes."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser.cache.keys.signature import signature
from tritonfuser.ir import Fusion, Value
from tritonfuser.lowering.access.atomic_axes import AtomicAxes
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.simplify import simplify


def mapped(body, *inputs) -> tuple[AtomicAxes, Fusion, list[Value]]:
    ir = record(body, inputs).fusion.ir
    fusion = simplify(concretize(ir, signature(ir, inputs, torch.device("cpu"))))
    return AtomicAxes(fusion), fusion, [out.value for out in fusion.outputs]


def extents(axes: AtomicAxes, value: Value) -> list[list[int]]:
    return [[axes.extent(atom) for atom in dim] for dim in axes.atoms(value)]


def test_operands_that_meet_share_axes():
    axes, fusion, (out,) = mapped(
        lambda fd, x, y, w: fd.ops.mul(fd.ops.add(x, y), w), noise(4, 6), noise(4, 6), noise(6)
    )
    x, y, w = fusion.inputs
    assert axes.atoms(x) == axes.atoms(y) == axes.atoms(out)
    assert axes.atoms(w) == axes.atoms(x)[1:]


def test_size_one_dims_have_no_axis():
    axes, fusion, (out,) = mapped(lambda fd, x, y: fd.ops.add(x, y), noise(4, 1, 6), noise(1, 5, 1))
    assert extents(axes, fusion.inputs[0]) == [[4], [], [6]]
    assert extents(axes, out) == [[4], [5], [6]]


def test_reshape_cuts_and_joins():
    axes, fusion, (out,) = mapped(
        lambda fd, x: fd.ops.reshape(fd.ops.exp(x), [2, 12, 5]), noise(6, 4, 5)
    )
    assert extents(axes, out) == [[2], [3, 4], [5]]
    assert extents(axes, fusion.inputs[0]) == [[2, 3], [4], [5]]
    assert axes.domain(out) == axes.domain(fusion.inputs[0])


def test_reshape_whose_factors_do_not_divide_has_axes_of_its_own():
    axes, fusion, (out,) = mapped(lambda fd, x: fd.ops.reshape(fd.ops.exp(x), [4, 6]), noise(6, 4))
    assert extents(axes, out) == [[4], [6]]
    assert set(axes.domain(out)).isdisjoint(axes.domain(fusion.inputs[0]))


def test_reshape_there_and_back():
    axes, fusion, (out,) = mapped(
        lambda fd, x: fd.ops.exp(fd.ops.reshape(fd.ops.exp(fd.ops.reshape(x, [24])), [2, 3, 4])),
        noise(6, 4),
    )
    assert axes.domain(out) == axes.domain(fusion.inputs[0])


def test_a_cut_reaches_values_that_met_before():
    """x and y met as [12]; a later reshape of x cuts the axis of both."""
    axes, fusion, (_, out) = mapped(
        lambda fd, x, y: (fd.ops.add(x, y), fd.ops.reshape(fd.ops.exp(x), [3, 4])),
        noise(12),
        noise(12),
    )
    x, y = fusion.inputs
    assert axes.domain(x) == axes.domain(y) == axes.domain(out)
    assert extents(axes, y) == [[3, 4]]


def test_one_tensor_along_one_axis_twice():
    """x[i] * x[j] is no walk along the diagonal."""
    axes, _, (out,) = mapped(
        lambda fd, x: fd.ops.mul(
            fd.ops.broadcast(x, [False, True]), fd.ops.broadcast(x, [True, False])
        ),
        noise(7),
    )
    first, second = axes.domain(out)
    assert first != second
    assert extents(axes, out) == [[7], [7]]


def test_transposed_square():
    axes, fusion, (out,) = mapped(
        lambda fd, x: fd.ops.add(x, fd.ops.permute(x, [1, 0])), noise(5, 5)
    )
    assert len(set(axes.domain(out))) == 2
    assert len(set(axes.domain(fusion.inputs[0]))) == 2


def test_reductions_drop_axes():
    axes, fusion, (out,) = mapped(lambda fd, x: fd.ops.sum(x, [0, 2]), noise(4, 5, 6))
    (x,) = fusion.inputs
    assert axes.atoms(out) == (axes.atoms(x)[1],)


@pytest.mark.parametrize(
    ("view", "kept"),
    [
        (lambda fd, x: fd.ops.permute(x, [1, 0]), [1, 0]),
        (lambda fd, x: fd.ops.broadcast(x, [False, True, False]), [0, None, 1]),
        (lambda fd, x: fd.ops.slice(x, [0, 1], [4, 3]), [0, None]),
        (lambda fd, x: fd.ops.pad(x, [1, 1]), [0, None]),
        (lambda fd, x: fd.ops.stride_order(x, [0, 1]), [0, 1]),
        (lambda fd, x: fd.ops.cat([x, x], 1), [0, None]),
    ],
)
def test_views_keep_the_axes_they_carry_over(view, kept):
    axes, fusion, (out,) = mapped(lambda fd, x: view(fd, fd.ops.exp(x)), noise(4, 6))
    mine, theirs = axes.atoms(out), axes.atoms(fusion.inputs[0])
    for place, origin in enumerate(kept):
        if origin is not None:
            assert mine[place] == theirs[origin]
        elif mine[place]:
            assert mine[place] not in theirs


def test_empty_and_scalar_values():
    axes, fusion, (out, total) = mapped(
        lambda fd, x: (fd.ops.reshape(fd.ops.exp(x), [0, 3, 5]), fd.ops.sum(x)), noise(0, 5)
    )
    assert extents(axes, out) == [[0], [3], [5]]
    assert axes.atoms(total) == ()
    assert extents(axes, fusion.inputs[0]) == [[0], [5]]


def spread(fd, value, like, dims):
    """A result along the dims of another tensor, without those in ``dims``."""
    others = [dim for dim in range(len(like.shape())) if dim not in dims]
    return fd.ops.broadcast_in_dim(value, like.shape(), others)


def test_what_is_broadcast_after_a_reduction_has_the_axes_that_were_reduced():
    """Only the size of y's last dim says that it goes with x's."""
    axes, fusion, (out,) = mapped(
        lambda fd, x, y: fd.ops.mul(y, spread(fd, fd.ops.sum(x, [1]), y, [1])),
        noise(4, 6),
        noise(4, 6, seed=2),
    )
    x, y = fusion.inputs
    assert axes.atoms(x) == axes.atoms(y) == axes.atoms(out)


def test_a_result_that_was_permuted_has_them_too():
    axes, fusion, (out,) = mapped(
        lambda fd, x, y: fd.ops.mul(
            y, spread(fd, fd.ops.permute(fd.ops.sum(x, [2]), [1, 0]), y, [2])
        ),
        noise(4, 6, 5),
        noise(6, 4, 5, seed=2),
    )
    x, _ = fusion.inputs
    assert axes.atoms(out) == tuple(axes.atoms(x)[dim] for dim in (1, 0, 2))


@pytest.mark.parametrize("columns", [7, 12, 3])
def test_axes_of_another_extent_stay_apart(columns):
    axes, fusion, (out,) = mapped(
        lambda fd, x, y: fd.ops.mul(y, spread(fd, fd.ops.sum(x, [1]), y, [1])),
        noise(4, 6),
        noise(4, columns, seed=2),
    )
    x, _ = fusion.inputs
    assert axes.atoms(out)[0] == axes.atoms(x)[0]
    assert axes.atoms(out)[1] != axes.atoms(x)[1]


def test_axes_that_a_value_has_both_of_stay_apart():
    """y is x transposed: its columns are x's rows already."""
    axes, fusion, (out,) = mapped(
        lambda fd, x: fd.ops.mul(fd.ops.permute(x, [1, 0]), spread(fd, fd.ops.sum(x, [1]), x, [1])),
        noise(6, 6),
    )
    (x,) = fusion.inputs
    assert len(set(axes.domain(out))) == len(set(axes.domain(x))) == 2
