"""Outputs of programs written for nvFuser: memory orders, views of inputs, inputs written."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.compat.programs import equal, noise, ran, record, run
from tritonfuser.compat.nvfuser_direct import DataType

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType
X = noise(2, 3, 4)


def memory_order(x):
    """For each dim its place in memory, 0 the fastest."""
    inside_out = sorted(range(x.dim()), key=lambda dim: (x.stride(dim), -dim))
    return [inside_out.index(dim) for dim in range(x.dim())]


SOURCES = {
    "an input": (lambda ops, t: t, X),
    "computed": (lambda ops, t: ops.neg(t), -X),
    "permuted": (lambda ops, t: ops.permute(t, [2, 0, 1]), X.permute(2, 0, 1)),
    "sliced": (lambda ops, t: ops.slice(t, [0, 0, 1], [2, 3, 4]), X[..., 1:]),
    "reshaped": (lambda ops, t: ops.reshape(t, [4, 3, 2]), X.reshape(4, 3, 2)),
    "broadcast": (
        lambda ops, t: ops.broadcast_in_dim(ops.max(t, [1]), [2, 3, 4], [0, 2]),
        X.amax(1, True).expand(2, 3, 4),
    ),
    "reduced": (lambda ops, t: ops.min(ops.expand(t, [5, 2, 3, 4]), [0]), X),
    "a matrix product": (lambda ops, t: ops.matmul(t, ops.permute(t, [0, 2, 1])), X @ X.mT),
}


@pytest.mark.parametrize("source", SOURCES)
def test_stride_order_in_all_permutations(source):
    call, wanted = SOURCES[source]
    for order in itertools.permutations(range(3)):
        negative = [place - 3 for place in order]
        found = ran(
            lambda ops, t, o=order, n=negative: [
                ops.stride_order(call(ops, t), o),
                ops.stride_order(call(ops, t), stride_order=n),
            ],
            X,
        )
        for one in found:
            equal(one, wanted, within=1e-5)
            assert memory_order(one) == list(order)
            assert one.untyped_storage().nbytes() == one.nbytes


def test_one_value_in_several_orders():
    def make(fd):
        t = fd.ops.neg(fd.from_pytorch(X))
        fd.add_output(t)
        for order in ([0, 1, 2], [2, 0, 1], []):
            fd.add_output(fd.ops.stride_order(t, order))

    outputs = run(make, [X])
    for one in outputs:
        equal(one, -X)
    assert [one.stride() for one in outputs[1:3]] == [(1, 2, 6), (12, 1, 3)]
    for order in ([0, 1], [0, 0, 1], [0, 1, 3]):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, o=order: ops.stride_order(t, o), X)


VIEWS = {
    "reshape": (lambda ops, t: ops.reshape(t, [6, 4]), lambda x: x.view(6, 4)),
    "permute": (lambda ops, t: ops.permute(t, [1, 0, 2]), lambda x: x.permute(1, 0, 2)),
    "slice": (lambda ops, t: ops.slice(t, [0, 1, 0], [2, 3, 4]), lambda x: x[:, 1:]),
    "broadcast": (lambda ops, t: ops.broadcast(t, [True] + [False] * 3), lambda x: x[None]),
    "expand": (lambda ops, t: ops.expand(t, [5, 2, 3, 4]), lambda x: x.expand(5, 2, 3, 4)),
    "itself": (lambda ops, t: t, lambda x: x),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_input_lies_in_it(view):
    call, wanted = VIEWS[view]
    found = ran(call, X)
    assert found.data_ptr() == wanted(X).data_ptr()
    assert found.stride() == wanted(X).stride()
    equal(found, wanted(X))


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_input_that_is_written_shows_the_old_value(view):
    """Unless it is the input itself: then it is the buffer that was written."""
    call, wanted = VIEWS[view]

    def make(fd):
        t = fd.from_pytorch(X)
        fd.add_output(call(fd.ops, t))
        fd.add_output(fd.ops.add(t, 1.0), t)

    x = X.clone()
    (found,) = run(make, [x])
    assert torch.equal(x, X + 1)
    equal(found, X + 1 if view == "itself" else wanted(X))
    assert (found.data_ptr() == x.data_ptr()) == (view == "itself")


@pytest.mark.parametrize("calls", ["w", "wo", "ow", "woo", "oow", "owo", "wooo", "owoo"])
def test_what_is_written_is_returned_as_often_as_it_is_added_plainly(calls):
    """w: add_output(r, t), o: add_output(r). Each output returned is the input's buffer."""

    def make(fd):
        t = fd.define_tensor([-1], True)
        result = fd.ops.add(t, 1.0)
        for call in calls:
            fd.add_output(result, t) if call == "w" else fd.add_output(result)

    x = noise(4)
    outputs = run(make, [x])
    assert torch.equal(x, noise(4) + 1)
    assert [one.data_ptr() for one in outputs] == [x.data_ptr()] * calls.count("o")


def test_a_hidden_output_moves_to_where_it_is_added_plainly():
    def make(fd):
        t = fd.define_tensor([-1], True)
        result = fd.ops.add(t, 1.0)
        fd.add_output(result, t)
        fd.add_output(fd.ops.neg(t))
        fd.add_output(result)

    x = noise(4)
    negative, written = run(make, [x])
    assert torch.equal(negative, -noise(4))
    assert written.data_ptr() == x.data_ptr()


def test_all_reads_see_the_old_value():
    def make(fd):
        ops, t = fd.ops, fd.define_tensor([-1], True)
        fd.add_output(ops.add(t, 1.0), alias_input=t)
        fd.add_output(ops.mul(ops.sum(t), t))
        fd.add_output(ops.neg(ops.broadcast_in_dim(t, [2, t.size(0)], [1])))
        fd.add_output(ops.cat([t, t], 0))

    x, before = noise(4), noise(4)
    scaled, spread, joined = run(make, [x])
    assert torch.equal(x, before + 1)
    equal(scaled, before.sum() * before, within=1e-6)
    equal(spread, -before.expand(2, 4))
    equal(joined, torch.cat([before, before]))


@pytest.mark.parametrize("computed", [False, True])
def test_two_inputs_are_updated_crosswise(computed):
    def make(fd):
        t, u = fd.define_tensor([-1], True), fd.define_tensor([-1], True)
        fd.add_output(fd.ops.add(t, u) if computed else t, u)
        fd.add_output(fd.ops.mul(t, u) if computed else u, t)

    x, y = noise(5), noise(5, seed=1)
    sum_, product = (x + y, x * y) if computed else (x.clone(), y.clone())
    assert run(make, [x, y]) == []
    assert torch.equal(y, sum_)
    assert torch.equal(x, product)


def test_an_input_with_gaps_is_written():
    whole = noise(4, 6)
    x = whole[:, ::2].t()
    wanted = x + x.sum(0, True)

    def make(fd):
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, fd.ops.sum(t, [0], True)), t)

    assert record(make).execute([x]) == []
    equal(x, wanted, within=1e-6)
    assert torch.equal(whole[:, 1::2], noise(4, 6)[:, 1::2])


def test_running_statistics():
    """A batch norm: a half input, a momentum, an output beside what is written."""
    x, running = noise(6, 4, dtype=torch.float16), noise(4, seed=1)

    def make(fd):
        ops, t, r = fd.ops, fd.from_pytorch(x), fd.from_pytorch(running)
        var, mean = ops.var_mean(ops.cast(t, D.Float), [0], 0, True)
        fd.add_output(ops.add(ops.mul(ops.squeeze(mean, [0]), 0.1), ops.mul(r, 0.9)), r)
        centred = ops.mul(ops.sub(t, mean), ops.rsqrt(ops.add(var, 1e-5)))
        fd.add_output(ops.cast(centred, D.Half))

    before = running.clone()
    (found,) = run(make, [x, running])
    wide = x.double()
    wanted = torch.nn.functional.batch_norm(wide, None, None, training=True).half()
    equal(found, wanted, within=1e-2)
    equal(running, (wide.mean(0) * 0.1 + before * 0.9).float(), within=1e-5)


def test_a_narrow_input_is_written_by_a_wide_result():
    x = noise(4, dtype=torch.float16)
    wanted = (x.float() + 1).half()

    def make(fd):
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, 1.0), t)

    run(make, [x])
    assert torch.equal(x, wanted)


def test_writes_that_are_refused():
    def make(fd, what):
        t, u = fd.define_tensor([-1], True), fd.define_tensor([-1, -1], True)
        result = fd.ops.neg(t)
        {
            "rank": lambda: fd.add_output(result, u),
            "no input": lambda: fd.add_output(result, fd.ops.exp(t)),
            "no tensor": lambda: fd.add_output(1.0),
            "a number": lambda: fd.add_output(result, 1.0),
        }[what]()

    for what, kind in (
        ("rank", RuntimeError),
        ("no input", RuntimeError),
        ("no tensor", TypeError),
        ("a number", TypeError),
    ):
        with pytest.raises(kind):
            record(lambda fd, w=what: make(fd, w))

    def sizes(fd):
        t, u = fd.define_tensor([-1], True), fd.define_tensor([-1], True)
        fd.add_output(fd.ops.neg(t), u)

    for first, second in ((3, 4), (1, 4), (4, 1)):
        with pytest.raises(RuntimeError):
            record(sizes).execute([noise(first), noise(second)])


@pytest.mark.parametrize("dims", list(itertools.permutations(range(3))))
def test_inputs_of_any_order(dims):
    """Whatever strides come out, the printed definition gives the same."""
    x = X.permute(dims)
    found = ran(
        lambda ops, t: [ops.neg(t), ops.max(t, [1]), ops.sub(t, ops.max(t, [0], True)), t], x
    )
    for one, wanted in zip(found, (-x, x.amax(1), x - x.amax(0, True), x), strict=True):
        equal(one, wanted)
    assert found[3] is x
