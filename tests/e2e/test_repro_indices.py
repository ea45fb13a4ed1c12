"""Repro scripts of definitions that index: their inputs are drawn so that the scripts run."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.e2e.ops.every_op import calls_of
from tritonfuser import DataType, FusionDefinition

LONG = 300
"""More elements than are written out."""
TABLE = torch.randn(7, 5)


def definition(body, inputs):
    with FusionDefinition() as fd:
        fd.add_output(body(fd, *(fd.from_pytorch(x, static_sizes=True) for x in inputs)))
    return fd


def drawn(fd, inputs):
    """The inputs of the script, which is run."""
    scope: dict = {}
    exec(fd.repro_script_for(inputs), scope)
    return scope["inputs"]


def indices(size, count=LONG, dtype=torch.int64):
    return (torch.arange(count) % size).to(dtype)


def taken(fd, x, i):
    return fd.ops.index_select(x, i, 0)


BODIES = {
    "index_select": (taken, indices(7)),
    "gather": (lambda fd, x, i: fd.ops.gather(x, i, 0), indices(7).reshape(-1, 5)),
    "take_along_axis": (
        lambda fd, x, i: fd.ops.take_along_axis(x, i, 1),
        indices(5, 7 * LONG).reshape(7, -1),
    ),
    "embedding_fwd": (lambda fd, x, i: fd.ops.embedding_fwd(i, x), indices(7).reshape(3, -1)),
    "scatter": (
        lambda fd, x, i: fd.ops.scatter(x, i, fd.ops.full([60, 5], 1.0, DataType.Float), 0),
        indices(7).reshape(-1, 5),
    ),
    "index_put_accumulate": (
        lambda fd, x, i: fd.ops.index_put_accumulate(
            x, i, fd.ops.full([LONG, 5], 1.0, DataType.Float)
        ),
        indices(7),
    ),
    "short": (taken, torch.tensor([6, 0, 6])),
    "none": (taken, torch.tensor([], dtype=torch.int64)),
    "number": (taken, torch.tensor(6)),
    "int32": (taken, indices(7, dtype=torch.int32)),
    "one": (taken, torch.full((LONG,), 6)),
    "strided": (taken, indices(7, 2 * LONG)[::2]),
    "expanded": (taken, torch.tensor(6).expand(LONG)),
    "bools": (lambda fd, x, i: taken(fd, x, fd.ops.add(i, 5)), torch.arange(LONG) % 2 == 0),
    "no true": (lambda fd, x, i: taken(fd, x, fd.ops.add(i, 6)), torch.zeros(LONG).bool()),
    "floats": (lambda fd, x, i: taken(fd, x, fd.ops.cast(i, DataType.Int)), indices(7) + 0.25),
    "halves": (
        lambda fd, x, i: taken(fd, x, fd.ops.cast(i, DataType.Int)),
        indices(7, 2 * LONG, torch.float16)[::2],
    ),
    "one float": (
        lambda fd, x, i: taken(fd, x, fd.ops.cast(i, DataType.Int)),
        torch.full((LONG,), 6.5),
    ),
    "moved": (lambda fd, x, i: taken(fd, x, fd.ops.sub(i, 100)), indices(7) + 100),
    "scaled": (lambda fd, x, i: taken(fd, x, fd.ops.mul(i, 3)), indices(3)),
    "left out": (
        lambda fd, x, i: taken(fd, x, fd.ops.where(fd.ops.lt(i, 0), 0, i)),
        torch.where(indices(3) == 0, -100, indices(7)),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_script_that_indexes_runs(name):
    body, index = BODIES[name]
    fd = definition(body, [TABLE, index])
    fd.run([TABLE, index])
    _, found = drawn(fd, [TABLE, index])
    assert (found.shape, found.stride()) == (index.shape, index.stride())
    assert found.dtype is index.dtype
    if index.numel():
        assert index.min() <= found.min() and found.max() <= index.max() + 1


@pytest.mark.parametrize("op", ["grouped_mm", "index_put_accumulate", "scatter", "gather"])
def test_the_calls_of_the_op_tables_tests_run(op):
    for call in calls_of(op):
        tensors = [x for x in call.args if isinstance(x, torch.Tensor)]
        with FusionDefinition() as fd:
            given = iter([fd.from_pytorch(x) for x in tensors])
            args = [next(given) if isinstance(x, torch.Tensor) else x for x in call.args]
            fd.add_output(getattr(fd.ops, op)(*args, **call.kwargs))
        drawn(fd, tensors)


def test_short_ones_are_written_out():
    """As are ends of groups, and what they are summed of."""
    counts = torch.tensor([3, 0, 5])
    rows, weights = torch.randn(8, 4), torch.randn(3, 4, 2)

    def body(fd, x, w, n):
        return fd.ops.grouped_mm(x, w, fd.ops.cast(fd.ops.cumsum(n, 0), DataType.Int32))

    fd = definition(body, [rows, weights, counts])
    script = fd.repro_script_for([rows, weights, counts])
    assert "    torch.tensor([3, 0, 5], dtype=torch.int64, device='cpu'),\n" in script
    assert torch.equal(drawn(fd, [rows, weights, counts])[2], counts)


def test_inputs_without_data_are_drawn_in_the_range_of_the_dims():
    body, index = BODIES["index_select"]
    fd = definition(lambda fd, x, i: fd.ops.add(body(fd, x, i), 1.0), [TABLE, index])
    wanted = "torch.testing.make_tensor((300,), dtype=torch.int64, device='{}', low=0, high=7)"
    meta = [x.to("meta") for x in (TABLE, index)]
    assert wanted.format("meta") in fd.repro_script_for(meta)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(x) for x in (TABLE, index)]
        script = fd.repro_script_for(fake)
    assert wanted.format("cpu") in script
    exec(script, {})


def test_the_least_of_several_dims_counts():
    def body(fd, x, y, i):
        return fd.ops.add(taken(fd, x, i), taken(fd, y, i))

    given = [torch.randn(7, 5), torch.randn(4, 5), indices(4)]
    fd = definition(body, given)
    meta = [x.to("meta") for x in given]
    assert "device='meta', low=0, high=4)" in fd.repro_script_for(meta)
    drawn(fd, given)


def test_other_inputs_are_as_nvfuser_writes_them():
    body, index = BODIES["index_select"]
    fd = definition(body, [TABLE, index])
    script = fd.repro_script_for([TABLE, index])
    assert "    torch.testing.make_tensor((7, 5), dtype=torch.float32, device='cpu'),\n" in script


def test_inputs_that_do_not_fit_still_have_a_script():
    body, index = BODIES["index_select"]
    fd = definition(body, [TABLE, index])
    for inputs in ([TABLE], [TABLE, 3], [index, index], [TABLE.to_sparse().to_dense(), TABLE]):
        assert fd.repro_script_for(inputs).endswith("fd.run(inputs)\n")


def test_the_last_script_has_the_inputs_before_the_run():
    """A run may write into the indices."""
    index = indices(7)
    with FusionDefinition() as fd:
        x, i = fd.from_pytorch(TABLE), fd.from_pytorch(index)
        fd.add_output(taken(fd, x, i))
        fd.add_output(fd.ops.add(i, 100), i)
    fd.run([TABLE, index], save_repro_inputs=True)
    assert index.min() == 100
    exec(fd.last_repro_script(), {})
