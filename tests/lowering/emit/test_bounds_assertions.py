"""TRITONFUSER_CHECK=bounds: kernels for a GPU assert that indices are of their dims."""

from __future__ import annotations

import ast
import re

import pytest
import torch
from triton.runtime import interpreter

from tests.e2e.test_index_bounds import OPS, X, definition
from tritonfuser import DataType, FusionDefinition, options
from tritonfuser.errors import IndexRangeError, LoweringError
from tritonfuser.lowering.build import compile_kernel, interpret_kernel
from tritonfuser.lowering.interpreter import rounding_builder

ARCHS = ("sm_80", "sm_90", "sm_100", "gfx942")


@pytest.fixture
def checked(monkeypatch):
    monkeypatch.setenv("TRITONFUSER_CHECK", "bounds")
    options.refresh()
    yield
    monkeypatch.undo()
    options.refresh()


def inputs_of(name, wrong=1, dtype=torch.int64):
    return X, OPS[name][1](torch.tensor([0, wrong, 2], dtype=dtype)).contiguous()


def asserting(fd, inputs, arch="sm_90"):
    return [source for source in fd.kernels(inputs, arch=arch) if source.asserts]


def messages(source):
    """The constants of a kernel's assertions, read by Python's own parser."""
    calls = [n for n in ast.walk(ast.parse(source.text)) if isinstance(n, ast.Call)]
    found = [n.args[1] for n in calls if ast.unparse(n.func) == "tl.device_assert"]
    return [node.value for node in found if isinstance(node, ast.Constant)]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", OPS)
def test_an_assertion_names_op_line_and_size(checked, name, arch):
    inputs = inputs_of(name)
    (source,) = asserting(definition(OPS[name][0], *inputs), inputs, arch)
    (message,) = messages(source)
    place = r"test_index_bounds\.py:\d+"
    assert re.fullmatch(
        rf"{name} at {place}: index out of range for a dim of {OPS[name][2]} elements", message
    )
    asm = compile_kernel(source, arch, (True,) * len(source.args)).binary.asm
    ends = "call.uni __assertfail" in asm["ptx"] if "ptx" in asm else "s_trap 2" in asm["amdgcn"]
    assert ends and message in asm["ttgir"]


def test_without_the_option_nothing_is_asserted():
    for name in OPS:
        inputs = inputs_of(name)
        fd = definition(OPS[name][0], *inputs)
        assert not asserting(fd, inputs)
        assert all("device_assert" not in s.text for s in fd.kernels(inputs, arch="sm_90"))


def test_kernels_with_and_without_are_never_mixed(monkeypatch):
    inputs = inputs_of("gather")
    fd = definition(OPS["gather"][0], *inputs)
    try:
        (plain,) = fd.kernels(inputs, arch="sm_90")
        monkeypatch.setenv("TRITONFUSER_CHECK", "bounds")
        options.refresh()
        (checking,) = fd.kernels(inputs, arch="sm_90")
        keys = dict(options.codegen_options())
        assert plain.text != checking.text and keys["check"] == {"bounds"}
        monkeypatch.delenv("TRITONFUSER_CHECK")
        options.refresh()
        assert fd.kernels(inputs, arch="sm_90")[0].text == plain.text
        assert dict(options.codegen_options()) != keys
    finally:
        monkeypatch.undo()
        options.refresh()


@pytest.mark.parametrize("name", OPS)
def test_on_a_cpu_the_error_stays(checked, name):
    inputs = inputs_of(name, 1000)
    with pytest.raises(IndexRangeError, match=f"{name}: index 1000 is out of range"):
        definition(OPS[name][0], *inputs).run(inputs)


# --- what is asserted, in the interpreter --------------------------------------------------------


@pytest.fixture
def asserted(checked, monkeypatch):
    """Runs the kernels for a GPU in the interpreter, where assertions raise too."""
    found = interpreter.InterpreterOptions(debug=True)
    builders = property(lambda builder: found, lambda builder, value: None)
    monkeypatch.setattr(rounding_builder.Builder, "options", builders, raising=False)

    def run(fd, inputs, shape):
        (source,) = asserting(fd, inputs)
        out = torch.full(shape, -1.0)
        interpret_kernel(source)(*inputs, out)
        return out

    return run


def shifted(ops, x, i):
    return ops.index_select(x, ops.sub(i, 1), 0)


def test_lanes_that_are_masked_off_assert_nothing(asserted):
    """Behind the end of the index the load gives 0, of which the op makes -1."""
    inputs = X, torch.tensor([1, 2, 3])
    fd = definition(shifted, *inputs)
    assert torch.equal(asserted(fd, inputs, (3, 4)), X)
    for wrong in (0, 4, 2**40, -(2**40)):
        with pytest.raises(LoweringError, match=r"index_select at \S+py:\d+: index out of range"):
            asserted(fd, (X, torch.tensor([1, wrong, 3])), (3, 4))


def test_what_a_guard_leaves_out_is_not_asserted(asserted):
    def record(ops, x, i):
        rows = ops.index_select(x, ops.sub(ops.pad(i, [1, 1], 0), 1), 0)
        return ops.slice(rows, [1, 0], [3, 4])

    inputs = X, torch.tensor([1, 3])
    assert torch.equal(asserted(definition(record, *inputs), inputs, (2, 4)), X[[0, 2]])


def test_negative_indices_where_the_op_takes_them(asserted):
    inputs = X, torch.tensor([[0], [-4], [-1]])
    fd = definition(lambda ops, x, i: ops.take_along_axis(x, i, 1), *inputs)
    assert torch.equal(asserted(fd, inputs, (3, 1)), X.take_along_dim(inputs[1], 1))
    for wrong in (-5, 4):
        with pytest.raises(LoweringError, match=r"take_along_axis at .* a dim of 4 elements"):
            asserted(fd, (X, torch.tensor([[0], [wrong], [0]])), (3, 1))


# --- the message ---------------------------------------------------------------------------------

HOSTILE = (
    '"); __import__("os").abort() #%s%n.py',
    "model\n    tl.store(tv0_ptr, 0).py",
    "a\\",
    "{0}%d'''.py",
    "модель.py",
    "size0 tl.make_tensor_descriptor share.py",
    "x" * 300 + ".py",
)


@pytest.mark.parametrize("file", HOSTILE)
def test_a_file_name_is_only_a_part_of_the_message(checked, file):
    scope = {}
    exec(compile("def record(ops, x, i):\n    return ops.gather(x, i, 1)", file, "exec"), scope)
    inputs = inputs_of("gather")
    (source,) = asserting(definition(scope["record"], *inputs), inputs)
    (message,) = messages(source)
    assert re.fullmatch(
        r"gather at [A-Za-z0-9_.<>-]{1,80}:2: index out of range for a dim of 4 elements", message
    )
    (plain,) = asserting(definition(OPS["gather"][0], *inputs), inputs)
    comments = re.compile(r"#.*|gather at [^ ]*:\d+:")
    assert comments.sub("", source.text) == comments.sub("", plain.text)
    compile_kernel(source, "sm_90", (True,) * len(source.args))


def test_sizes_that_vary_stay_arguments_but_for_the_dim_that_is_indexed(checked):
    def given(rows, count):
        return torch.ones(rows, 64), torch.zeros(count, dtype=torch.int64)

    fd = definition(lambda ops, x, i: ops.index_select(x, i, 0), *given(8, 3))
    seen = [given(8, 5), given(8, 7)]
    (source,) = fd.kernels(given(8, 3), arch="sm_90", varying=seen)
    assert source.sizes and "a dim of 8 elements" in messages(source)[0]
    seen = [given(9, 5), given(10, 7)]
    (source,) = fd.kernels(given(8, 3), arch="sm_90", varying=seen)
    assert source.sizes and "a dim of 8 elements" in messages(source)[0]
    compile_kernel(source, "sm_90", (True,) * len(source.args))


@pytest.mark.parametrize("arch", ("sm_90", "gfx942"))
def test_kernels_of_every_body_compile(checked, arch):
    """Loops over rows and along them, atomics of parts, a scalar index, complex numbers."""

    def norm(ops, x, i):
        rows = ops.embedding_fwd(i, x)
        total = ops.broadcast(ops.sum(rows, [1]), [False, True])
        return ops.sum(ops.div(rows, total), [0])

    longer = torch.ones(64, 70000), torch.zeros(64, 70000, dtype=torch.int64)
    cases = (
        (norm, torch.ones(50, 1001), torch.zeros(300, dtype=torch.int64)),
        (lambda ops, x, i: ops.sum(ops.gather(x, i, 1), [1]), *longer),
        (lambda ops, x, i: ops.sum(ops.gather(x, i, 1), [0]), *longer),
        (
            lambda ops, x, i: ops.gather(x, i, 1),
            torch.ones(3, 4, dtype=torch.cfloat),
            longer[1][:2, :3],
        ),
    )
    for record, *inputs in cases:
        fd = definition(record, *inputs)
        assert asserting(fd, inputs, arch)
        assert fd.compile_for(arch, inputs)
    with FusionDefinition() as fd:
        x, place = fd.from_pytorch(X), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.select(x, place, 0))
    assert asserting(fd, [X, 2], arch) and fd.compile_for(arch, [X, 2])
