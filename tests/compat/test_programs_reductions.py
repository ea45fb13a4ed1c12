"""Reductions, moments, scans of programs written for nvFuser: forms, dtypes, broadcast dims."""

from __future__ import annotations

import math

import pytest
import torch

from tests.compat.programs import equal, noise, ran, record, run
from tritonfuser.compat.nvfuser_direct import DataType

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType
X = noise(3, 4, 5)

FORMS = {
    "all": (lambda ops, t: ops.sum(t), X.sum()),
    "a dtype": (lambda ops, t: ops.sum(t, D.Double), X.double().sum()),
    "a dim": (lambda ops, t: ops.sum(t, -2), X.sum(1)),
    "a list": (lambda ops, t: ops.sum(t, [0, 2]), X.sum((0, 2))),
    "a tuple": (lambda ops, t: ops.sum(t, (-1, 0)), X.sum((0, 2))),
    "by place": (lambda ops, t: ops.sum(t, [0], True, D.Double), X.double().sum(0, True)),
    "dim by name": (lambda ops, t: ops.sum(t, dim=1, keepdim=True), X.sum(1, True)),
    "dims by name": (lambda ops, t: ops.prod(arg=t, dims=[0, 1]), X.prod(0).prod(0)),
    "axes by name": (lambda ops, t: ops.max(t, axes=[1]), X.amax(1)),
    "keepdim an int": (lambda ops, t: ops.min(t, [0, 1], 1), X.amin((0, 1), True)),
    "half": (lambda ops, t: ops.sum(t, 0, dtype=D.Half), X.half().float().sum(0).half()),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    call, wanted = FORMS[form]
    equal(ran(call, X), wanted, within=1e-5)


def test_what_is_refused():
    for call in (
        lambda ops, t: ops.sum(t, []),
        lambda ops, t: ops.sum(t, [3]),
        lambda ops, t: ops.sum(t, -4),
        lambda ops, t: ops.sum(t, [0, -3]),
        lambda ops, t: ops.max(t, D.Float),
        lambda ops, t: ops.min(t, [0], False, D.Double),
        lambda ops, t: ops.var_mean(t, []),
        lambda ops, t: ops.var(t, [0, 0]),
        lambda ops, t: ops.var(t, [0], -1),
        lambda ops, t: ops.var_mean(ops.cast(t, D.Half), [0]),
        lambda ops, t: ops.var_mean(ops.cast(t, D.Int), [0]),
        lambda ops, t: ops.welford(t, [3]),
    ):
        with pytest.raises(RuntimeError):
            ran(call, X)
    for call in (
        lambda ops, t: ops.sum(t, [1.0]),
        lambda ops, t: ops.sum(t, "0"),
        lambda ops, t: ops.sum(2.0),
        lambda ops, t: ops.var_mean(t, [0.0]),
        lambda ops, t: ops.var_mean(t, [0], 1.5),
    ):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ran(call, X)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_dtypes_of_results(name):
    row = torch.tensor([1, 0, 3])
    for dtype in (torch.bool, torch.int32, torch.int64, torch.float16, torch.float64):
        wanted = dtype
        if name in ("sum", "prod") and not dtype.is_floating_point:
            wanted = torch.int64
        found = ran(lambda ops, t: getattr(ops, name)(t, 0), row.to(dtype))
        assert found.dtype is wanted
        assert found.item() == getattr(row.to(dtype).double(), name)().item()


@pytest.mark.parametrize("asked", [D.Double, D.Float, D.Half, D.Int, D.Int32, D.Bool])
def test_a_dtype_casts_the_operand_first(asked):
    """A sum of 0.5s as Int is a sum of zeros."""
    x = torch.tensor([0.5, 0.5, 1.25])
    found = ran(lambda ops, t: ops.sum(t, [0], dtype=asked), x)
    cast = x.to(asked.info.torch)
    wanted = cast.any() if asked is D.Bool else cast.double().sum()
    equal(found, wanted.to(asked.info.torch))


def test_a_zero_dim_tensor_is_copied():
    x = torch.tensor(3.5)
    for call in (
        lambda ops, t: ops.sum(t),
        lambda ops, t: ops.max(t, [0]),
        lambda ops, t: ops.prod(t, -1),
    ):
        found = ran(call, x)
        assert torch.equal(found, x)
        assert found.data_ptr() != x.data_ptr()


def test_dims_of_size_1_are_squeezed():
    def make(fd):
        t = fd.define_tensor([-1, 1, -1], True)
        fd.add_output(fd.ops.sum(t, [1]))
        fd.add_output(fd.ops.max(t, [0, 1]))

    lines = repr(record(make)).splitlines()
    assert [line.partition(" = ")[2] for line in lines[2:5]] == [
        "fd.ops.squeeze(tv0, dims=[1])",
        "fd.ops.squeeze(tv0, dims=[1])",
        "fd.ops.max(tv2, dims=[0])",
    ]
    x = noise(3, 1, 4)
    total, largest = run(make, [x])
    equal(total, x[:, 0])
    equal(largest, x.amax((0, 1)))


@pytest.mark.parametrize("size", [4, 1, 0])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_over_a_stretched_dim(name, size):
    """A sum is x * n, a product x ** n, an extremum x: of a known extent, a given one, a stride."""
    x = noise(3)
    stretched = x[:, None].expand(3, size)
    identity = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[name]
    wanted = {"sum": x * size, "prod": x**size, "max": x, "min": x}[name]
    wanted = wanted if size else torch.full_like(x, identity)

    def make(fd):
        ops, t, n = fd.ops, fd.from_pytorch(x), fd.define_scalar(D.Int)
        fd.add_output(getattr(ops, name)(ops.broadcast_in_dim(t, [3, size], [0]), [1]))
        fd.add_output(getattr(ops, name)(ops.broadcast_in_dim(t, [t.size(0), n], [0]), [1]))
        fd.add_output(getattr(ops, name)(fd.from_pytorch(stretched), 1))

    for found in run(make, [x, size, stretched]):
        equal(found, wanted, within=1e-5)


@pytest.mark.parametrize(
    ("shape", "dims"), [((0, 3), [0]), ((0, 3), [1]), ((0, 2, 1), [0]), ((5, 0, 3), [0, 1, 2])]
)
def test_empty_reductions_give_the_identity(shape, dims):
    names = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
    found = ran(lambda ops, t: [getattr(ops, n)(t, dims) for n in names], torch.empty(shape))
    left = [size for place, size in enumerate(shape) if place not in dims]
    for one, identity in zip(found, names.values(), strict=True):
        equal(one, torch.full(left, identity))


# --- moments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [[0], [1, 2], [-1], (0, 1, 2)])
def test_var_and_mean(dims):
    for correction in (0, 1, 2):
        for keep in (False, True):
            var, mean, alone = ran(
                lambda ops, t, c=correction, k=keep: [
                    *ops.var_mean(t, dims, c, k),
                    ops.var(t, dims, correction=c, keepdim=k),
                ],
                X,
            )
            wanted = torch.var_mean(X.double(), dims, correction=correction, keepdim=keep)
            equal(var, wanted[0].float(), within=1e-5)
            equal(mean, wanted[1].float(), within=1e-5)
            equal(alone, var)


def test_the_correction_is_1_and_may_leave_no_denominator():
    default, none, beyond = ran(
        lambda ops, t: [ops.var_mean(t, [0])[0], ops.var(t, [1], 4), ops.var(t, [1], 7)],
        noise(3, 4),
    )
    equal(default, noise(3, 4).var(0), within=1e-6)
    for one in (none, beyond):
        equal(one, torch.full((3,), math.inf))
    (alone,) = run(lambda fd: fd.add_output(fd.ops.var(fd.from_pytorch(X[:1]), [0])), [X[:1]])
    assert alone.isnan().all()


def test_the_variance_of_complex_numbers_is_real():
    z = torch.complex(noise(4, 5), noise(4, 5, seed=1))
    var, mean = ran(lambda ops, t: ops.var_mean(t, [0]), z)
    for found, wanted in zip((var, mean), torch.var_mean(z, 0), strict=True):
        equal(found, wanted, within=1e-5)


def test_welford_gives_the_sum_of_squares_and_the_count():
    average, squares, count = ran(lambda ops, t: ops.welford(t, [0, 2]), X)
    equal(average, X.mean((0, 2)), within=1e-5)
    equal(squares, (X - X.mean((0, 2), True)).square().sum((0, 2)), within=1e-4)
    equal(count, torch.full((4,), 15))


# --- scans -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummin", "cummax"])
def test_scans_keep_the_dtype_and_give_values_only(name):
    for dtype in (torch.bool, torch.int32, torch.int64, torch.float16, torch.float64):
        x = torch.tensor([[1, 0, 2], [3, -1, 1]]).to(dtype)
        for dim in (0, -1):
            found = ran(lambda ops, t, d=dim: getattr(ops, name)(t, d), x)
            wanted = getattr(x.double(), name)(dim)
            wanted = wanted if isinstance(wanted, torch.Tensor) else wanted.values
            equal(found, wanted.to(dtype))


def test_a_scan_starts_from_init():
    found = ran(lambda ops, t: [ops.cumsum(t, 1, 2.0), ops.cumsum(t, 1, init=None)], noise(2, 3))
    equal(found[0], noise(2, 3).cumsum(1) + 2.0, within=1e-6)
    equal(found[1], noise(2, 3).cumsum(1), within=1e-6)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ran(lambda ops, t: ops.cumsum(t, 1.0), X)
    with pytest.raises(RuntimeError):
        ran(lambda ops, t: ops.cumsum(t, 3), X)
