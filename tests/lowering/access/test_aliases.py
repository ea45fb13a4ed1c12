"""Where outputs lie: views of inputs and of one another, memory orders, writes into inputs."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import (
    BOTH,
    CPU,
    check,
    compare,
    lowered,
    planned,
    poisoned,
    record,
    schedulers,
)
from tritonfuser.frontend.inspect.oracle import reference


def run(body, *inputs, facts=CPU):
    """(lowered, outputs); the inputs are what is written into."""
    found = lowered(record(body, inputs), inputs, facts)
    with poisoned():
        return found, planned(found, inputs, facts).run(list(inputs))


# --- views of inputs ---------------------------------------------------------------------

VIEWS = {
    "itself": lambda fd, x: x,
    "reshape": lambda fd, x: fd.ops.reshape(x, [2, 2, 6]),
    "permute": lambda fd, x: fd.ops.permute(x, [1, 0]),
    "slice": lambda fd, x: fd.ops.slice(x, [1, 2], [3, 5]),
    "broadcast": lambda fd, x: fd.ops.broadcast(x, [True, False, False]),
    "expand": lambda fd, x: fd.ops.expand(fd.ops.broadcast(x, [True, False, False]), [3, 4, 6]),
    "squeeze": lambda fd, x: fd.ops.squeeze(fd.ops.slice(x, [1, 0], [2, 6]), [0]),
    "chain": lambda fd, x: fd.ops.slice(
        fd.ops.permute(fd.ops.reshape(x, [2, 2, 6]), [2, 0, 1]), [1, 0, 1], [4, 2, 2]
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_an_input_is_one(name):
    x = noise(6, 6)[1:5]
    found, (out,) = run(VIEWS[name], x)
    assert schedulers(found) == []
    assert out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    compare([out], reference(record(VIEWS[name], [x]).fusion.ir, [x]), 0)
    x.fill_(7)
    assert (out == 7).all()


def test_an_input_as_output_is_that_buffer():
    x = noise(3, 4)
    _, (first, second) = run(lambda fd, x: (x, x), x)
    assert first is x
    assert second is x


def test_a_copy_of_an_input_is_none():
    x = noise(3, 4)
    _, (out, view) = run(lambda fd, x: (fd.ops.set(x), fd.ops.permute(fd.ops.set(x), [1, 0])), x)
    assert torch.equal(out, x)
    assert torch.equal(view, x.t())
    storages = {t.untyped_storage().data_ptr() for t in (out, view)}
    assert x.untyped_storage().data_ptr() not in storages


def test_a_reshape_that_strides_cannot_express_is_copied():
    x = noise(6, 4).t()
    found, (out,) = run(lambda fd, x: fd.ops.reshape(x, [24]), x)
    assert schedulers(found) == ["pointwise"]
    assert torch.equal(out, x.reshape(24))


# --- views of results --------------------------------------------------------------------


@pytest.mark.parametrize("facts", BOTH, ids=lambda f: f.arch)
def test_views_of_a_result_share_its_buffer(facts):
    def body(fd, x):
        y = fd.ops.exp(x)
        return (
            y,
            fd.ops.permute(y, [1, 0]),
            fd.ops.slice(y, [1, 1], [3, 4]),
            fd.ops.expand(fd.ops.broadcast(y, [True, False, False]), [5, 4, 6]),
        )

    x = noise(4, 6)
    found, outs = run(body, x, facts=facts)
    assert [len(piece.outputs) for piece in found.segmented.segments] == [1]
    assert len({t.untyped_storage().data_ptr() for t in outs}) == 1
    compare(outs, reference(record(body, [x]).fusion.ir, [x]))


def test_a_slice_alone_is_computed_alone():
    def body(fd, x):
        return fd.ops.slice(fd.ops.exp(x), [1, 1], [3, 4])

    found = check(body, noise(4, 6))
    (piece,) = found.segmented.segments
    assert piece.outputs[0].tensor.sizes == (2, 3)


def test_an_expanded_result_is_stored_once():
    def body(fd, x):
        return fd.ops.expand(fd.ops.sum(x, [1], keepdim=True), [4, 9])

    found = check(body, noise(4, 6))
    (piece,) = found.segmented.segments
    assert piece.outputs[0].tensor.numel == 4


def test_a_slice_of_an_expanded_result():
    def body(fd, x):
        wide = fd.ops.expand(fd.ops.broadcast(fd.ops.exp(x), [True, False, False]), [5, 4, 6])
        return fd.ops.slice(wide, [1, 1, 1], [3, 3, 3])

    check(body, noise(4, 6))


# --- memory orders -----------------------------------------------------------------------

ORDERED = {
    "result": (lambda fd, x: fd.ops.exp(x), (2, 3, 4)),
    "input": (lambda fd, x: x, (2, 3, 4)),
    "reduction": (lambda fd, x: fd.ops.sum(x, [1]), (2, 5, 3, 4)),
    "broadcast": (
        lambda fd, x: fd.ops.expand(fd.ops.broadcast(x, [True, False, False]), [2, 3, 4]),
        (3, 4),
    ),
    "running sum": (lambda fd, x: fd.ops.cumsum(x, 1), (2, 3, 4)),
    "size 1": (lambda fd, x: fd.ops.exp(x), (2, 1, 4)),
}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("name", ORDERED)
def test_outputs_have_the_order_that_was_asked_for(name, order):
    inner, shape = ORDERED[name]

    def body(fd, x):
        ordered = fd.ops.stride_order(inner(fd, x), list(order))
        return ordered, fd.ops.add(ordered, 1.0), fd.ops.sum(ordered, [0])

    x = noise(*shape)
    _, outs = run(body, x)
    wanted = reference(record(body, [x]).fusion.ir, [x])
    compare(outs, wanted)
    assert outs[0].stride() == wanted[0].stride()


# --- writes into inputs ------------------------------------------------------------------


def test_a_hidden_write():
    x, y = noise(4, 6), noise(4, 6, seed=1)
    wanted = x + y
    _, outs = run(lambda fd, x, y: fd.add_output(fd.ops.add(x, y), x), x, y)
    assert outs == []
    assert torch.equal(x, wanted)


def test_all_reads_see_the_old_value():
    def body(fd, x, y):
        fd.add_output(fd.ops.add(x, y), x)
        fd.add_output(fd.ops.mul(x, 2.0))
        fd.add_output(fd.ops.sum(x, [1]))

    x, y = noise(4, 6), noise(4, 6, seed=1)
    before = x.clone()
    _, (doubled, total) = run(body, x, y)
    assert torch.equal(x, before + y)
    assert torch.equal(doubled, before * 2)
    torch.testing.assert_close(total, before.sum(1))


@pytest.mark.parametrize(
    "view",
    [
        lambda fd, x: fd.ops.reshape(x, [-1]),
        lambda fd, x: fd.ops.permute(x, [1, 0]),
        lambda fd, x: fd.ops.slice(x, [1, 0], [3, 6]),
        lambda fd, x: fd.ops.expand(x, [2, 4, 6]),
        lambda fd, x: fd.ops.reshape(fd.ops.permute(x, [1, 0]), [8, 3]),
    ],
)
def test_a_view_of_a_written_input_shows_the_old_value(view):
    def body(fd, x, y):
        fd.add_output(view(fd, x))
        fd.add_output(fd.ops.add(x, y), x)
        fd.add_output(view(fd, y))

    x, y = noise(4, 6), noise(4, 6, seed=1)
    before, written = x.clone(), x + y
    _, (seen, other) = run(body, x, y)
    assert torch.equal(x, written)
    (wanted,) = reference(record(lambda fd, x: [view(fd, x)], [x]).fusion.ir, [before])
    assert torch.equal(seen, wanted.float())
    assert other.shape == seen.shape


def test_a_written_result_that_is_returned_is_the_input():
    def body(fd, x, y):
        total = fd.ops.add(x, y)
        fd.add_output(total, x)
        fd.add_output(total)
        fd.add_output(x)

    x, y = noise(4, 6), noise(4, 6, seed=1)
    wanted = x + y
    _, outs = run(body, x, y)
    assert [out.data_ptr() for out in outs] == [x.data_ptr()] * 2
    assert torch.equal(x, wanted)


@pytest.mark.parametrize(
    "crossed",
    [
        lambda fd, x, y: (y, x),
        lambda fd, x, y: (fd.ops.tanh(y), fd.ops.sin(x)),
        lambda fd, x, y: (fd.ops.permute(y, [1, 0]), fd.ops.permute(x, [1, 0])),
        lambda fd, x, y: (fd.ops.reshape(y, [5, 5]), fd.ops.add(x, y)),
    ],
)
def test_two_inputs_written_crosswise(crossed):
    def body(fd, x, y):
        to_x, to_y = crossed(fd, x, y)
        fd.add_output(to_x, x)
        fd.add_output(to_y, y)

    x, y = noise(5, 5), noise(5, 5, seed=1)
    fd = record(body, [x, y])
    returned = record(lambda fd, x, y: crossed(fd, x, y), [x, y])
    wanted = reference(returned.fusion.ir, [x.clone(), y.clone()], double=False)
    planned(lowered(fd, [x, y], CPU), [x, y], CPU).run([x, y])
    compare([x, y], wanted, 1e-6)


@pytest.mark.parametrize("way", ["run", "plan"])
def test_inputs_that_share_memory_are_read_before_any_is_written(way):
    """In the order of ``add_output``: what two outputs write holds the later one."""

    def outcome(body, *places):
        memory = torch.arange(12.0)
        inputs = [memory[place] for place in places]
        fd = record(body, inputs)
        call = fd.run if way == "run" else fd.plan(inputs)
        call(inputs)
        return memory.tolist()

    def shifted(fd, x, y):
        fd.add_output(fd.ops.slice(x, [1], [5]), y)

    def both(fd, x, y):
        fd.add_output(fd.ops.neg(x), x)
        fd.add_output(fd.ops.mul(y, 2.0), y)

    def written_before_its_view_is_stored(fd, x, y, z):
        fd.add_output(fd.ops.neg(z), y)
        fd.add_output(fd.ops.slice(x, [1], [5]), z)

    whole, rest = slice(0, 6), [6.0, 7, 8, 9, 10, 11]
    assert outcome(shifted, whole, slice(2, 6)) == [0, 1, 1, 2, 3, 4, *rest]
    assert outcome(both, slice(0, 4), slice(2, 6)) == [0, -1, 4, 6, 8, 10, *rest]
    found = outcome(written_before_its_view_is_stored, whole, slice(0, 4), slice(6, 10))
    assert found == [-6, -7, -8, -9, 4, 5, 1, 2, 3, 4, 10, 11]


def test_an_input_is_written_by_its_own_transpose():
    """copy_() between overlapping memory would fail, or worse."""
    x = noise(5, 5)
    wanted = x.t().clone()
    run(lambda fd, x: fd.add_output(fd.ops.permute(x, [1, 0]), x), x)
    assert torch.equal(x, wanted)


def test_a_piece_of_an_input_moves_within_it():
    def body(fd, x):
        head = fd.ops.slice(x, [0], [9])
        fd.add_output(fd.ops.cat([fd.ops.slice(x, [9], [10]), head], 0), x)

    x = noise(10)
    wanted = torch.roll(x, 1)
    run(body, x)
    assert torch.equal(x, wanted)


@pytest.mark.parametrize("name", ["transposed", "strided"])
def test_an_input_that_is_not_contiguous_is_written(name):
    x = {"transposed": noise(6, 4).t(), "strided": noise(8, 12)[::2, ::2]}[name]
    y = noise(4, 6, seed=1)
    wanted = x + y
    run(lambda fd, x, y: fd.add_output(fd.ops.add(x, y), x), x, y)
    assert torch.equal(x, wanted)


def test_a_written_input_is_broadcast_elsewhere():
    def body(fd, running, x):
        mean = fd.ops.mul(fd.ops.sum(x, [0]), 0.25)
        fd.add_output(fd.ops.add(fd.ops.mul(running, 0.9), fd.ops.mul(mean, 0.1)), running)
        fd.add_output(fd.ops.sub(x, running))

    running, x = noise(6), noise(4, 6)
    before = running.clone()
    _, (out,) = run(body, running, x)
    torch.testing.assert_close(running, before * 0.9 + x.mean(0) * 0.1)
    assert torch.equal(out, x - before)


# --- inputs of all layouts ---------------------------------------------------------------

LAYOUTS = {
    "transposed": noise(6, 4).t(),
    "strided": noise(8, 12)[::2, ::2],
    "expanded": noise(1, 6).expand(4, 6),
    "one number": noise(1).expand(4, 6),
    "overlapping": noise(20).as_strided((4, 6), (3, 1)),
    "with an offset": noise(25)[1:].reshape(4, 6),
    "last of a buffer": noise(10, 6)[6:],
    "gaps between rows": noise(4, 9)[:, :6],
}


@pytest.mark.parametrize("facts", BOTH, ids=lambda f: f.arch)
@pytest.mark.parametrize("name", LAYOUTS)
def test_inputs_of_any_layout(name, facts):
    def body(fd, x):
        total = fd.ops.sum(x, [1], keepdim=True)
        return fd.ops.tanh(x), fd.ops.sum(x, [0]), fd.ops.div(x, fd.ops.add(total, 100.0))

    check(body, LAYOUTS[name], facts=facts)
