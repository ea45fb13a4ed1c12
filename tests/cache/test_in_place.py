"""Outputs that replace an input: stored there by kernels where that is right, else copied."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from tests.cache.in_place import (
    adam,
    adam_inputs,
    assert_replaces,
    drawn,
    recorded,
    running_statistics,
    statistics_inputs,
)
from tests.lowering.graphs import noise
from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering.emit.in_place import launched_in_place


def in_place(fd, inputs):
    """The number of outputs that are stored where an input is."""
    return fd.plan(inputs).text.count("if is_apart else")


def test_an_optimizer_takes_no_memory_and_copies_nothing(monkeypatch):
    inputs = adam_inputs(40, 33)
    fd = assert_replaces(adam, inputs)
    assert in_place(fd, inputs) == 3

    def refused(*given, **named):
        raise AssertionError("memory or a copy")

    monkeypatch.setattr(torch, "empty_strided", refused)
    monkeypatch.setattr(torch.Tensor, "copy_", refused)
    fd.run(inputs)
    with pytest.raises(AssertionError, match="memory or a copy"):
        fd.run([*inputs[:2], inputs[3], inputs[3]])


def test_torch_is_told():
    """Autograd refuses a backward pass that would need what has been overwritten."""
    inputs = adam_inputs(4, 5)
    fd = recorded(adam, inputs, replaces=True)
    before = [x._version for x in inputs]
    fd.run(inputs)
    assert [x._version > v for x, v in zip(inputs, before, strict=True)] == [1, 0, 1, 1]
    x = noise(4, 4).requires_grad_()
    saved = x.clone()
    loss = saved.square().sum()
    twice = recorded(lambda fd, t: [(fd.ops.mul(t[0], 2.0), 0)], [saved], replaces=True)
    twice.run([saved])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_same_tensor_is_returned():
    x = noise(8, 8)
    fd = recorded(lambda fd, t: [(fd.ops.mul(t[0], 2.0), 0)], [x], replaces=True)
    expected = x * 2
    with torch.no_grad():
        fd.run([x])
    torch.testing.assert_close(x, expected)


def test_parameters_and_tensors_of_inference():
    weight = torch.nn.Parameter(noise(6, 6))
    expected = weight.detach() * 2
    fd = recorded(lambda fd, t: [(fd.ops.mul(t[0], 2.0), 0)], [weight], replaces=True)
    assert in_place(fd, [weight])
    fd.run([weight])
    torch.testing.assert_close(weight.detach(), expected)
    with torch.inference_mode():
        x = noise(6, 6)
        expected = x * 2
        fd.run([x])
        assert torch.equal(x, expected)


WRITTEN = {
    "in place": (lambda fd, x: fd.ops.mul(x, 2.0), 0),
    "not aligned": (lambda fd, x: fd.ops.mul(x, 2.0), 1),
    "a view": (lambda fd, x: fd.ops.permute(x, [1, 0]), 0),
    "by torch": (lambda fd, x: fd.ops.matmul(x, x), 0),
}


@pytest.mark.parametrize("kind", ["inference", "leaf"])
@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.filterwarnings("ignore:input 0 requires grad")
def test_what_no_op_of_torch_may_write(how, kind):
    """Memory is written, by kernels or by a copy; nothing ends in an error when it is done."""
    define, offset = WRITTEN[how]

    def given(device="cpu"):
        with torch.inference_mode(kind == "inference"):
            x = torch.arange(20.0, device=device)[offset : offset + 16].view(4, 4)
        return x.requires_grad_() if kind == "leaf" else x

    replaced = lambda fd, t: [(define(fd, t[0]), 0)]  # noqa: E731
    (expected,) = recorded(replaced, [given()], replaces=False).run([given().detach()])
    fd = recorded(replaced, [given()], replaces=True)
    for run in (fd.run, fd.run, fd.plan([given()])):
        x = given()
        run([x])
        assert torch.equal(x, expected)
    fd.run([given("meta")])


def test_results_put_into_tensors_of_inference():
    fd = recorded(lambda fd, t: [(fd.ops.matmul(t[0], t[0]), 0)], [noise(4, 4)], replaces=False)
    x = noise(4, 4)
    with torch.inference_mode():
        out = torch.empty(4, 4)
    fd.plan([x])([x], out=[out])
    torch.testing.assert_close(out, x @ x)


def overlapping(shift):
    """Two windows of one memory, some elements apart."""
    memory = noise(40)
    return [memory[shift : shift + 16], memory[4:20]]


@pytest.mark.parametrize("shift", [0, 4, 8, 20, 24])
def test_inputs_that_overlap(shift):
    """What is read has the elements of before the run, wherever it lies."""

    def define(fd, given):
        x, y = given
        return [(fd.ops.add(fd.ops.mul(x, 2.0), y), 0)]

    x, y = overlapping(shift)
    apart = overlapping(20)
    fd = recorded(define, apart, replaces=True)
    fd.run(apart)  # the fast path is there before the other inputs come
    expected = x * 2 + y
    fd.run([x, y])
    torch.testing.assert_close(x, expected)


def test_one_tensor_given_twice():
    def define(fd, given):
        x, y = given
        return [(fd.ops.add(fd.ops.sum(y, [0], keepdim=True), x), 0)]

    x = noise(9, 10)
    fd = recorded(define, [x, x.clone()], replaces=True)
    fd.run([x.clone(), noise(9, 10, seed=3)])
    expected = x.sum(0, keepdim=True) + x
    fd.run([x, x])
    torch.testing.assert_close(x, expected)


@pytest.mark.parametrize("shift", [0, 2])
def test_of_two_replaced_inputs_that_overlap_the_later_output_shows(shift):
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.add(x, 1.0), alias_input=x)
        fd.add_output(fd.ops.mul(y, 10.0), alias_input=y)
    memory = torch.arange(8.0)
    before, length = memory.clone(), 8 - shift
    fd.run([memory[:length], memory[shift:]])
    assert torch.equal(memory[:shift], before[:shift] + 1)
    assert torch.equal(memory[shift:], before[shift:] * 10)


def test_crosswise():
    """Each result is of what the other one replaces."""

    def define(fd, given):
        x, y = given
        return [(fd.ops.mul(y, 2.0), 0), (fd.ops.neg(x), 1)]

    assert_replaces(define, [noise(33, 5), noise(33, 5, seed=2)])


STORED = {
    "moved": (lambda fd, t: [(fd.ops.permute(t[0], [1, 0]), 0)], 0),
    "read at another place": (
        lambda fd, t: [(fd.ops.add(fd.ops.permute(t[0], [1, 0]), t[0]), 0)],
        0,
    ),
    "crosswise": (lambda fd, t: [(fd.ops.exp(t[1]), 0), (fd.ops.add(t[0], 1.0), 1)], 2),
    "not computed from what is there": (lambda fd, t: [(fd.ops.mul(t[0], 0.0), 0)], 1),
    "not read": (lambda fd, t: [(fd.ops.exp(t[1]), 0)], 1),
    "both": (lambda fd, t: [(fd.ops.exp(t[1]), 0), (fd.ops.add(t[0], t[1]), 1)], 2),
    "rows": (lambda fd, t: [(fd.ops.add(t[0], fd.ops.sum(t[0], [1], True)), 0)], 1),
}
"""Definitions, with the number of outputs that kernels may store where the input is."""


@pytest.mark.parametrize("name", STORED)
def test_where_results_are_stored(name):
    define, count = STORED[name]
    inputs = [noise(24, 24), noise(24, 24, seed=1)]
    assert in_place(assert_replaces(define, inputs), inputs) == count


def counted(fd, given):
    """A batch norm counts its calls in a kernel over the whole image."""
    count, x, _ = given
    return [fd.ops.exp(x)], fd.ops.add(count, 1)


def counted_twice(fd, given):
    """What the count was is in the other result too."""
    count, x, _ = given
    return [fd.ops.add(x, fd.ops.cast(count, DataType.Float))], fd.ops.add(count, 1)


def counted_by_table(fd, given):
    """The new count may lie outside of the table."""
    count, x, table = given
    following = fd.ops.gather(table, fd.ops.reshape(count, [1]), 0)
    return [fd.ops.exp(x)], fd.ops.reshape(following, [])


@pytest.mark.parametrize(
    ("define", "shape", "after", "replaced"),
    [
        (counted, (), 4, True),
        (counted, (64,), 4, True),
        (counted_twice, (), 4, False),
        (counted_by_table, (), 18, False),
    ],
)
def test_small_results_of_large_kernels(define, shape, after, replaced):
    """Each program loads the count, and one of them stores the next one."""
    count, x = torch.full(shape, 3), noise(3000, 64)
    inputs = [count, x, torch.arange(3, 23, 5)]
    with FusionDefinition() as fd:
        given = [fd.from_pytorch(each) for each in inputs]
        others, result = define(fd, given)
        fd.add_output(result, given[0])
        for other in others:
            fd.add_output(other)
    (kernel,) = fd.kernels(inputs, arch="sm_90")
    assert [target.name for _, target in kernel.in_place] == ["tv0"] * replaced
    (made,) = fd.run(inputs)
    expected = x + 3 if define is counted_twice else x.exp()
    torch.testing.assert_close(made, expected)
    assert count.tolist() == torch.full(shape, after).tolist()


def layouts():
    """Targets that are no buffer as a plan makes them."""
    wide = noise(16, 32)
    memory = noise(16 * 16 + 1)
    return {
        "transposed": noise(16, 16).t(),
        "a part of a wider tensor": wide[:, :16],
        "misaligned": memory[1:].view(16, 16),
    }


@pytest.mark.parametrize("name", layouts())
def test_inputs_that_lie_otherwise(name):
    """A result is copied there; it is not computed from what it replaces."""
    target, x = layouts()[name], noise(16, 16, seed=4)
    with FusionDefinition() as fd:
        given, other = fd.from_pytorch(target), fd.from_pytorch(x)
        fd.add_output(fd.ops.exp(other), given)
    assert not in_place(fd, [target, x])
    fd.run([target, x])
    torch.testing.assert_close(target, x.exp())


def test_an_aligned_input_comes_first():
    """The kernel for it is not run on one that starts between multiples of 16 bytes."""
    memory = noise(16 * 16 + 1)
    fd = recorded(lambda fd, t: [(fd.ops.exp(t[1]), 0)], [noise(16, 16)] * 2, replaces=True)
    x = noise(16, 16, seed=4)
    for target in (memory[:-1].view(16, 16), memory[1:].view(16, 16)):
        fd.run([target, x])
        torch.testing.assert_close(target, x.exp())


def test_threads_wait_before_they_store():
    """What is stored may not depend on what is loaded, once it is compiled."""

    def define(fd, given):
        x, mask = given
        other = fd.ops.cast(fd.ops.where(mask, x, 1), DataType.Double)
        fd.add_output(other)
        return [(fd.ops.mul(x, 0), 0)]

    x = torch.ones(64, 256, dtype=torch.int32)
    inputs = [x, torch.ones(64, 256, dtype=torch.bool)]
    fd = recorded(define, inputs, replaces=True)
    (kernel,) = fd.kernels(inputs, arch="sm_90")
    lines = kernel.text.splitlines()
    load = next(n for n, line in enumerate(lines) if "tv0 = tl.load" in line)
    store = next(
        n
        for n, line in enumerate(lines)
        if f"tl.store({kernel.in_place[0][0].name}_ptr" in line.replace("tl.max_contiguous(", "")
    )
    assert load < lines.index("    tl.debug_barrier()") < store
    fd.run(inputs)
    assert not x.any()


def test_an_index_out_of_range_leaves_inputs_alone():
    """The interpreter finds it in the middle of a kernel."""
    n = 3000
    x, table, index = noise(n), noise(n, seed=2), torch.arange(n)
    index[-1] = n
    with FusionDefinition() as fd:
        given, source, places = (fd.from_pytorch(t) for t in (x, table, index))
        fd.add_output(fd.ops.add(given, fd.ops.gather(source, places, 0)), given)
    before = x.clone()
    with pytest.raises(IndexError):
        fd.run([x, table, index])
    assert torch.equal(x, before)


@pytest.mark.parametrize("sizes", [(40, 9), (300, 33)])
def test_running_statistics(sizes):
    assert_replaces(running_statistics, statistics_inputs(*sizes))


def test_a_view_of_another_input():
    """It may have to be copied before that is changed: memory that may not be there."""

    def define(fd, given):
        return [(fd.ops.reshape(given[2], [12, 48]), 1), (fd.ops.mul(given[0], 2.0), 0)]

    inputs = [noise(24, 24), noise(12, 48), noise(24, 24, seed=3)]
    assert not in_place(assert_replaces(define, inputs), inputs)


VIEWS = {
    "permuted": lambda ops, x: ops.permute(x, [1, 0]),
    "reshaped": lambda ops, x: ops.reshape(x, [x.size(0) * x.size(1)]),
    "cut": lambda ops, x: ops.slice(x, [0, 0], [4, 5]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("shift", [0, 3, 36])
def test_a_returned_view_of_an_input_that_shares_memory_with_a_replaced_one(name, shift):
    """It has the elements of before the run; where nothing is shared it is still a view."""
    memory = noise(80)
    x, y = memory[:36].view(6, 6), memory[shift : shift + 36].view(6, 6)
    with FusionDefinition() as fd:
        given, other = fd.from_pytorch(x), fd.from_pytorch(y)
        fd.add_output(fd.ops.neg(other), other)
        fd.add_output(VIEWS[name](fd.ops, given))
    for _ in range(2):
        before, expected = x.clone(), -y
        (made,) = fd.run([x, y])
        torch.testing.assert_close(y, expected, rtol=0, atol=0)
        torch.testing.assert_close(made, fd.run([before, y.clone()])[0], rtol=0, atol=0)
    assert (made.data_ptr() == x.data_ptr()) == (shift == 36)


def test_a_run_without_memory_leaves_inputs_alone(monkeypatch):
    """Whatever allocation fails, those of kernels behind the one that could store there too."""
    x, y = noise(24, 24), noise(70, 3)
    with FusionDefinition() as fd:
        given, other = fd.from_pytorch(x), fd.from_pytorch(y)
        fd.add_output(fd.ops.add(given, 1.0), given)
        fd.add_output(fd.ops.sum(fd.ops.exp(fd.ops.sum(other, [0])), [0]))
    fd.run([x.clone(), y])
    empty, before = torch.empty_strided, x.clone()

    def limited(*given, **named):
        if not left:
            raise torch.OutOfMemoryError
        left.pop()
        return empty(*given, **named)

    monkeypatch.setattr(torch, "empty_strided", limited)
    for count in range(20):
        left = [None] * count
        try:
            fd.run([x, y])
        except torch.OutOfMemoryError:
            assert torch.equal(x, before)
        else:
            break
    assert count > 1 and torch.equal(x, before + 1)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_definitions(first):
    """Some outputs are in place and some are copied; all are right."""
    found = Counter()
    for seed in range(first, first + 20):
        inputs = [noise(24, 24, seed=k) for k in range(3)]
        fd = assert_replaces(drawn(seed), inputs)
        made = in_place(fd, inputs)
        found.update(stored=made, copied=len(fd.fusion.ir.outputs) - made)
    assert found["stored"] > 5 and found["copied"] > 5


def test_a_launch_of_several_segments():
    """None of them loads what another one replaces: their programs run at once."""
    own, other, apart = (SimpleNamespace(inputs=names) for names in (("x",), ("x", "y"), ("y",)))
    pair = ("made", "x")
    assert launched_in_place([(own, (pair,)), (apart, ())]) == (pair,)
    assert launched_in_place([(own, (pair,)), (other, ())]) == ()
