"""Texts that programs written for nvFuser rely on, and what makes two definitions one."""

from __future__ import annotations

import math

import pytest
import torch

from tests.compat.programs import noise, printed, record
from tritonfuser.compat.nvfuser_direct import DataType, LRUCache

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType


def lines(make):
    """The printed program without its head, unindented."""
    text = repr(record(make))
    head, *body = text.splitlines()
    assert head == "def nvfuser_fusion(fd : FusionDefinition) -> None :"
    assert text.endswith("\n")
    return [line.removeprefix("    ") for line in body]


def test_a_program_of_the_documentation():
    def make(fd):
        t = fd.define_tensor(shape=[-1, -1, -1], contiguity=[True, True, True], dtype=D.Float)
        u = fd.define_tensor(shape=[1, -1, 1], contiguity=[None, True, None])
        three = fd.define_scalar(3.0)
        fd.ops.exp(t)
        scaled = fd.ops.mul(fd.ops.add(t, u), three)
        fd.add_output(fd.ops.sum(scaled, [-1], False, D.Float))

    assert lines(make) == [
        "tv0 = fd.define_tensor(shape=[-1, -1, -1], contiguity=[True, True, True], "
        "dtype=DataType.Float, is_cpu=False)",
        "tv1 = fd.define_tensor(shape=[1, -1, 1], contiguity=[None, True, None], "
        "dtype=DataType.Float, is_cpu=False)",
        "tv3 = fd.ops.add(tv0, tv1)",
        "tv4 = fd.ops.mul(tv3, 3.00000)",
        "tv5 = fd.ops.sum(tv4, dims=[2], dtype=DataType.Float)",
        "fd.add_output(tv5)",
    ]


CALLS = {
    "reshape": (
        lambda fd, t: fd.ops.reshape(t, [fd.define_scalar(n) for n in (12, 25, 32, 2)]),
        "fd.ops.reshape(tv0, new_shape=[12, 25, 32, 2])",
    ),
    "slice": (
        lambda fd, t: fd.ops.slice(t, [0, 0, 0], [12, 1, 64]),
        "fd.ops.slice(tv0, start_indices=[0, 0, 0], end_indices=[12, 1, 64], "
        "strides=[1, 1, 1], manual_normalization=True)",
    ),
    "sum of a dim of size 1": (
        lambda fd, t: fd.ops.sum(fd.ops.broadcast(t, [False] * 3 + [True]), [3]),
        "fd.ops.squeeze(tv1, dims=[3])",
    ),
    "inf": (lambda fd, t: fd.ops.mul(t, math.inf), 'fd.ops.mul(tv0, float("inf"))'),
    "nan": (lambda fd, t: fd.ops.mul(t, math.nan), 'fd.ops.mul(tv0, float("nan"))'),
    "-inf": (lambda fd, t: fd.ops.mul(t, -math.inf), 'fd.ops.mul(tv0, -float("inf"))'),
    "1/3": (lambda fd, t: fd.ops.mul(t, 1 / 3), "fd.ops.mul(tv0, 0.3333333333333333)"),
    "1e-30": (lambda fd, t: fd.ops.mul(t, 1e-30), "fd.ops.mul(tv0, 1.00000e-30)"),
    "an Int": (lambda fd, t: fd.ops.mul(t, fd.define_scalar(3)), "fd.ops.mul(tv0, 3)"),
    "a Bool": (lambda fd, t: fd.ops.mul(t, True), "fd.ops.mul(tv0, True)"),
    "complex": (lambda fd, t: fd.ops.mul(t, 1 + 2j), "fd.ops.mul(tv0, complex(1.00000, 2.00000))"),
    "permute": (
        lambda fd, t: fd.ops.permute(t, [-1, 0, 1]),
        "fd.ops.permute(tv0, dims=[2, 0, 1])",
    ),
    "no-op expand": (
        lambda fd, t: fd.ops.expand(t, [-1, -1, -1]),
        "fd.ops.cast(tv0, dtype=DataType.Float)",
    ),
    "set": (lambda fd, t: fd.ops.set(t), "fd.ops.cast(tv0, dtype=DataType.Float)"),
    "linear": (
        lambda fd, t: fd.ops.linear(t, fd.define_tensor([-1, 64], True)),
        "fd.ops.linear(tv0, tv1)",
    ),
    "bias": (
        lambda fd, t: fd.ops.linear(
            t, fd.define_tensor([8, 64], True), fd.define_tensor([8], True)
        ),
        "fd.ops.linear(tv0, tv1, bias=tv2)",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_call_is_printed_as_a_line(what):
    make, text = CALLS[what]
    found = lines(lambda fd: fd.add_output(make(fd, fd.define_tensor([12, 25, 64], True))))
    assert found[-2].partition(" = ")[2] == text


def test_a_scalar_of_a_dtype_that_python_has_not_takes_a_line():
    def make(fd):
        t = fd.define_tensor([2])
        fd.add_output(fd.ops.mul(t, fd.define_scalar(2.0, dtype=D.Half)))
        fd.add_output(fd.ops.add(t, fd.define_scalar(3, dtype=D.Int32)))

    assert [line for line in lines(make) if line.startswith("k")] == [
        "k0 = fd.define_scalar(2.00000, dtype=DataType.Half)",
        "k1 = fd.define_scalar(3, dtype=DataType.Int32)",
    ]
    fd = record(make)
    assert printed(fd).fusion == fd.fusion


def test_broadcast_in_dim_of_all_dims_prints_as_expand():
    def make(fd, call):
        t, n = fd.define_tensor([-1, 1], True), fd.define_scalar(D.Int)
        fd.add_output(call(fd.ops, t, [t.size(0), n]))

    first = lines(lambda fd: make(fd, lambda ops, t, s: ops.broadcast_in_dim(t, s, [0, 1])))
    assert first == lines(lambda fd: make(fd, lambda ops, t, s: ops.expand(t, s)))


# --- definitions that are one --------------------------------------------------------------------


def count(*makes):
    """How many different definitions these are to an LRUCache."""
    cache = LRUCache(max_fusions=100)
    for make in makes:
        cache.cache_compile(record(make).fusion)
    return cache.num_fusions()


def of_tensor(*args, **kwargs):
    return lambda fd: fd.add_output(fd.ops.relu(fd.define_tensor(*args, **kwargs)))


def times(value, dtype=None):
    def make(fd):
        scalar = fd.define_scalar(value) if dtype is None else fd.define_scalar(value, dtype)
        fd.add_output(fd.ops.mul(fd.define_tensor([-1], dtype=D.Double), scalar))

    return make


def over(dims):
    return lambda fd: fd.add_output(fd.ops.sum(fd.define_tensor([-1, -1]), dims))


def in_order(*places):
    """The same op on two inputs, outputs in some order."""

    def make(fd):
        inputs = [fd.define_tensor([-1]), fd.define_tensor([-1])]
        results = [fd.ops.sub(*inputs), fd.ops.add(*inputs)]
        fd.add_output(fd.ops.sub(*(inputs[place] for place in places)))
        for place in places:
            fd.add_output(results[place])

    return make


def written(alias):
    def make(fd):
        t = fd.define_tensor([-1])
        fd.add_output(fd.ops.neg(t), *[t] * alias)

    return make


@pytest.mark.parametrize(
    ("makes", "different"),
    [
        ([of_tensor([-1, -1], True)] * 2, 1),
        ([of_tensor([-1, 4], True), of_tensor((-1, 4), [True, True], stride_order=[1, 0])], 1),
        ([of_tensor([n, 4]) for n in (-1, 0, 1, 4)], 4),
        ([of_tensor([-1, 4], c) for c in (True, False, [True, False], [None, True])], 4),
        ([of_tensor([-1, 4], stride_order=o) for o in ([0, 1], [1, 0])], 2),
        ([of_tensor([-1], dtype=d) for d in (D.Float, D.Half, D.Double)], 3),
        ([times(v) for v in (1.0, 1, True, 2.0, 0.0, -0.0, 1 + 0j)], 7),
        ([times(math.nan), times(float("nan")), times(math.inf)], 2),
        ([times(1.0), times(1.0, D.Float), times(1.0, D.Half)], 3),
        ([over([0]), over([1]), over([0, 1]), over([-1]), over(None)], 3),
        ([in_order(0, 1), in_order(1, 0)], 2),
        ([written(0), written(1)], 2),
    ],
)
def test_what_makes_a_definition_another(makes, different):
    assert count(*makes) == different


def test_sizes_taken_from_a_tensor_do_not_count():
    def make(x):
        def program(fd):
            t = fd.from_pytorch(x)
            rows, columns = t.shape()
            fd.add_output(fd.ops.reshape(t, [fd.ops.mul(rows, columns)]))
            fd.add_output(fd.ops.full(t.shape(), 1.0, D.Float))

        return program

    assert count(make(noise(3, 4)), make(noise(5, 6)), make(noise(3, 4, seed=1))) == 1
    assert count(make(noise(3, 4)), make(noise(3, 1))) == 2


# --- repro scripts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.bfloat16,
        torch.int64,
        torch.bool,
        torch.complex64,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    ],
)
def test_a_repro_script_runs_for_inputs_of_any_dtype(dtype):
    dense = torch.ones(4, 6).to(dtype)
    inputs = [dense, dense.clone()[:, ::2], float("nan"), 3, True]

    def make(fd):
        for x in inputs[:2]:
            fd.add_output(fd.ops.cast(fd.from_pytorch(x), D.Float))
        scalars = [fd.define_scalar(kind) for kind in (D.Double, D.Int, D.Bool)]
        fd.add_output(fd.ops.full([2], scalars[0], D.Float))

    fd = record(make)
    fd.execute(inputs, save_repro_inputs=True)
    script = fd.last_repro_script()
    assert script == fd.repro_script_for(tuple(inputs))
    assert script.splitlines()[-8:] == [
        "inputs = [",
        f"    torch.testing.make_tensor((4, 6), dtype={dtype}, device='cpu'),",
        script.splitlines()[-6],
        '    float("nan"),',
        "    3,",
        "    True,",
        "]",
        "fd.execute(inputs)",
    ]
    assert ".as_strided((4, 3), (6, 2))," in script.splitlines()[-6]
    program = script.replace("from nvfuser_direct", "from tritonfuser.compat.nvfuser_direct")
    scope: dict = {}
    exec(program, scope)
    for one, other in zip(scope["inputs"][:2], inputs[:2], strict=True):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
