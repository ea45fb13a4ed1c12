"""Programs written for nvFuser on a GPU: CPU scalars beside CUDA tensors, torch's generator."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.compat import nvfuser_direct

pytestmark = pytest.mark.gpu
D = DataType
TEXT = "KernelExecutor does not support the Fusion provided."


def record(make, kind=nvfuser_direct.FusionDefinition):
    with kind() as fd:
        make(fd)
    return fd


def of_scalar(call, *tensors, kind=nvfuser_direct.FusionDefinition):
    """A definition of a CPU scalar and CUDA tensors."""

    def make(fd):
        s = fd.define_tensor(shape=[], contiguity=[], dtype=D.Float, is_cpu=True)
        fd.add_output(call(fd.ops, s, *(fd.from_pytorch(t) for t in tensors)))

    return record(make, kind)


@pytest.mark.parametrize("run", ["execute", "manual_execute"])
def test_cpu_scalars_through_compat(run):
    s, x = torch.tensor(2.0), torch.randn(5, device="cuda")
    for _ in range(2):
        fd = of_scalar(lambda ops, s, t: ops.mul(s, t), x)
        assert torch.equal(getattr(fd, run)([s, x])[0], x * 2)
        fd = of_scalar(lambda ops, s: ops.mul(ops.full([2], 3.0, D.Float), s))
        (found,) = getattr(fd, run)([s])
        assert found.is_cuda
        assert found.tolist() == [6.0, 6.0]
        fd = of_scalar(lambda ops, s: s)
        assert getattr(fd, run)([s])[0] is s
        with pytest.raises(RuntimeError, match=TEXT):
            getattr(of_scalar(lambda ops, s: ops.neg(s)), run)([s])


def test_cpu_scalars_call_after_call():
    """One definition, the scalar now on the CPU, now on the GPU."""
    s = torch.tensor(2.0)
    fd = of_scalar(lambda ops, s: ops.neg(s))
    for _ in range(2):
        (found,) = fd.execute([s.cuda()])
        assert found.is_cuda
        assert found.item() == -2.0
        with pytest.raises(RuntimeError, match=TEXT):
            fd.execute([s])
    full = of_scalar(lambda ops, s: ops.mul(ops.full([2], 3.0, D.Float), s))
    for given in (s, s.cuda(), s):
        for _ in range(2):
            (found,) = full.execute([given])
            assert found.is_cuda
            assert found.tolist() == [6.0, 6.0]


def test_cpu_scalars_in_our_own_namespace():
    """Alone they are tensors like others; beside CUDA tensors nothing is computed of them alone."""
    s, x = torch.tensor(2.0), torch.randn(5, device="cuda")
    fd = of_scalar(lambda ops, s: ops.neg(s), kind=FusionDefinition)
    assert fd.run([s])[0].is_cpu
    assert fd.run([s], device="cuda:0")[0].is_cuda
    fd = of_scalar(lambda ops, s, t: ops.add(ops.neg(s), t), x, kind=FusionDefinition)
    assert torch.equal(fd.run([s, x])[0], x - 2)

    def make(fd):
        s, t = fd.define_tensor([], is_cpu=True), fd.define_tensor([-1])
        fd.add_output(fd.ops.neg(s))
        fd.add_output(t)

    with pytest.raises(RuntimeError, match=TEXT):
        record(make, FusionDefinition).run([s, x])


def test_stateful_draws_are_stateless_ones_of_consecutive_offsets():
    """Key is the seed, the offset counts blocks of four words and moves on by one block an op."""

    def uniform(fd, **seeds):
        fd.add_output(fd.ops.uniform(-1.0, 2.0, [4, 5], **seeds))

    def seeded(fd):
        uniform(fd, rng_seed=fd.define_scalar(D.Int), rng_offset=fd.define_scalar(D.Int))

    stateless, stateful = record(seeded), record(uniform)
    torch.manual_seed(1234)
    for offset in range(10):
        (drawn,) = stateful.execute([])
        assert torch.equal(drawn, stateless.execute([1234, offset])[0])
    assert torch.cuda.default_generators[0].get_offset() == 40


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (D.BFloat16, (1.0 + 3 * 2**-9, 3.4e38, -0.3)),
        (D.Half, (1 + 3 * 2**-12, 65520.0, 1e-8)),
        (D.Float, (0.1, 1e300)),
        (D.Int, (2**53 + 1, -(2**63))),
        (D.Int32, (2**31 - 1,)),
        (D.UInt64, (2**64 - 2**11, 2**63)),
    ],
)
def test_scalars_as_a_launch_takes_them(dtype, values):
    """Rounded to their dtype, never cut off, and refused where it cannot hold them."""
    x = torch.zeros(3, device="cuda", dtype=torch.float64)

    def make(fd):
        t, s = fd.from_pytorch(x), fd.define_scalar(dtype)
        fd.add_output(fd.ops.add(t, fd.ops.cast(s, D.Double)))

    fd = record(make)
    for value in values:
        (found,) = fd.execute([x, value])
        assert found[0].item() == torch.tensor(value, dtype=dtype.info.torch).double().item()
        with pytest.raises(RuntimeError, match="is not compatible with the expected data type"):
            fd.execute([x, 2**64])


def test_a_view_of_a_written_input_shows_the_old_value():
    x = torch.randn(4, 6, device="cuda")
    before = x.clone()

    def make(fd):
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.reshape(t, [-1]))
        fd.add_output(fd.ops.add(t, 1.0), t)

    (found,) = record(make).execute([x])
    assert torch.equal(found, before.view(-1))
    assert torch.equal(x, before + 1)
