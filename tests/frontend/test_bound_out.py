"""Results of bound plans, put where they are told to: what is written straight, what is refused."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.frontend.test_bound import summed
from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tritonfuser import InputError


def many(fd, x, y):
    """Results of every kind, and what each of them is."""
    made = fd.ops.add(x, y)
    fd.add_output(made)  # a buffer
    fd.add_output(fd.ops.permute(made, [1, 0]))  # a view of it
    fd.add_output(made)  # once more
    fd.add_output(fd.ops.permute(fd.ops.exp(x), [1, 0]))  # a whole buffer, transposed
    fd.add_output(fd.ops.reshape(fd.ops.neg(x), [24]))  # a whole buffer, reshaped
    fd.add_output(fd.ops.permute(x, [1, 0]))  # a view of an input
    fd.add_output(y)  # an input
    fd.add_output(fd.ops.argsort(x, 1))  # by torch
    fd.add_output(fd.ops.sum(made, [1]))


def test_results_of_every_kind():
    inputs = [noise(4, 6), noise(4, 6, seed=1)]
    plan = record(many, inputs).plan(inputs)
    wanted = plan(inputs)
    out = plan.allocate()
    for _ in range(2):
        for tensor in out:
            tensor.fill_(3)
        found = plan(inputs, out=out)
        assert len(found) == len(wanted) == 9
        for mine, theirs, expected in zip(out, found, wanted, strict=True):
            assert mine is theirs
            assert mine.stride() == expected.stride()
            assert torch.equal(mine, expected)


def test_what_can_be_is_written_straight():
    """Of the first buffer's three results one has it; views that are all of a buffer are it."""
    inputs = [noise(4, 6), noise(4, 6, seed=1)]
    plan = record(many, inputs).plan(inputs)
    shown = [result.buffer is not None for result in plan._plan.body.results]
    assert shown == [True, False, False, True, True, False, False, False, True]


def test_where_none_is_given_the_plan_does_as_ever():
    inputs = [noise(4, 6), noise(4, 6, seed=1)]
    plan = record(many, inputs).plan(inputs)
    wanted = plan(inputs)
    for which in range(9):
        out = [tensor if place == which else None for place, tensor in enumerate(plan.allocate())]
        found = plan(inputs, out)
        assert found[which] is out[which]
        assert found[6] is inputs[1] or which == 6
        for one, expected in zip(found, wanted, strict=True):
            assert torch.equal(one, expected)


def test_any_memory_of_the_right_layout_will_do():
    inputs = [noise(4, 6), noise(4, 6)]
    fd = record(lambda fd, x, y: fd.ops.permute(fd.ops.add(x, y), [1, 0]), inputs)
    plan = fd.plan(inputs)
    whole = torch.zeros(100)
    out = whole.as_strided((6, 4), (1, 6), 16)
    plan(inputs, [out])
    assert torch.equal(out, (inputs[0] + inputs[1]).t())
    assert bool(whole[:16].eq(0).all())
    assert bool(whole[40:].eq(0).all())


WRONG_OUT = {
    "shape": (lambda o: [o[:2]], "out[0]: expected shape [3, 5], got shape [2, 5]"),
    "strides": (lambda o: [torch.empty(5, 3).t()], "out[0]: expected strides [5, 1]"),
    "dtype": (lambda o: [o.double()], "expected dtype torch.float32, got dtype torch.float64"),
    "device": (lambda o: [o.to("meta")], "expected device cpu, got device meta"),
    "number": (lambda o: [2.0], "expected a tensor, got a value of type float"),
    "sparse": (lambda o: [o.to_sparse()], "expected a strided tensor"),
    "too few": (lambda o: [], "Expected a list of 1 tensors in out, got 0"),
    "too many": (lambda o: [o, o], "Expected a list of 1 tensors in out, got 2"),
    "a tensor": (lambda o: o, "Expected a list of 1 tensors in out, got a Tensor"),
    "grad": (lambda o: [o.requires_grad_()], "that does not require grad"),
}


@pytest.mark.parametrize("name", WRONG_OUT)
@pytest.mark.parametrize("warm", [False, True])
def test_tensors_that_do_not_fit(name, warm):
    a, b = noise(3, 5), noise(3, 5)
    plan = summed().plan([a, b])
    if warm:
        plan([a, b], plan.allocate())
    make, text = WRONG_OUT[name]
    with pytest.raises(InputError) as error:
        plan([a, b], make(torch.zeros(3, 5)))
    assert text in str(error.value)
    assert "plan.allocate() makes tensors that fit" in str(error.value)


def two(fd, x):
    return fd.ops.exp(x), fd.ops.neg(x)


@pytest.mark.parametrize("warm", [False, True])
def test_memory_that_is_shared_is_refused(warm):
    whole = torch.zeros(64)
    x, before = whole[:8], noise(8)
    x.copy_(before)
    plan = record(two, [x]).plan([x])
    if warm:
        plan([x], [whole[16:24], whole[24:32]])
    cases = [
        ([x, None], "out[0] shares memory with input 0"),
        ([None, whole[4:12]], "out[1] shares memory with input 0"),
        ([whole[16:24], whole[20:28]], "out[0] shares memory with out[1]"),
        ([whole[16:24], whole[16:24]], "out[0] shares memory with out[1]"),
    ]
    for out, text in cases:
        with pytest.raises(InputError) as error:
            plan([x], out)
        assert text in str(error.value)
    assert torch.equal(x, before)
    found = plan([x], [whole[8:16], whole[16:24]])
    assert torch.equal(found[0], x.exp())
    assert torch.equal(found[1], -x)


def test_memory_is_looked_at_in_every_call():
    """Also where the last call had the same tensors but one."""
    whole = torch.zeros(64)
    plan = record(two, [whole[:8]]).plan([whole[:8]])
    out = [whole[16:24], whole[24:32]]
    for _ in range(3):
        plan([whole[:8]], out)
        plan([whole[8:16]], out)
        with pytest.raises(InputError, match="shares memory"):
            plan([whole[20:28]], out)


def updated(fd, x, y):
    """x += y, shown and hidden, and what it was."""
    total = fd.ops.add(x, y)
    fd.add_output(total, x)
    fd.add_output(total)
    fd.add_output(fd.ops.mul(x, 2.0))


def test_outputs_that_are_written_into_inputs():
    y = noise(4)
    plan = record(updated, [noise(4), y]).plan([noise(4), y])
    before = noise(4, seed=3)
    total = before + y
    for give in (lambda x: None, lambda x: plan.allocate()[0], lambda x: x, lambda x: x[:]):
        x = before.clone()
        out = [give(x), torch.empty(4)]
        found = plan([x, y], out)
        assert torch.equal(x, total)
        assert torch.equal(found[0], total)
        assert found[0] is (x if out[0] is None else out[0])
        assert torch.equal(found[1], before * 2)
    with pytest.raises(InputError, match=r"out\[0\] shares memory with input 1"):
        plan([before.clone(), y], [y, None])
    x = before.clone()
    with pytest.raises(InputError, match=r"out\[1\] shares memory with input 0"):
        plan([x, y], [None, x])
    assert torch.equal(x, before)


def test_hidden_outputs_take_no_tensor():
    y = noise(4)
    fd = record(lambda fd, x, y: fd.add_output(fd.ops.add(x, y), x), [noise(4), y])
    plan = fd.plan([noise(4), y])
    assert plan.allocate() == []
    x = noise(4, seed=3)
    assert plan([x, y], []) == []
    assert torch.equal(x, noise(4, seed=3) + y)


def test_elements_that_share_memory_can_only_be_left_to_the_plan():
    x = noise(4)

    def body(fd, x):
        return fd.ops.expand(fd.ops.broadcast(fd.ops.exp(x), [True, False]), [3, 4])

    fd = record(body, [x])
    plan = fd.plan([x])
    (wanted,) = plan([x])
    out = plan.allocate()
    assert (out == [None]) == (0 in wanted.stride())
    assert torch.equal(plan([x], out)[0], wanted)
    if wanted.stride() == (0, 1):
        with pytest.raises(InputError, match="expected None: elements of this output share memory"):
            plan([x], [torch.empty(4).expand(3, 4)])


def test_complex_results():
    z = torch.view_as_complex(noise(4, 2))
    plan = record(lambda fd, z: (fd.ops.mul(z, z), z), [z]).plan([z])
    out = plan.allocate()
    found = plan([z], out)
    torch.testing.assert_close(out[0], z * z)
    assert torch.equal(out[1], z)
    assert found[0] is out[0]
    assert plan._plan.body.results[0].buffer is not None
    with pytest.raises(InputError, match="marked as negated"):
        plan([z], [out[0].conj(), None])


def test_nothing_to_write():
    inputs = [torch.empty(0, 3)]
    plan = record(lambda fd, x: fd.ops.exp(x), inputs).plan(inputs)
    out = plan.allocate()
    assert plan(inputs, out)[0] is out[0]
    assert plan(inputs, [inputs[0]])[0] is inputs[0]  # there is no memory to share


def test_32_threads_on_one_plan():
    count = 32
    inputs = [noise(4, 6), noise(4, 6, seed=1)]
    plan = record(many, inputs).plan(inputs)
    start = threading.Barrier(count)

    def run(number):
        mine = [noise(4, 6, seed=number), torch.nn.Parameter(noise(4, 6, seed=number + 50))]
        mine = mine if number % 2 else [x.detach() for x in mine]
        out = plan.allocate()
        start.wait()
        for _ in range(3):
            plan(mine, out)
            made = plan(mine)
            with torch.no_grad():
                assert torch.equal(out[0], mine[0] + mine[1])
            for one, other in zip(made, out, strict=True):
                assert torch.equal(one, other)

    with ThreadPoolExecutor(count) as pool:
        for task in [pool.submit(run, number) for number in range(count)]:
            task.result()
