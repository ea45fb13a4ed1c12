"""Indices that their dim does not have: an IndexError on the CPU, no read outside on a GPU."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import IndexRangeError, InputShapeError

X = torch.arange(12.0).reshape(3, 4)


def definition(record, *inputs):
    with FusionDefinition() as fd:
        fd.add_output(record(fd.ops, *(fd.from_pytorch(x) for x in inputs)))
    return fd


OPS = {
    "index_select": (lambda ops, x, i: ops.index_select(x, i, 0), lambda i: i, 3),
    "gather": (lambda ops, x, i: ops.gather(x, i, 1), lambda i: i[None].expand(3, -1), 4),
    "take_along_axis": (
        lambda ops, x, i: ops.take_along_axis(x, i, 1),
        lambda i: i[None].expand(3, -1),
        4,
    ),
    "embedding_fwd": (lambda ops, x, i: ops.embedding_fwd(i, x), lambda i: i, 3),
    "scatter": (lambda ops, x, i: ops.scatter(x, i, ops.neg(x), 0), lambda i: i[:3, None], 3),
}


@pytest.mark.parametrize("wrong", [2**40, 1000, "size", -1, -(2**40)])
@pytest.mark.parametrize("name", OPS)
def test_the_op_the_index_and_the_size_are_named(name, wrong):
    record, shape, size = OPS[name]
    wrong = size if wrong == "size" else wrong
    index = shape(torch.tensor([0, wrong, 1])).contiguous()
    fd = definition(record, X, index)
    if name == "take_along_axis" and wrong == -1:
        assert torch.equal(fd.run([X, index])[0], X.take_along_dim(index, 1))
        return
    with pytest.raises(IndexRangeError) as caught:
        fd.run([X, index])
    text = str(caught.value)
    assert isinstance(caught.value, IndexError)
    assert f"{name}: index {wrong} is out of range for a dim of {size} elements" in text
    assert "test_index_bounds.py" in text


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("name", OPS)
def test_right_indices_are_taken(name, dtype):
    record, shape, size = OPS[name]
    index = shape(torch.tensor([0, size - 1, 1], dtype=dtype)).contiguous()
    (found,) = definition(record, X, index).run([X, index])
    wide = index.long()
    wanted = {
        "index_select": lambda: X.index_select(0, wide),
        "gather": lambda: X.gather(1, wide),
        "take_along_axis": lambda: X.take_along_dim(wide, 1),
        "embedding_fwd": lambda: X[wide],
        "scatter": lambda: X.scatter(0, wide, -X),
    }[name]()
    assert torch.equal(found, wanted)


def test_computed_indices_are_checked_where_they_are_used():
    """Of a block that reaches past the end, what lies behind it is no index."""
    index = torch.tensor([1, 2, 3])

    def record(ops, x, i):
        return ops.index_select(x, ops.sub(i, 1), 0)

    fd = definition(record, X, index)
    assert torch.equal(fd.run([X, index])[0], X)
    with pytest.raises(IndexError, match="index_select: index -1 is out of range"):
        fd.run([X, torch.tensor([1, 0, 3])])
    assert torch.equal(fd.run([X, index])[0], X)


def test_what_a_guard_leaves_out_is_not_checked():
    index = torch.tensor([1, 2])

    def record(ops, x, i):
        rows = ops.index_select(x, ops.pad(i, [1, 1], 0), 0)
        return ops.pad(rows, [0, 0, 1, 1])

    (found,) = definition(record, X, index).run([X, index])
    assert torch.equal(found, torch.nn.functional.pad(X[[0, 1, 2, 0]], (0, 0, 1, 1)))


def _repeated(ops, x):
    return ops.broadcast_in_dim(ops.sum(x, [0]), [3, 4], [1])


ONE_ELEMENT = {
    "index_select": lambda ops, x, i: ops.index_select(_repeated(ops, x), i, 0),
    "gather": lambda ops, x, i: ops.gather(
        _repeated(ops, x), ops.broadcast_in_dim(i, [3, 4], [0]), 0
    ),
    "take_along_axis": lambda ops, x, i: ops.take_along_axis(
        ops.sum(x, [1], keepdim=True), ops.broadcast(i, [False, True]), 1
    ),
    "embedding_fwd": lambda ops, x, i: ops.embedding_fwd(i, ops.max(x, [0], keepdim=True)),
}


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", ONE_ELEMENT)
def test_dims_in_which_all_positions_are_one_element_are_checked(name, reduced):
    """No address has such an index."""

    def record(ops, x, i):
        found = ONE_ELEMENT[name](ops, x, i)
        return ops.sum(found, [0]) if reduced else found

    given = [X, torch.tensor([0, 7, 0])]
    with pytest.raises(IndexError, match=f"{name}: index .* is out of range for a dim of"):
        definition(record, *given).run(given)


def test_dims_of_an_expanded_input_are_checked():
    given = [X[:1].expand(3, 4), torch.tensor([0, 3])]
    fd = definition(lambda ops, x, i: ops.index_select(x, i, 0), *given)
    with pytest.raises(IndexError, match="index_select: index 3 is out of range for a dim of 3"):
        fd.run(given)
    (found,) = fd.run([given[0], torch.tensor([2, 0])])
    assert torch.equal(found, X[[0, 0]])


def test_a_scalar_is_checked_in_such_a_dim():
    with FusionDefinition() as fd:
        x, place = fd.from_pytorch(X), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.select(_repeated(fd.ops, x), place, 0))
    assert torch.equal(fd.run([X, -3])[0], X.sum(0))
    with pytest.raises(IndexError, match="select: index 3 is out of range for a dim of 3"):
        fd.run([X, 3])


EMPTY = {
    "index_select": lambda ops, x, i: ops.index_select(x, i, 0),
    "gather": lambda ops, x, i: ops.gather(x, ops.broadcast(i, [False, True]), 0),
    "take_along_axis": lambda ops, x, i: ops.take_along_axis(x, ops.broadcast(i, [False, True]), 0),
    "embedding_fwd": lambda ops, x, i: ops.embedding_fwd(i, x),
    "scatter": lambda ops, x, i: ops.scatter(x, ops.broadcast(i, [False, True]), x, 0),
    "index_put_accumulate": lambda ops, x, i: ops.index_put_accumulate(
        x, i, ops.add(ops.broadcast(i, [False, True]), ops.sum(x, [0]))
    ),
    "select": lambda ops, x, i: ops.select(x, ops.size(i, 0), 0),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_dim_without_elements_has_no_index(name):
    """Whatever the indices are: a run would have to make an element up."""
    fd = definition(EMPTY[name], X, torch.tensor([0, 1]))
    with pytest.raises(InputShapeError, match=f"{name}: expected .* elements in dim 0") as caught:
        fd.run([torch.empty(0, 4), torch.tensor([0, 1])])
    assert "test_index_bounds.py" in str(caught.value)
    if name != "select":
        fd.run([torch.empty(0, 4), torch.empty(0, dtype=torch.int64)])


@pytest.mark.parametrize("name", ["index_select", "take_along_axis", "embedding_fwd"])
def test_where_nothing_is_read_all_indices_are_right(name):
    given = [torch.empty(2, 0), torch.tensor([7, 9])]
    (found,) = definition(EMPTY[name], *given).validate(given)
    assert found.shape == (2, 0)


def test_one_of_a_dim_by_a_scalar():
    with FusionDefinition() as fd:
        x, place = fd.from_pytorch(X), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.select(x, place, 0))
    assert torch.equal(fd.run([X, 2])[0], X[2])
    assert torch.equal(fd.run([X, -1])[0], X[-1])
    with pytest.raises(IndexError, match="select: index 3 is out of range"):
        fd.run([X, 3])


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", [2**40, -1, -(2**40)])
@pytest.mark.parametrize("name", [name for name in OPS if name != "scatter"])
def test_nothing_outside_is_read_on_a_gpu(name, wrong):
    """Some element of the tensor stands for it; the process goes on."""
    record, shape, size = OPS[name]
    x = X.cuda()
    index = shape(torch.tensor([0, wrong, 1])).contiguous().cuda()
    (found,) = definition(record, x, index).run([x, index])
    assert torch.isin(found, x).all()
    right = index.clamp(0, size - 1)
    if name in ("index_select", "embedding_fwd"):
        assert torch.equal(found[::2], x[right][::2])
    else:
        assert torch.equal(found[:, ::2], x.gather(1, right)[:, ::2])
    torch.cuda.synchronize()
