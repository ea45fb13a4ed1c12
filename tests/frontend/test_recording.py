"""Recording: what is refused, what is left behind, outputs and aliases."""

from __future__ import annotations

import inspect

import pytest
import torch

from tritonfuser import DataType, DefinitionError, FusionDefinition, TensorView
from tritonfuser.ir import Output


def here():
    """``file:line`` of the caller's next line."""
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno + 1}"


def test_an_error_names_the_op_and_the_line():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        y = fd.define_tensor([4])
        with pytest.raises(RuntimeError, match="add") as error:
            place = here()
            fd.ops.add(x, y)
    assert f"at {place}" in str(error.value)
    assert "fd.ops.add(x, y)" in str(error.value)


def test_a_subclass_that_does_not_call_init():
    class Negation(FusionDefinition):
        def __init__(self):
            self.size = 2

        def definition(self):
            self.add_output(self.ops.neg(self.define_tensor([self.size])))

    with pytest.raises(TypeError, match=r"Negation: FusionDefinition.__init__\(\) must be called"):
        Negation().run([torch.ones(2)])


def test_a_recording_ends_once():
    with pytest.raises(RuntimeError, match="not being recorded"):
        FusionDefinition().__exit__(None, None, None)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([2])))
    with pytest.raises(RuntimeError, match="not being recorded"):
        fd.__exit__(None, None, None)
    assert fd.run([torch.ones(2)])[0].tolist() == [-1, -1]


def test_a_text_without_the_op_gets_its_name():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        with pytest.raises(RuntimeError, match=r"^slice: Slice operation start_indices must be"):
            fd.ops.slice(x, [-1, 0], [1, 1])


def test_ops_carry_the_line_they_were_recorded_on():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        place = here()
        fd.ops.neg(x)
    assert str(fd.fusion.ir.nodes[0].loc) == place


@pytest.mark.parametrize(
    ("what", "use"),
    [
        ("fd.ops.neg", lambda fd, x: fd.ops.neg(x)),
        ("define_tensor", lambda fd, x: fd.define_tensor([2])),
        ("define_scalar", lambda fd, x: fd.define_scalar(1.0)),
        ("add_output", lambda fd, x: fd.add_output(x)),
        ("from_pytorch", lambda fd, x: fd.from_pytorch(torch.zeros(2))),
        ("fd.ops.size", lambda fd, x: x.size(0)),
    ],
)
def test_using_a_definition_outside_with(what, use):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x))
    before = repr(fd)
    if what != "from_pytorch":
        with pytest.raises(DefinitionError) as error:
            use(fd, x)
        assert str(error.value).startswith(f"{what}() is used outside of a definition")
        assert f"at {__file__}" in str(error.value)
    if what != "fd.ops.size":
        with pytest.raises(DefinitionError, match="outside of a definition"):
            use(FusionDefinition(), x)
    assert repr(fd) == before
    assert torch.equal(fd.run([torch.ones(3)])[0], -torch.ones(3))


def test_values_of_another_definition_are_refused():
    with FusionDefinition() as other:
        theirs = other.define_tensor([2])
    with FusionDefinition() as fd:
        mine = fd.define_tensor([2], contiguity=True)
        with pytest.raises(RuntimeError, match=r"fd\.ops\.add: tv0 belongs to another definition"):
            fd.ops.add(mine, theirs)
        with pytest.raises(RuntimeError, match="add_output: tv0 belongs to another definition"):
            fd.add_output(theirs)
        with pytest.raises(RuntimeError, match="tv0 belongs to another definition"):
            fd.ops.cat([mine, theirs])
        fd.add_output(fd.ops.add(mine, mine))
    assert torch.equal(fd.run([torch.ones(2)])[0], torch.full((2,), 2.0))


def test_a_failed_op_leaves_nothing_behind():
    def record(fd, fail):
        x = fd.define_tensor([2, 3])
        if fail:
            # sum(x, keepdim) is recorded in several steps; the reshape fails in its last
            with pytest.raises(RuntimeError):
                fd.ops.reshape(x, [4, 4])
            with pytest.raises(RuntimeError):
                fd.ops.sum(x, [0, 5])
            with pytest.raises(TypeError):
                fd.ops.add(x)
            with pytest.raises(TypeError):
                fd.ops.add(x, "1")
            with pytest.raises(RuntimeError):
                fd.define_tensor([-1, -1], True, stride_order=[0, 0])
        y = fd.define_tensor([-1])
        fd.add_output(fd.ops.neg(x))
        fd.add_output(y)

    with FusionDefinition() as failing:
        record(failing, True)
    with FusionDefinition() as clean:
        record(clean, False)
    assert failing.fusion == clean.fusion
    assert repr(failing) == repr(clean)


def test_an_exception_in_the_block_is_not_swallowed_and_leaves_nothing():
    fd = FusionDefinition()
    with pytest.raises(KeyError), fd:
        fd.add_output(fd.define_tensor([2]))
        raise KeyError("mine")
    with pytest.raises(NotImplementedError, match="Fusion does not exist!"):
        fd.run([torch.ones(2)])
    with fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1], contiguity=True)))
    assert torch.equal(fd.run([torch.ones(2)])[0], -torch.ones(2))


def test_a_definition_is_recorded_once():
    with FusionDefinition() as fd:
        fd.add_output(fd.define_tensor([2]))
    with pytest.raises(DefinitionError, match="recorded already"), fd:
        pass
    assert repr(fd).count("add_output") == 1


def test_an_unknown_op_is_an_attribute_error_with_a_suggestion():
    with FusionDefinition() as fd:
        assert not hasattr(fd.ops, "no_such_op")
        with pytest.raises(AttributeError, match=r"fd\.ops has no op 'rsqr'; did you mean .*rsqrt"):
            fd.ops.rsqr  # noqa: B018


def test_numbers_lists_and_handles_are_taken_as_operands():
    with FusionDefinition() as fd:
        x = fd.define_tensor([4, 6], contiguity=True)
        three = fd.define_scalar(3)
        fd.add_output(fd.ops.reshape(x, (three, x.size(0), 2)))
        fd.add_output(fd.ops.cat((x, x), dim=-1))
        fd.add_output(1.0 - x * 2.0 + 3.0 / (x + 1.0))
        fd.add_output(-(x**2) / 2.0)
    x = torch.rand(4, 6)
    a, b, c, d = fd.run([x])
    assert torch.equal(a, x.reshape(3, 4, 2))
    assert torch.equal(b, torch.cat((x, x), -1))
    torch.testing.assert_close(c, 1.0 - x * 2.0 + 3.0 / (x + 1.0))
    torch.testing.assert_close(d, -(x**2) / 2.0)


# --- outputs ---------------------------------------------------------------------------------


def aliased(*calls):
    """Run a definition whose ``add_output`` calls are named: (output,) or (output, input)."""
    with FusionDefinition() as fd:
        values = {"x": fd.define_tensor([-1, -1], contiguity=True)}
        values["y"] = fd.define_tensor([-1, -1], contiguity=True)
        values["sum"] = fd.ops.add(values["x"], values["y"])
        values["neg"] = fd.ops.neg(values["sum"])
        for call in calls:
            fd.add_output(*(values[name] for name in call))
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    before = {"x": x.clone(), "y": y.clone(), "sum": x + y, "neg": -(x + y)}
    outputs = fd.run([x, y])
    again = fd._recorded_again()
    assert aliases(again) == aliases(fd)
    assert repr(again._recorded_again()) == repr(again)
    return {"x": x, "y": y}, before, outputs


def aliases(fd):
    return [(o.alias_of, o.hidden) for o in fd.fusion.ir.outputs]


def test_an_aliased_output_is_hidden():
    after, before, outputs = aliased(("sum", "x"), ("neg",))
    assert len(outputs) == 1
    assert torch.equal(outputs[0], before["neg"])
    assert torch.equal(after["x"], before["sum"])
    assert torch.equal(after["y"], before["y"])


@pytest.mark.parametrize(
    ("calls", "shown"),
    [
        ([("sum", "x"), ("sum",)], ["sum"]),
        ([("sum",), ("sum", "x")], ["sum"]),
        # the hidden entry moves to the place of the later plain one
        ([("sum", "x"), ("neg",), ("sum",)], ["neg", "sum"]),
        ([("sum",), ("neg",), ("sum", "x")], ["sum", "neg"]),
        ([("sum",), ("sum", "x"), ("sum",), ("x",)], ["sum", "sum", "sum"]),
        ([("sum", "x"), ("sum",), ("sum",), ("x",)], ["sum", "sum", "sum"]),
    ],
)
def test_an_output_added_plainly_too_is_returned_as_the_inputs_buffer(calls, shown):
    after, before, outputs = aliased(*calls)
    assert len(outputs) == len(shown)
    for output, name in zip(outputs, shown, strict=True):
        assert torch.equal(output, before[name])
        assert (output.data_ptr() == after["x"].data_ptr()) is (name == "sum")


def test_two_inputs_are_updated_crosswise():
    after, before, outputs = aliased(("sum", "y"), ("neg", "x"))
    assert outputs == []
    assert torch.equal(after["y"], before["sum"])
    assert torch.equal(after["x"], before["neg"])


def test_an_input_returned_as_output_is_that_buffer():
    after, _, outputs = aliased(("x",), ("x",))
    assert [o.data_ptr() for o in outputs] == [after["x"].data_ptr()] * 2


def test_an_input_written_into_another_is_copied():
    after, before, _ = aliased(("y", "x"))
    assert torch.equal(after["x"], before["y"])
    assert after["x"].data_ptr() != after["y"].data_ptr()


def test_an_aliased_output_of_another_dtype_is_cast():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True, dtype=DataType.Half)
        fd.add_output(fd.ops.add(fd.ops.cast(x, DataType.Float), 1.0), x)
    x = torch.zeros(4, dtype=torch.half)
    assert fd.run([x]) == []
    assert torch.equal(x, torch.ones(4, dtype=torch.half))


def test_the_cast_of_an_input_may_stand_for_it():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True, dtype=DataType.Half)
        wide = fd.ops.cast(x, DataType.Float)
        fd.add_output(fd.ops.add(wide, 1.0), wide)
    assert fd.fusion.ir.outputs == (Output(fd.fusion.ir.nodes[-1].out, x.value, hidden=True),)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda fd, x, s: fd.add_output(s), TypeError, "output must be a TensorView, got a scalar"),
        (lambda fd, x, s: fd.add_output(1.0), TypeError, "must be a TensorView, got 1.0"),
        (lambda fd, x, s: fd.add_output(x, s), TypeError, "alias_input must be a TensorView"),
        (
            lambda fd, x, s: fd.add_output(x, fd.ops.exp(x)),
            RuntimeError,
            "alias_input must be an input of the fusion, tv1 is computed",
        ),
        (
            lambda fd, x, s: fd.add_output(fd.ops.sum(x, [0]), x),
            RuntimeError,
            "cannot be written into tv0",
        ),
    ],
)
def test_wrong_outputs(call, error, message):
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        s = fd.define_scalar()
        with pytest.raises(error) as raised:
            call(fd, x, s)
    assert message in str(raised.value)
    assert "add_output" in str(raised.value)
    assert fd.fusion.ir.outputs == ()


def test_an_input_is_written_once():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        y = fd.define_tensor([2, 3])
        total = fd.ops.add(x, y)
        fd.add_output(total, x)
        with pytest.raises(RuntimeError, match="tv0 is written by another output"):
            fd.add_output(fd.ops.neg(y), x)
        with pytest.raises(RuntimeError, match="tv2 is written into another input"):
            fd.add_output(total, y)
    assert len(fd.fusion.ir.outputs) == 1


def test_several_results_are_a_tuple_of_handles():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        pair = fd.ops.var_mean(x, [1])
        sizes = fd.ops.shape(x)
    assert isinstance(pair, tuple)
    assert all(isinstance(value, TensorView) for value in pair)
    assert isinstance(sizes, list)
    assert [s.value.value for s in sizes] == [2, 3]
